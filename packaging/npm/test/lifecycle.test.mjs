import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Session, SessionClosed } from "../dist/index.js";
import { open, scratch } from "./workspace.mjs";

/** Waits until a process has gone. */
async function gone(pid) {
  while (existsSync(`/proc/${pid}`)) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function zombies() {
  return readdirSync("/proc").filter((name) => {
    try {
      const fields = readFileSync(`/proc/${name}/stat`, "utf8").split(") ")[1]?.split(" ");
      return fields?.[0] === "Z" && fields[1] === String(process.pid);
    } catch {
      return false;
    }
  });
}

test("info names the version, the roots and the sandbox", async (t) => {
  const { session, root } = await open(t);
  const info = await session.info();
  assert.equal(info.protocol, 1);
  assert.deepEqual(info.roots, [root]);
  assert.equal(typeof info.sandbox.level, "number");
  assert.equal(typeof info.version, "string");
});

test("a program that cannot be started or refuses its options is an error", async (t) => {
  const { options, root } = await scratch(t);
  const rejected = (more, error) => assert.rejects(Session.open({ ...options, ...more }), error);
  const name = "StartFailed";
  const hint = /^Check the options/;
  await rejected({ binary: "/no/such/program" }, { name, hint, message: /^cannot start \/no\/such\/program/ });
  await rejected({ binary: "/bin/false" }, { name, hint, message: /^the program did not start: .*exit code 1/ });
  await rejected({ profile: "no-such-profile" }, { name, hint, message: /exit code 2.*: error: .*`no-such-profile`/ });
  await rejected({ binary: "/bin/cat" }, SessionClosed);
  await rejected({ root: [root, "/no/such/directory:ro"] }, { name: "NotFound", message: /root \/no\/such\/directory does/ });
  await rejected({ root: process.execPath }, { name: "NotADirectory" });
});

test("an unknown option and a missing program are named", async (t) => {
  const { options, root } = await scratch(t);
  await assert.rejects(Session.open({ ...options, roots: "." }), /no option `roots`; there are: root, profile/);
  await assert.rejects(Session.open(root), /^TypeError: Session.open takes an object with its options, not '/);
  const script = `import { findProgram } from ${JSON.stringify(new URL("../dist/program.js", import.meta.url))};
    try { console.log(findProgram()); } catch (error) { console.log(error.message); }`;
  const found = async (env) => {
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], { env });
    return stdout.trim();
  };
  assert.equal(await found({ TOOLCRIB_BINARY: "/no/such/program" }), "TOOLCRIB_BINARY names no file: /no/such/program");
  assert.match(await found({ PATH: "/no/such/directory" }), /no toolcrib in PATH.*TOOLCRIB_BINARY/);
});

test("the methods refuse options that they do not have", async (t) => {
  const { session } = await open(t, { "a.txt": "a\n" });
  const refused = async (action, pattern) => assert.rejects(async () => action(), pattern);
  await refused(() => session.exec("touch ran", { timeout: 100 }), /^TypeError: exec has no option `timeout`; .*mean `timeoutMs`\?/);
  await refused(() => session.spawn("touch ran", { onStdout() {} }), /spawn has no option `onStdout`; there are: cwd, /);
  await refused(() => session.exec("touch ran", 100), /exec takes an object with its options, not 100/);
  for (const timeoutMs of [NaN, Infinity, -1, 1.5]) {
    await refused(() => session.exec("touch ran", { timeoutMs }), /^RangeError: timeoutMs is a whole number of milliseconds, not /);
  }
  await refused(() => session.call("LS", {}, { timeoutMs: 100 }), /call has no option `timeoutMs`; there are: signal, /);
  await refused(() => session.call("LS", {}, { dry_run: true }), /Did you mean `dryRun`/);
  await refused(() => session.write("a.txt", "x", { apend: true }), /Did you mean `append`/);
  await refused(() => session.remove("a.txt", null), /remove takes an object with its options, not null/);
  const others = ["read", "readText", "readParts", "stat", "list", "mkdir", "remove", "realpath"];
  for (const name of others) {
    await refused(() => session[name]("a.txt", { other: 1 }), /has no option `other`; there are: [a-zA-Z, ]*signal$/);
  }
  await refused(() => session.move("a.txt", "b.txt", { other: 1 }), /move has no option `other`/);
  const process = await session.spawn(["cat"]);
  await refused(() => process.wait({ timeoutMs: 1 }), /wait has no option `timeoutMs`/);
  await refused(() => session.job("bash_1").wait({ timeoutMs: 1 }), /wait has no option `timeoutMs`/);
  assert.deepEqual((await session.list()).entries.map(({ name }) => name), ["a.txt"]);
});

