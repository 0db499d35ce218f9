import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";

import { NotFound, ToolcribError } from "../dist/index.js";
import { modelTools } from "../dist/model_tools.js";
import { open } from "./workspace.mjs";

test("a call returns the text for the model and the metadata", async (t) => {
  const { session } = await open(t, { "a.txt": "one\ntwo\n" });
  const reply = await session.call("Read", { file_path: "a.txt" });
  assert.equal(reply.success, true);
  assert.match(reply.output, /1\tone\n *2\ttwo/);
  assert.equal(typeof reply.metadata, "object");
  assert.equal(reply.orThrow(), reply);
});

test("a failed call has an error with kind and hint, and does not throw", async (t) => {
  const { session } = await open(t);
  const reply = await session.call("Read", { file_path: "missing.txt" });
  assert.equal(reply.success, false);
  assert.ok(reply.error instanceof NotFound && reply.error instanceof ToolcribError);
  assert.equal(reply.error.kind, "not_found");
  assert.ok(reply.output.includes(reply.error.message));
  assert.throws(() => reply.orThrow(), NotFound);
});

test("calls run at the same time and replies find their calls", async (t) => {
  const names = Array.from({ length: 50 }, (_, index) => `f${index}.txt`);
  const { session } = await open(t, Object.fromEntries(names.map((name) => [name, `content of ${name}\n`])));
  const replies = await Promise.all(names.map((name) => session.call("Read", { file_path: name })));
  replies.forEach((reply, index) => assert.ok(reply.output.includes(`content of ${names[index]}`)));
});

test("a dry run changes nothing", async (t) => {
  const { session, root } = await open(t);
  const reply = await session.call("Write", { file_path: "new.txt", content: "x\n" }, { dryRun: true });
  assert.equal(reply.metadata.dry_run, true);
  assert.equal(existsSync(join(root, "new.txt")), false);
});

test("an image is a picture of the reply", async (t) => {
  const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const { session } = await open(t, { "dot.png": Buffer.from(png, "base64") });
  const reply = (await session.call("Read", { file_path: "dot.png" })).orThrow();
  assert.equal(reply.pictures[0].mimeType, "image/png");
});

test("history lists changes, and undo takes one back", async (t) => {
  const { session, root } = await open(t, { "a.txt": "old\n" });
  (await session.call("Edit", { file_path: "a.txt", old_string: "old", new_string: "new" })).orThrow();
  const [change] = await session.history();
  assert.equal(typeof change.id, "number");
  for (const wrong of [change.id, null, "1"]) {
    await assert.rejects(session.undo(wrong), /^TypeError: undo takes an object, such as { steps: 1 } or { id: 7 }, not /);
  }
  for (const nothing of [{ id: null }, { since: undefined }]) {
    await assert.rejects(session.undo(nothing), /^TypeError: undo: (id|since) is (null|undefined)\. /);
  }
  await session.undo({ id: change.id });
  assert.equal(await readFile(join(root, "a.txt"), "utf8"), "old\n");
});

test("a signal cancels a call, and its reason is thrown when the command has ended", async (t) => {
  const { session } = await open(t);
  const reason = new Error("enough");
  const controller = new AbortController();
  const call = session.call("Bash", { command: "sleep 600" }, { signal: controller.signal });
  setTimeout(() => controller.abort(reason), 300);
  await assert.rejects(call, reason);
  await assert.rejects(session.call("LS", {}, { signal: AbortSignal.abort(reason) }), reason);
  assert.equal((await session.call("LS", {})).success, true);
});

