/** Mastra: tools for an agent, and a session as the filesystem and the sandbox of a workspace. */
import { fromPackage } from "./framework.js";
import { modelTools, type ToolSelection } from "./model_tools.js";
import type { Session } from "./session.js";

export { filesystem, type MastraFilesystem } from "./mastra_filesystem.js";
export { sandbox } from "./mastra_sandbox.js";

/** The tools of the session, by name, for the option `tools` of an agent. A failed call is a tool error. */
// `any`: the type belongs to Mastra.
export async function tools(session: Session, selection?: ToolSelection): Promise<Record<string, any>> {
  const { createTool } = await fromPackage("@mastra/core", () => import("@mastra/core/tools"));
  const all = await modelTools(session, selection);
  return Object.fromEntries(
    all.map(({ name, description, schema, call }) => [
      name,
      createTool({
        id: name,
        description,
        inputSchema: schema,
        execute: async (args: unknown, context?: { abortSignal?: AbortSignal }) => {
          const reply = await call(args, context?.abortSignal);
          if (!reply.success) {
            throw new Error(reply.output, { cause: reply.error });
          }
          return { text: reply.output, pictures: reply.pictures };
        },
        toModelOutput: modelOutput,
      }),
    ]),
  );
}

function modelOutput({ text, pictures }: { text: string; pictures: { mimeType: string; data: string }[] }): unknown {
  if (pictures.length === 0) {
    return { type: "text", value: text };
  }
  const media = pictures.map(({ mimeType, data }) => ({ type: "media", mediaType: mimeType, data }));
  return { type: "content", value: [{ type: "text", text }, ...media] };
}
