import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Agent } from "@mastra/core/agent";
import { FileExistsError, FileNotFoundError, IsDirectoryError, StaleFileError, Workspace } from "@mastra/core/workspace";
import { MockLanguageModelV4 } from "ai/test";
import { Session } from "toolcrib";
import { filesystem, sandbox, tools } from "toolcrib/mastra";

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

test("an agent works with the tools, and the model reads results and errors", async (t) => {
  const { session, root } = await open(t, Session);
  const model = scripted(
    ["Edit", { file_path: "a.txt", old_string: "two", new_string: "2" }],
    ["Read", { file_path: "a.txt" }],
    ["Read", { file_path: "missing.txt" }],
  );
  const agent = new Agent({ id: "coder", name: "coder", instructions: "Work.", model, tools: await tools(session) });
  const result = await agent.generate("go", { maxSteps: 10 });
  assert.equal(result.text, "done");
  assert.equal(readFileSync(join(root, "a.txt"), "utf8"), "one\n2\n");
  const seen = JSON.stringify(model.doGenerateCalls.at(-1).prompt);
  assert.match(seen, /1\\+tone/);
  assert.match(seen, /missing\.txt/);
});

test("a workspace of the session serves Mastra's own tools", async (t) => {
  const { session, root } = await open(t, Session);
  const workspace = new Workspace({ filesystem: await filesystem(session), sandbox: await sandbox(session) });
  await workspace.init();
  const model = scripted(
    ["mastra_workspace_write_file", { path: "/new/b.txt", content: "hello\n" }],
    ["mastra_workspace_execute_command", { command: "cat new/b.txt; pwd" }],
    ["mastra_workspace_list_files", { path: "/" }],
  );
  const agent = new Agent({ id: "coder", name: "coder", instructions: "Work.", model, workspace });
  const result = await agent.generate("go", { maxSteps: 10 });
  assert.equal(result.text, "done");
  assert.equal(readFileSync(join(root, "new/b.txt"), "utf8"), "hello\n");
  const seen = JSON.stringify(model.doGenerateCalls.at(-1).prompt);
  assert.ok(seen.includes(root));
  assert.match(seen, /b\.txt/);
});

test("the filesystem reads, writes, copies, moves and removes", async (t) => {
  const { session, root } = await open(t, Session);
  const files = await filesystem(session);
  assert.equal(await files.readFile("/a.txt", { encoding: "utf8" }), "one\ntwo\n");
  assert.ok(Buffer.isBuffer(await files.readFile(join(root, "a.txt"))));
  await files.writeFile("dir/deep/b.bin", new Uint8Array([0, 255]));
  await files.appendFile("dir/deep/b.bin", "x");
  assert.deepEqual([...readFileSync(join(root, "dir/deep/b.bin"))], [0, 255, 120]);
  await assert.rejects(files.writeFile("a.txt", "", { overwrite: false }), FileExistsError);
  await assert.rejects(files.writeFile("a.txt", "", { expectedMtime: new Date(0) }), StaleFileError);
  await assert.rejects(files.readFile("missing"), FileNotFoundError);
  await assert.rejects(files.stat("missing"), FileNotFoundError);
  await assert.rejects(files.readFile("dir"), IsDirectoryError);
  await assert.rejects(files.deleteFile("dir"), IsDirectoryError);
  await files.copyFile("dir", "copy", { recursive: true });
  await files.moveFile("copy/deep/b.bin", "moved/c.bin");
  const names = (await files.readdir("/", { recursive: true })).map(({ name, type }) => `${name} ${type}`);
  assert.ok(names.includes("moved/c.bin file") && names.includes("dir/deep directory"));
  assert.deepEqual((await files.readdir("/", { extension: ".txt" })).filter(({ type }) => type === "file").map(({ name }) => name), ["a.txt"]);
  const found = await files.stat("moved/c.bin");
  assert.deepEqual([found.name, found.type, found.size], ["c.bin", "file", 3]);
  await files.mkdir("empty");
  await files.rmdir("empty");
  await files.rmdir("dir", { recursive: true });
  await files.deleteFile("moved/c.bin");
  assert.equal(await files.exists("moved/c.bin"), false);
  await files.deleteFile("moved/c.bin", { force: true });
  assert.equal(existsSync(join(root, "dir")), false);
});

test("the sandbox runs commands and processes", async (t) => {
  const { session } = await open(t, Session);
  const box = await sandbox(session);
  let streamed = "";
  const onStdout = (text) => {
    streamed += text;
  };
  const done = await box.executeCommand("printf", ["%s|", "a b", "$HOME", "'"], { onStdout });
  assert.equal(done.stdout, "a b|$HOME|'|");
  assert.equal(streamed, done.stdout);
  const failed = await box.executeCommand("exit 3");
  assert.deepEqual([failed.success, failed.exitCode], [false, 3]);
  assert.equal((await box.executeCommand("sleep 600", [], { timeout: 1500 })).timedOut, true);

  const handle = await box.processes.spawn("cat");
  await handle.sendStdin("hello");
  await handle.closeStdin();
  const result = await handle.wait();
  assert.deepEqual([result.exitCode, result.stdout], [0, "hello"]);
  assert.equal(handle.stdout, "hello");
  const long = await box.processes.spawn("sleep 600");
  assert.ok((await box.processes.list()).some(({ pid, running }) => pid === long.pid && running));
  assert.equal(await box.processes.kill(long.pid), true);
  assert.equal((await long.wait()).exitCode, 137);
});
