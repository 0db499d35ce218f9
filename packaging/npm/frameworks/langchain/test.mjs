import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { FakeStreamingChatModel } from "@langchain/core/utils/testing";
import { createAgent } from "langchain";
import { Session } from "toolcrib";
import { tools } from "toolcrib/langchain";

import { open } from "../workspace.mjs";

/** A model that makes the given calls one after the other and then stops. */
class Scripted extends FakeStreamingChatModel {
  constructor(...calls) {
    super({});
    this.calls = calls;
    this.requests = [];
    this.offered = [];
  }

  bindTools(offered) {
    this.offered = offered;
    return this;
  }

  async _generate(messages) {
    this.requests.push(messages);
    const step = this.requests.length;
    const call = this.calls[step - 1];
    const toolCalls = call ? [{ id: `c${step}`, name: call[0], args: call[1], type: "tool_call" }] : [];
    const message = new AIMessage({ content: call ? "" : "done", tool_calls: toolCalls });
    return { generations: [{ text: message.text, message }] };
  }

  async *_streamResponseChunks() {
    throw new Error("this model does not stream");
  }
}

test("an agent works with the tools, and the model reads results and errors", async (t) => {
  const { session, root } = await open(t, Session);
  const model = new Scripted(
    ["Edit", { file_path: "a.txt", old_string: "two", new_string: "2" }],
    ["Bash", { command: "cat a.txt; exit 3" }],
    ["Read", { file_path: "missing.txt" }],
  );
  const agent = createAgent({ model, tools: await tools(session) });
  const { messages } = await agent.invoke({ messages: [new HumanMessage("go")] });
  assert.equal(messages.at(-1).content, "done");
  assert.equal(readFileSync(join(root, "a.txt"), "utf8"), "one\n2\n");
  const results = messages.filter((message) => message.getType() === "tool");
  assert.deepEqual(results.map(({ status }) => status), ["success", "error", "error"]);
  assert.match(results[2].content, /missing\.txt/);
  assert.equal(typeof results[0].artifact.change, "number");
  assert.ok(model.offered.some(({ name }) => name === "Bash"));
});

test("a tool is called without a model", async (t) => {
  const { session } = await open(t, Session);
  const [read] = await tools(session, { only: ["Read"] });
  assert.match(await read.invoke({ file_path: "a.txt" }), /1\tone/);
  const signal = AbortSignal.timeout(500);
  const [bash] = await tools(session, { only: ["Bash"] });
  await assert.rejects(bash.invoke({ command: "sleep 600" }, { signal }));
});
