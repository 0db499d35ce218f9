import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { LimitExceeded } from "../dist/index.js";
import { open } from "./workspace.mjs";

test("exec keeps stdout and stderr apart, and passes bytes through", async (t) => {
  const { session } = await open(t);
  const done = await session.exec("printf '\\377\\000a'; echo bad >&2; exit 3");
  assert.deepEqual([...done.stdout], [255, 0, 97]);
  assert.equal(done.stderrText, "bad\n");
  assert.equal(done.exitCode, 3);
  assert.equal(done.success, false);
  assert.equal(done.signal, null);
  assert.equal(done.timedOut, false);
});

test("no shell interprets the arguments of a program", async (t) => {
  const { session } = await open(t);
  const done = await session.exec(["printf", "%s|", "$HOME", "a b", "*", "'"]);
  assert.equal(done.stdoutText, "$HOME|a b|*|'|");
});

test("a program that does not exist has the exit code 127", async (t) => {
  const { session } = await open(t);
  const done = await session.exec(["no-such-program"]);
  assert.equal(done.exitCode, 127);
  assert.notEqual(done.stderrText, "");
});

test("cwd, env and stdin reach the command; without stdin it is at its end", async (t) => {
  const { session, root } = await open(t, { "sub/x": "" });
  const done = await session.exec("pwd; echo $GREETING; cat", { cwd: "sub", env: { GREETING: "hi" }, stdin: "input" });
  assert.equal(done.stdoutText, `${root}/sub\nhi\ninput`);
  assert.equal((await session.exec(["cat"])).stdoutText, "");
  assert.equal((await session.exec(["cat"], { stdin: "" })).stdoutText, "");
});

test("the output is complete", async (t) => {
  const { session } = await open(t);
  const done = await session.exec("head -c 20000000 /dev/zero; head -c 3000000 /dev/zero >&2");
  assert.equal(done.stdout.length, 20000000);
  assert.equal(done.stderr.length, 3000000);
});

test("chunks are passed on while the command runs", async (t) => {
  const { session, root } = await open(t);
  const chunks = [];
  const done = await session.exec("echo one; until [ -e go ]; do sleep 0.05; done; echo two; echo three >&2", {
    onStdout: (chunk) => {
      chunks.push(`out ${Buffer.from(chunk)}`);
      writeFileSync(join(root, "go"), "");
    },
    onStderr: (chunk) => chunks.push(`err ${Buffer.from(chunk)}`),
  });
  assert.equal(chunks[0], "out one\n");
  assert.ok(chunks.includes("err three\n"));
  assert.equal(done.stdoutText, "one\ntwo\n");
});

test("a timeout kills the command and keeps the output before it", async (t) => {
  const { session } = await open(t);
  const done = await session.exec("echo early; sleep 600", { timeoutMs: 5000 });
  assert.equal(done.timedOut, true);
  assert.equal(done.exitCode, null);
  assert.ok([9, 15].includes(done.signal));
  assert.equal(done.stdoutText, "early\n");
});

test("a signal cancels exec and spawn", async (t) => {
  const { session } = await open(t);
  const reason = new Error("enough");
  const controller = new AbortController();
  const running = session.exec("sleep 600", { signal: controller.signal });
  const process = await session.spawn("echo started; sleep 600", { signal: controller.signal });
  for await (const line of process.stdout.lines()) {
    assert.equal(line, "started");
    break;
  }
  controller.abort(reason);
  await assert.rejects(running, reason);
  await assert.rejects(process.wait(), reason);
  assert.equal(process.running, false);
});

test("a process reads what is written to it", async (t) => {
  const { session } = await open(t);
  const process = await session.spawn(["cat"]);
  await process.stdin.write("one\n");
  const lines = process.stdout.lines();
  assert.equal((await lines.next()).value, "one");
  process.stdin.write("two\n");
  process.stdin.write("three\n");
  await process.stdin.close();
  const rest = [];
  for await (const line of lines) {
    rest.push(line);
  }
  assert.deepEqual(rest, ["two", "three"]);
  assert.equal((await process.wait()).exitCode, 0);
});