test("an adapter without its framework says how to install it", async (t) => {
  const { session } = await open(t);
  for (const [adapter, framework] of [
    ["ai", "ai"],
    ["anthropic", "@anthropic-ai/sdk"],
    ["langchain", "langchain @langchain/core"],
    ["mastra", "@mastra/core"],
    ["openai_agents", "@openai/agents"],
  ]) {
    const { tools } = await import(`../dist/${adapter}.js`);
    await assert.rejects(tools(session), ({ message }) => message.endsWith(`framework: npm install ${framework}`));
  }
});

test("a closed session refuses calls, and closing again is harmless", async (t) => {
  const { options } = await scratch(t);
  const session = await Session.open(options);
  const running = session.call("Bash", { command: "sleep 600" });
  const rejected = assert.rejects(running, SessionClosed);
  const { pid } = session;
  await Promise.all([session.close(), session.close()]);
  await rejected;
  assert.equal(session.closed, true);
  assert.equal(existsSync(`/proc/${pid}`), false);
  await assert.rejects(session.call("LS"), { name: "SessionClosed", hint: "Open a new session." });
});

// Node 20 has the symbol, but not the syntax.
test("await using closes the session", async (t) => {
  const { options } = await scratch(t);
  const session = await Session.open(options);
  const { pid } = session;
  await session[Symbol.asyncDispose]();
  assert.equal(existsSync(`/proc/${pid}`), false);
});

test("after the program died, its calls fail and the next call starts it again", async (t) => {
  let restarts = 0;
  const echo = {
    name: "Echo",
    description: "Echoes.",
    schema: { type: "object", properties: {} },
    readOnly: true,
    run: () => "echo",
  };
  const onRestart = () => {
    restarts += 1;
  };
  const { session } = await open(t, { "a.txt": "a\n" }, { onRestart, ownTools: [echo] });
  const { pid } = session;
  const running = assert.rejects(session.call("Bash", { command: "sleep 600" }), SessionClosed);
  process.kill(pid, "SIGKILL");
  await running;
  const replies = await Promise.all([session.call("Read", { file_path: "a.txt" }), session.call("Echo", {})]);
  assert.deepEqual(replies.map((reply) => reply.success), [true, true]);
  assert.notEqual(session.pid, pid);
  assert.equal(restarts, 1);
});

test("without restart a dead program ends the session", async (t) => {
  const { session } = await open(t, {}, { restart: false });
  const running = assert.rejects(session.call("Bash", { command: "sleep 600" }), SessionClosed);
  process.kill(session.pid, "SIGKILL");
  await running;
  await assert.rejects(session.call("LS"), SessionClosed);
});

test("300 sessions leave no process and no descriptor behind", async (t) => {
  const { options } = await scratch(t, { "a.txt": "a\n" });
  const once = async () => {
    const session = await Session.open(options);
    (await session.call("Read", { file_path: "a.txt" })).orThrow();
    await session.close();
  };
  await once();
  const descriptors = () => readdirSync("/proc/self/fd").length;
  const before = descriptors();
  for (let round = 0; round < 300; round += 1) {
    await once();
  }
  assert.ok(descriptors() <= before + 2, `${before} descriptors before, ${descriptors()} after`);
  assert.deepEqual(zombies(), []);
  assert.equal(process.listenerCount("exit") <= 2, true);
});

/** Starts a process that opens a session. Resolves to it and to the id of the session's program. */
async function start(what, options) {
  const script = fileURLToPath(new URL("programs/session.mjs", import.meta.url));
  const env = { ...process.env, OPTIONS: JSON.stringify(options) };
  const child = spawn(process.execPath, [script, what], { env, stdio: ["ignore", "pipe", "inherit"] });
  const [chunk] = await once(child.stdout, "data");
  return { child, pid: Number(String(chunk)) };
}

test("an idle session does not keep the process running", async (t) => {
  const { options } = await scratch(t);
  const { child, pid } = await start("nothing", options);
  await gone(child.pid);
  await gone(pid);
});

test("process.exit ends the program and its commands", async (t) => {
  const { options } = await scratch(t);
  await gone((await start("exit", options)).pid);
});

test("the program and its commands end when this process is killed", async (t) => {
  const { options } = await scratch(t);
  const { child, pid } = await start("wait", options);
  assert.equal(existsSync(`/proc/${pid}`), true);
  child.kill("SIGKILL");
  await gone(pid);
});

test("the launcher passes arguments, output and the exit code on", async () => {
  const launcher = fileURLToPath(new URL("../bin/toolcrib.js", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [launcher, "--version"]);
  assert.match(stdout, /^toolcrib \d/);
  await assert.rejects(promisify(execFile)(process.execPath, [launcher, "no-such-command"]), { code: 2 });
});

test("the generated types are current", async () => {
  const script = fileURLToPath(new URL("../scripts/generate_types.mjs", import.meta.url));
  await promisify(execFile)(process.execPath, [script, "--check"]);
});
