import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { generateText, isStepCount, jsonSchema, stepCountIs, tool } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { Session } from "toolcrib";
import { sandbox, tools } from "toolcrib/ai";

import { open } from "../workspace.mjs";

const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };

/** A model that makes the given calls one after the other and then stops. */
function scripted(...calls) {
  let step = 0;
  return new MockLanguageModelV4({
    doGenerate: async () => {
      const call = calls[step++];
      const content = call
        ? { type: "tool-call", toolCallId: `c${step}`, toolName: call[0], input: JSON.stringify(call[1]) }
        : { type: "text", text: "done" };
      const unified = call ? "tool-calls" : "stop";
      return { content: [content], finishReason: { unified, raw: unified }, usage, warnings: [] };
    },
  });
}

test("a model works with the tools, and reads results and errors", async (t) => {
  const { session, root } = await open(t, Session);
  const model = scripted(
    ["Read", { file_path: "a.txt" }],
    ["Edit", { file_path: "a.txt", old_string: "two", new_string: "2" }],
    ["Read", { file_path: "missing.txt" }],
  );
  const result = await generateText({
    model,
    tools: await tools(session),
    prompt: "go",
    stopWhen: (stepCountIs ?? isStepCount)(10),
  });
  assert.equal(result.text, "done");
  assert.equal(readFileSync(join(root, "a.txt"), "utf8"), "one\n2\n");
  const seen = JSON.stringify(model.doGenerateCalls.at(-1).prompt);
  assert.match(seen, /1\\tone/);
  assert.match(seen, /"error-text"[^}]*missing\.txt/);
  assert.ok(model.doGenerateCalls[0].tools.some(({ name }) => name === "Bash"));
});

test("only the selected tools are offered", async (t) => {
  const { session } = await open(t, Session);
  assert.deepEqual(Object.keys(await tools(session, { only: ["Read", "Grep"] })), ["Read", "Grep"]);
});

test("an abort ends a command", async (t) => {
  const { session } = await open(t, Session);
  const abortSignal = AbortSignal.timeout(500);
  const { Bash } = await tools(session);
  await assert.rejects(Bash.execute({ command: "sleep 600" }, { abortSignal }), { name: "TimeoutError" });
});

test("a tool gets the session as its sandbox", async (t) => {
  const { session } = await open(t, Session);
  const shell = tool({
    description: "Runs a command.",
    inputSchema: jsonSchema({ type: "object", properties: { command: { type: "string" } } }),
    execute: async ({ command }, { experimental_sandbox: box }) => (await box.run({ command })).stdout,
  });
  const model = scripted(["shell", { command: "cat a.txt" }]);
  await generateText({
    model,
    tools: { shell },
    experimental_sandbox: await sandbox(session),
    prompt: "go",
    stopWhen: (stepCountIs ?? isStepCount)(3),
  });
  assert.match(JSON.stringify(model.doGenerateCalls.at(-1).prompt), /one\\\\ntwo|one\\ntwo/);
});

test("the sandbox session runs commands and processes", async (t) => {
  const { session } = await open(t, Session);
  const box = await sandbox(session);
  assert.match(box.description, /bash/);
  assert.deepEqual(await box.run({ command: "echo out; echo err >&2; exit 4" }), {
    exitCode: 4,
    stdout: "out\n",
    stderr: "err\n",
  });
  assert.equal((await box.run({ command: "echo $X; pwd", env: { X: "y" }, workingDirectory: "/tmp" })).stdout, "y\n/tmp\n");
  const abortSignal = AbortSignal.timeout(500);
  await assert.rejects(Promise.resolve(box.run({ command: "sleep 600", abortSignal })), { name: "TimeoutError" });

  const process = await box.spawn({ command: "cat", stdin: true });
  const writer = process.stdin.getWriter();
  await writer.write(new TextEncoder().encode("hello"));
  await writer.close();
  assert.equal(await new Response(process.stdout).text(), "hello");
  assert.deepEqual(await process.wait(), { exitCode: 0 });
  await process.kill();

  const closed = await box.spawn({ command: "cat; echo end" });
  assert.equal("stdin" in closed, false);
  assert.equal(await new Response(closed.stdout).text(), "end\n");

  const killed = await box.spawn({ command: "sleep 600" });
  await killed.kill();
  assert.deepEqual(await killed.wait(), { exitCode: 137 });
});

test("the sandbox session reads and writes files", async (t) => {
  const { session, root } = await open(t, Session);
  const box = await sandbox(session);
  const path = "new/deep/b.txt";
  await box.writeTextFile({ path, content: "1\n2\n3\n" });
  assert.equal(readFileSync(join(root, path), "utf8"), "1\n2\n3\n");
  assert.equal(await box.readTextFile({ path, startLine: 2, endLine: 2 }), "2");
  assert.equal(await box.readTextFile({ path, startLine: 3, endLine: 99 }), "3\n");
  await box.writeFile({ path, content: new Response("streamed").body });
  assert.equal(await new Response(await box.readFile({ path })).text(), "streamed");
  await box.writeBinaryFile({ path, content: new Uint8Array([0, 255]) });
  assert.deepEqual([...(await box.readBinaryFile({ path }))], [0, 255]);
  assert.deepEqual(await box.stat({ path }), { type: "file", size: 2 });
  assert.deepEqual(await box.listDirectory({ path: "new/deep" }), [{ name: "b.txt", type: "file" }]);
  for (const method of ["readFile", "readBinaryFile", "readTextFile", "stat", "listDirectory"]) {
    assert.equal(await box[method]({ path: "missing" }), null);
  }
  await assert.rejects(Promise.resolve(box.listDirectory({ path })));
  await assert.rejects(Promise.resolve(box.deleteFile({ path: "new" })));
  assert.equal(await box.deleteFile({ path }), true);
  assert.equal(await box.deleteFile({ path }), false);
  assert.equal(existsSync(join(root, path)), false);
});
