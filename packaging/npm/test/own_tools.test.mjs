import assert from "node:assert/strict";
import { test } from "node:test";

import { open } from "./workspace.mjs";

const lookup = {
  name: "Lookup",
  description: "Looks a word up.",
  schema: { type: "object", properties: { word: { type: "string" } }, required: ["word"], additionalProperties: false },
  readOnly: true,
  run: async ({ word }) => {
    if (word === "bad") {
      throw new Error("no such word");
    }
    return `meaning of ${word}`;
  },
};

test("an own tool is called like the others", async (t) => {
  const { session } = await open(t, {}, { ownTools: [lookup] });
  assert.equal((await session.call("Lookup", { word: "crib" })).orThrow().output, "meaning of crib");
  const failed = await session.call("Lookup", { word: "bad" });
  assert.equal(failed.success, false);
  assert.match(failed.output, /no such word/);
  assert.equal((await session.call("Lookup", { word: 5 })).error.kind, "invalid");
});

test("the name of an own tool must be free", async (t) => {
  await assert.rejects(open(t, {}, { ownTools: [lookup, lookup] }), { kind: "already_exists" });
  await assert.rejects(open(t, {}, { ownTools: [{ ...lookup, name: "Bash" }] }), { kind: "already_exists" });
});

test("own tools are in the definitions of every format", async (t) => {
  const { session } = await open(t, {}, { ownTools: [lookup] });
  const mcp = await session.tools("mcp");
  assert.ok(mcp.some((tool) => tool.name === "Lookup" && tool.inputSchema.properties.word.type === "string"));
  assert.ok((await session.tools("anthropic")).some((tool) => tool.name === "Lookup" && tool.input_schema));
  assert.ok((await session.tools("openai")).some((tool) => tool.function?.name === "Lookup"));
  assert.match(JSON.stringify(await session.tools("gemini")), /"Lookup"/);
  assert.ok(mcp.some((tool) => tool.name === "Bash"));
});

test("a cancelled call aborts the signal of the own tool", async (t) => {
  let aborted;
  const ended = new Promise((resolve) => {
    aborted = resolve;
  });
  let started;
  const running = new Promise((resolve) => {
    started = resolve;
  });
  const slow = {
    ...lookup,
    name: "Slow",
    run: (_, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => {
          aborted();
          reject(new Error("aborted"));
        });
        started();
      }),
  };
  const { session } = await open(t, {}, { ownTools: [slow] });
  const controller = new AbortController();
  const call = session.call("Slow", { word: "x" }, { signal: controller.signal });
  await running;
  controller.abort();
  await assert.rejects(call, { name: "AbortError" });
  await ended;
});
