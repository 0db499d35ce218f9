// The adapter's types fit Mastra.
import { Agent } from "@mastra/core/agent";
import { Workspace, type WorkspaceFilesystem } from "@mastra/core/workspace";
import { Session } from "toolcrib";
import { filesystem, sandbox, tools } from "toolcrib/mastra";

export async function agent(session: Session): Promise<Agent> {
  const files: WorkspaceFilesystem = await filesystem(session);
  const workspace = new Workspace({ filesystem: files, sandbox: await sandbox(session) });
  return new Agent({ id: "a", name: "a", instructions: "", model: "any/model", workspace, tools: await tools(session) });
}
