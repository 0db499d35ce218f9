// The adapter's types fit the AI SDK.
import { generateText, type Experimental_SandboxSession, type LanguageModel, type ToolSet } from "ai";
import { Session } from "toolcrib";
import { sandbox, tools } from "toolcrib/ai";

export async function agent(model: LanguageModel): Promise<string> {
  await using session = await Session.open({ root: "." });
  const set: ToolSet = await tools(session);
  const box: Experimental_SandboxSession = await sandbox(session);
  await session.call("Read", { file_path: "a.txt" });
  // @ts-expect-error the argument is called file_path
  await session.call("Read", { path: "a.txt" });
  // @ts-expect-error a pattern is required
  await session.call("Grep");
  await session.call("LS");
  await session.call("Lookup", { word: "crib" });
  return (await generateText({ model, tools: set, experimental_sandbox: box, prompt: "go" })).text;
}
