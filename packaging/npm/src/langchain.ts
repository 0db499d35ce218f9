/** LangChain: tools for `createAgent`, LangGraph's ToolNode and `bindTools`. */
import { fromPackage } from "./framework.js";
import { modelTools, type ToolSelection } from "./model_tools.js";
import type { Reply } from "./reply.js";
import type { Session } from "./session.js";

interface CallConfig {
  signal?: AbortSignal;
  toolCall?: { id?: string };
}

/**
 * The tools of the session. Each result is a ToolMessage with the metadata as its artifact; a failed call has the
 * status `error`.
 */
// `any`: the type belongs to LangChain.
export async function tools(session: Session, selection?: ToolSelection): Promise<any[]> {
  const [{ tool }, { ToolMessage }] = await fromPackage("langchain @langchain/core", () =>
    Promise.all([import("@langchain/core/tools"), import("@langchain/core/messages")]),
  );
  const all = await modelTools(session, selection);
  return all.map(({ name, description, schema, call }) => {
    const run = async (args: unknown, config?: CallConfig) => {
      const reply = await call(args, config?.signal);
      const id = config?.toolCall?.id;
      if (id === undefined) {
        return contentOf(reply);
      }
      return new ToolMessage({
        name,
        tool_call_id: id,
        content: contentOf(reply),
        artifact: reply.metadata,
        status: reply.success ? "success" : "error",
      });
    };
    return tool(run, { name, description, schema });
  });
}

function contentOf(reply: Reply): string | Record<string, unknown>[] {
  if (reply.pictures.length === 0) {
    return reply.output;
  }
  const images = reply.pictures.map(({ mimeType, data }) => ({
    type: "image_url",
    image_url: { url: `data:${mimeType};base64,${data}` },
  }));
  return [{ type: "text", text: reply.output }, ...images];
}