test("adapters refuse names of tools that the session does not have", async (t) => {
  const { session } = await open(t);
  const chosen = await modelTools(session, { only: ["Grep", "Read"] });
  assert.deepEqual(chosen.map(({ name }) => name), ["Read", "Grep"]);
  await assert.rejects(modelTools(session, { only: ["Read", "Reed"] }), {
    name: "InvalidArgument",
    message: "the session has no tool Reed",
    hint: /^Did you mean Read\? Its tools are: Read, /,
  });
  await assert.rejects(modelTools(session, { only: ["Search"] }), { hint: /^Its tools are: Read, / });
  await assert.rejects(modelTools(session, { names: ["Read"] }), /^TypeError: tools has no option `names`; there are: only$/);
});

test("the approver is asked, and its message reaches the agent", async (t) => {
  const questions = [];
  const { session, root } = await open(t, {}, {
    profile: "cautious",
    approver: async (question) => {
      questions.push(question);
      return question.command === undefined ? "yes" : { answer: "no", message: "Only files are changed here." };
    },
  });
  (await session.call("Write", { file_path: "notes.txt", content: "hello\n" })).orThrow();
  assert.equal(await readFile(join(root, "notes.txt"), "utf8"), "hello\n");
  const denied = await session.call("Bash", { command: "touch made.txt" });
  assert.equal(denied.error.kind, "denied");
  assert.match(denied.output, /Only files are changed here/);
  assert.deepEqual(questions.map((question) => question.tool), ["Write", "Bash"]);
  assert.ok(questions[0].answers.includes("yes"));
});

test("an approver that throws denies the call", async (t) => {
  const approver = () => {
    throw new Error("no terminal");
  };
  const { session } = await open(t, {}, { profile: "cautious", approver });
  const reply = await session.call("Write", { file_path: "a.txt", content: "x" });
  assert.equal(reply.error.kind, "denied");
  assert.match(reply.output, /no terminal/);
});

test("an approver that returns no answer denies the call and says so", async (t) => {
  let returned;
  const { session } = await open(t, {}, { profile: "cautious", approver: () => returned });
  const answers = [null, undefined, "maybe", "", {}, { answer: true }, { answer: "yes", message: 5 }, 1, ["yes"]];
  for (const answer of [...answers, Promise.resolve(null)]) {
    returned = answer;
    const reply = await session.call("Write", { file_path: "a.txt", content: "x" });
    assert.equal(reply.error.kind, "denied");
    assert.match(reply.output, /The approver (returned .*, which is not an answer|answered '.*'; this question takes yes, )/);
  }
});

test("an approver may return a boolean", async (t) => {
  const approver = (question) => question.paths[0].path.endsWith("a.txt");
  const { session } = await open(t, {}, { profile: "cautious", approver });
  assert.equal((await session.call("Write", { file_path: "a.txt", content: "x" })).success, true);
  assert.equal((await session.call("Write", { file_path: "b.txt", content: "x" })).error.kind, "denied");
});

test("without an approver a call that needs approval is denied", async (t) => {
  const { session } = await open(t, {}, { profile: "cautious" });
  assert.equal((await session.call("Write", { file_path: "a.txt", content: "x" })).error.kind, "denied");
});

test("the output of a background job is iterated until it ends", async (t) => {
  const { session } = await open(t);
  const job = await session.background("for i in 1 2 3; do echo line $i; sleep 0.2; done");
  let text = "";
  for await (const part of job) {
    text += part;
  }
  assert.equal(text, "line 1\nline 2\nline 3\n");
  assert.equal((await job.wait()).metadata.exit_code, 0);
});

test("a background job is killed", async (t) => {
  const { session } = await open(t);
  const job = await session.background("sleep 600");
  await job.kill();
  assert.notEqual((await session.job(job.id).wait()).metadata.status, "running");
});

test("progress of a call is reported", async (t) => {
  const files = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`f${index}`, "x\n"]));
  const { session } = await open(t, files);
  const seen = [];
  const command = "for i in 1 2 3 4; do echo $i; sleep 0.5; done";
  (await session.call("Bash", { command }, { onProgress: (progress) => seen.push(progress) })).orThrow();
  assert.ok(seen.length > 0);
  assert.equal(typeof seen[0].done, "number");
});
