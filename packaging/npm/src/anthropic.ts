/** Anthropic SDK: tools for `client.beta.messages.toolRunner`. */
import { fromPackage } from "./framework.js";
import { modelTools, type ToolSelection } from "./model_tools.js";
import type { Picture, Reply } from "./reply.js";
import type { Session } from "./session.js";

type MediaType = "image/jpeg" | "image/png" | "image/gif" | "image/webp";

type AnthropicContent =
  | { type: "text"; text: string }
  | { type: "image"; source: { type: "base64"; media_type: MediaType; data: string } };

/** A tool of the Anthropic SDK's tool runner. */
export interface AnthropicRunnableTool {
  type: "custom";
  name: string;
  description: string;
  input_schema: { type: "object"; properties: Record<string, unknown> };
  run: (
    args: unknown,
    context?: { signal?: AbortSignal | null | undefined },
  ) => Promise<string | AnthropicContent[]>;
  parse: (content: unknown) => unknown;
}

/** The tools of the session, for the option `tools` of the tool runner. A failed call has `is_error`. */
export async function tools(session: Session, selection?: ToolSelection): Promise<AnthropicRunnableTool[]> {
  const { ToolError } = await fromPackage("@anthropic-ai/sdk", () => import("@anthropic-ai/sdk/lib/tools/ToolError"));
  const all = await modelTools(session, selection);
  return all.map(({ name, description, schema, call }) => ({
    type: "custom",
    name,
    description,
    input_schema: schema,
    run: async (args, context) => {
      const reply = await call(args, context?.signal);
      if (!reply.success) {
        throw new ToolError(reply.output);
      }
      return contentOf(reply);
    },
    // The program checks the arguments, and its errors help the model more.
    parse: (content) => content,
  }));
}

function contentOf(reply: Reply): string | AnthropicContent[] {
  return reply.pictures.length === 0
    ? reply.output
    : [{ type: "text", text: reply.output }, ...reply.pictures.map(image)];
}

function image({ mimeType, data }: Picture): AnthropicContent {
  return { type: "image", source: { type: "base64", media_type: mimeType as MediaType, data } };
}
