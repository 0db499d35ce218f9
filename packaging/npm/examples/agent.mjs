// A coding agent in 40 lines: node examples/agent.mjs "make the greeting friendlier"
import { Session } from "toolcrib";

// A scripted model. These two lines put a real one in:
//   import Anthropic from "@anthropic-ai/sdk";
//   const ask = (request) => new Anthropic().messages.create({ model: "claude-sonnet-4-5", max_tokens: 4096, ...request });
const script = [
  ["Write", { file_path: "greet.sh", content: "echo hi\n" }],
  ["Edit", { file_path: "greet.sh", old_string: "hi", new_string: "Hello, and welcome!" }],
  ["Bash", { command: "bash greet.sh" }],
];
const ask = async () => {
  const [name, input] = script.shift() ?? [];
  const content = name
    ? { type: "tool_use", id: `call_${script.length}`, name, input }
    : { type: "text", text: "The greeting is friendlier now." };
  return { content: [content] };
};

const session = await Session.open({ root: process.env.ROOT ?? "." });
const before = await session.snapshot();
const tools = await session.tools("anthropic");
const messages = [{ role: "user", content: process.argv[2] ?? "Make a friendly greeting." }];

while (true) {
  const { content } = await ask({ tools, messages });
  messages.push({ role: "assistant", content });
  const results = [];
  for (const block of content) {
    if (block.type === "text") console.log(block.text);
    if (block.type !== "tool_use") continue;
    const reply = await session.call(block.name, block.input);
    console.log(`${block.name}: ${reply.output}`);
    results.push({ type: "tool_result", tool_use_id: block.id, content: reply.output, is_error: !reply.success });
  }
  if (results.length === 0) break;
  messages.push({ role: "user", content: results });
}

if (process.env.TAKE_BACK) console.log(await session.restore(before));
await session.close();