test("the output of a process is one text or one array", async (t) => {
  const { session } = await open(t);
  const process = await session.spawn("echo one; printf 'gr\\303'; sleep 0.1; printf '\\274n\\377'; echo bad >&2");
  assert.equal(await process.stdout.text(), "one\ngrün\ufffd");
  assert.deepEqual([...(await process.stderr.bytes())], [...Buffer.from("bad\n")]);
});

test("large input is written completely", async (t) => {
  const { session } = await open(t);
  const input = Buffer.alloc(5_000_000, "0123456789abcdef");
  const process = await session.spawn(["md5sum"]);
  await process.stdin.write(input);
  await process.stdin.close();
  const spawned = Buffer.from(await process.stdout.bytes()).toString();
  assert.equal((await session.exec(["md5sum"], { stdin: input })).stdoutText, spawned);
});

test("signals reach a process", async (t) => {
  const { session } = await open(t);
  const process = await session.spawn("trap 'echo caught; exit 5' USR1; echo ready; while :; do sleep 0.1; done");
  const lines = process.stdout.lines();
  assert.equal((await lines.next()).value, "ready");
  await process.signal("USR1");
  assert.equal((await lines.next()).value, "caught");
  assert.equal((await process.wait()).exitCode, 5);
  await process.kill();
});

test("kill ends a process", async (t) => {
  const { session } = await open(t);
  const process = await session.spawn(["sleep", "600"]);
  assert.equal(process.running, true);
  await process.kill();
  assert.equal((await process.wait()).signal, 9);
});

test("waiting can be aborted, and the process goes on", async (t) => {
  const { session } = await open(t);
  const process = await session.spawn(["sleep", "600"]);
  const reason = new Error("no time");
  const controller = new AbortController();
  setTimeout(() => controller.abort(reason), 50);
  await assert.rejects(process.wait({ signal: controller.signal }), reason);
  assert.equal(process.running, true);
  await process[Symbol.asyncDispose]();
  assert.equal(process.running, false);
});

test("a terminal has a size, which can be changed", async (t) => {
  const { session } = await open(t);
  const process = await session.spawn("stty size; read line; stty size", { pty: { rows: 10, cols: 40 } });
  let text = "";
  for await (const part of process.stdout.textParts()) {
    text += part;
    if (/10 40\r?\n$/.test(text)) {
      await process.resize(20, 50);
      await process.stdin.write("\n");
    }
  }
  assert.match(text, /20 50/);
});

test("output that nobody reads is bounded", async (t) => {
  const { session } = await open(t);
  const process = await session.spawn("cat /dev/zero", { maxBuffer: 1_000_000 });
  await assert.rejects(process.wait(), LimitExceeded);
  assert.equal((await session.exec(["true"])).exitCode, 0);
});

test("an error in a callback ends the command, and the session goes on", async (t) => {
  const { session } = await open(t);
  const onStdout = () => {
    throw new Error("callback");
  };
  await assert.rejects(session.exec("echo x; sleep 600", { onStdout }), /callback/);
  assert.equal((await session.exec(["true"])).exitCode, 0);
});

test("many commands run at the same time", async (t) => {
  const { session } = await open(t);
  const all = await Promise.all(Array.from({ length: 20 }, (_, index) => session.exec(`sleep 0.1; echo ${index}`)));
  all.forEach((done, index) => assert.equal(done.stdoutText, `${index}\n`));
});

test("commands cannot write outside of the workspace", async (t) => {
  const { session, top } = await open(t);
  const done = await session.exec(`echo x > ${top}/outside.txt`);
  assert.notEqual(done.exitCode, 0);
});

test("a command's change is in the journal", async (t) => {
  const { session, root } = await open(t, { "a.txt": "old\n" });
  const done = await session.exec("echo new > a.txt");
  assert.equal(typeof done.change, "number");
  await session.undo({ id: done.change });
  assert.equal(await session.readText(`${root}/a.txt`), "old\n");
});
