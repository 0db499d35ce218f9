import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";

import Anthropic from "@anthropic-ai/sdk";
import { Session } from "toolcrib";
import { tools } from "toolcrib/anthropic";

import { open } from "../workspace.mjs";

/** A Messages API on loopback that makes the given calls one after the other. Returns a client and its requests. */
async function scripted(context, ...calls) {
  const requests = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) {
      body += chunk;
    }
    requests.push(JSON.parse(body));
    const call = calls[requests.length - 1];
    const content = call
      ? { type: "tool_use", id: `toolu_${requests.length}`, name: call[0], input: call[1] }
      : { type: "text", text: "done" };
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify({
        id: `msg_${requests.length}`,
        type: "message",
        role: "assistant",
        model: "scripted",
        content: [content],
        stop_reason: call ? "tool_use" : "end_turn",
        stop_sequence: null,
        usage: { input_tokens: 1, output_tokens: 1 },
      }),
    );
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => server.closeAllConnections() ?? server.close());
  const baseURL = `http://127.0.0.1:${server.address().port}`;
  return { client: new Anthropic({ apiKey: "none", baseURL, maxRetries: 0 }), requests };
}

test("the tool runner calls the tools, and the model reads results, images and errors", async (t) => {
  const { session, root } = await open(t, Session);
  const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  writeFileSync(join(root, "dot.png"), Buffer.from(png, "base64"));
  const { client, requests } = await scripted(
    t,
    ["Write", { file_path: "new.txt", content: "hello\n" }],
    ["Read", { file_path: "dot.png" }],
    ["Read", { file_path: "missing.txt" }],
  );
  const final = await client.beta.messages.toolRunner({
    model: "scripted",
    max_tokens: 100,
    messages: [{ role: "user", content: "go" }],
    tools: await tools(session),
  });
  assert.equal(final.content[0].text, "done");
  assert.equal(readFileSync(join(root, "new.txt"), "utf8"), "hello\n");
  assert.ok(requests[0].tools.some(({ name, input_schema: schema }) => name === "Bash" && schema.type === "object"));
  const sent = requests.flatMap(({ messages }) => messages.at(-1).content);
  const results = sent.filter(({ type }) => type === "tool_result");
  assert.equal(results.length, 3);
  assert.equal(results[1].content.find(({ type }) => type === "image").source.media_type, "image/png");
  assert.equal(results[2].is_error, true);
  assert.match(JSON.stringify(results[2].content), /missing\.txt/);
});
