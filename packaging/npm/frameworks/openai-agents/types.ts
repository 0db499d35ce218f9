// The adapter's types fit the OpenAI Agents SDK.
import { Agent, applyPatchTool, shellTool, type Editor, type Shell } from "@openai/agents";
import { Session } from "toolcrib";
import { editor, shell, tools } from "toolcrib/openai-agents";

export async function agent(session: Session): Promise<Agent> {
  const ours: Shell = shell(session);
  const patches: Editor = editor(session);
  const own = [shellTool({ shell: ours }), applyPatchTool({ editor: patches })];
  return new Agent({ name: "coder", tools: [...(await tools(session)), ...own] });
}
