import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Agent, applyPatchTool, run, setTracingDisabled, shellTool } from "@openai/agents";
import { ScriptedModel } from "@openai/agents/testing";
import { Session } from "toolcrib";
import { editor, shell, tools } from "toolcrib/openai-agents";

import { open } from "../workspace.mjs";

setTracingDisabled(true);

const say = (text) => [{ type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text }] }];
const call = (callId, name, args) => [
  { type: "function_call", callId, name, status: "completed", arguments: JSON.stringify(args) },
];

test("an agent works with the tools, and the model reads results and errors", async (t) => {
  const { session, root } = await open(t, Session);
  const model = new ScriptedModel([
    call("c1", "Edit", { file_path: "a.txt", old_string: "two", new_string: "2" }),
    call("c2", "Read", { file_path: "missing.txt" }),
    say("done"),
  ]);
  const agent = new Agent({ name: "coder", model, tools: await tools(session) });
  const result = await run(agent, "go");
  assert.equal(result.finalOutput, "done");
  assert.equal(readFileSync(join(root, "a.txt"), "utf8"), "one\n2\n");
  const seen = JSON.stringify(model.calls.at(-1).request.input);
  assert.match(seen, /missing\.txt/);
  assert.ok(model.calls[0].request.tools.some(({ name }) => name === "Bash"));
});

test("the shell and the editor of the SDK's own tools", async (t) => {
  const { session, root } = await open(t, Session);
  const shellCall = (callId, commands, timeoutMs) => [
    { type: "shell_call", callId, status: "completed", action: { commands, timeoutMs } },
  ];
  const patchCall = (callId, operation) => [{ type: "apply_patch_call", callId, status: "completed", operation }];
  const model = new ScriptedModel([
    shellCall("s1", ["echo out; echo err >&2; exit 3", "rm a.txt"]),
    patchCall("p1", { type: "create_file", path: "b.txt", diff: "+first\n+second\n" }),
    patchCall("p2", { type: "update_file", path: "b.txt", diff: "@@\n first\n-second\n+2nd\n" }),
    patchCall("p3", { type: "delete_file", path: "missing.txt" }),
    say("done"),
  ]);
  const agent = new Agent({
    name: "coder",
    model,
    tools: [shellTool({ shell: shell(session) }), applyPatchTool({ editor: editor(session) })],
  });
  assert.equal((await run(agent, "go")).finalOutput, "done");
  assert.equal(readFileSync(join(root, "b.txt"), "utf8"), "first\n2nd\n");
  assert.equal(existsSync(join(root, "a.txt")), false);
  const items = model.calls.at(-1).request.input;
  const [output] = items.filter(({ type }) => type === "shell_call_output");
  assert.equal(output.output[0].stdout, "out\n");
  assert.equal(output.output[0].stderr, "err\n");
  assert.deepEqual(output.output[0].outcome, { type: "exit", exitCode: 3 });
  const patches = items.filter(({ type }) => type === "apply_patch_call_output");
  assert.deepEqual(patches.map(({ status }) => status), ["completed", "completed", "failed"]);
});

test("a file that the shell removed is taken back", async (t) => {
  const { session, root } = await open(t, Session);
  const snapshot = await session.snapshot();
  await shell(session).run({ commands: ["rm a.txt"] });
  assert.equal(existsSync(join(root, "a.txt")), false);
  await session.restore(snapshot);
  assert.equal(readFileSync(join(root, "a.txt"), "utf8"), "one\ntwo\n");
});

test("a timeout of the shell is reported", async (t) => {
  const { session } = await open(t, Session);
  const { output } = await shell(session).run({ commands: ["echo early; sleep 600"], timeoutMs: 5000 });
  assert.deepEqual(output, [{ stdout: "early\n", stderr: "", outcome: { type: "timeout" } }]);
});
