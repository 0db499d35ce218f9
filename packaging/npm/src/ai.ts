/** Vercel AI SDK: tools for `generateText` and agents, and a session as `experimental_sandbox`. */
import { fromPackage } from "./framework.js";
import { modelTools, type ToolSelection } from "./model_tools.js";
import type { Picture, Reply } from "./reply.js";
import type { Session } from "./session.js";

export { sandbox, type AiProcess, type AiSandbox, type AiWritableProcess } from "./ai_sandbox.js";

/** What a tool returns to the AI SDK. */
export interface AiToolOutput {
  text: string;
  metadata: Readonly<Record<string, unknown>>;
  pictures: readonly Picture[];
}

type AiContent =
  | { type: "text"; text: string }
  | { type: "file"; mediaType: string; data: { type: "data"; data: string } };

type AiModelOutput = { type: "text"; value: string } | { type: "content"; value: AiContent[] };

/** A tool of the AI SDK. */
export interface AiTool {
  description: string;
  // `any`: the schema type belongs to the AI SDK.
  inputSchema: any;
  execute: (input: unknown, options: { abortSignal?: AbortSignal | undefined }) => Promise<AiToolOutput>;
  toModelOutput: (options: { output: AiToolOutput }) => AiModelOutput;
}

/** The tools of the session, for the option `tools`. A failed call is a tool error, which the model reads. */
export async function tools(session: Session, selection?: ToolSelection): Promise<Record<string, AiTool>> {
  const { jsonSchema } = await fromPackage("ai", () => import("ai"));
  const all = await modelTools(session, selection);
  return Object.fromEntries(
    all.map(({ name, description, schema, call }) => [
      name,
      {
        description,
        inputSchema: jsonSchema(schema),
        execute: async (input, { abortSignal }) => outputOf(await call(input, abortSignal)),
        toModelOutput: ({ output }) => modelOutput(output),
      } satisfies AiTool,
    ]),
  );
}

function outputOf(reply: Reply): AiToolOutput {
  if (!reply.success) {
    throw new Error(reply.output, { cause: reply.error });
  }
  return { text: reply.output, metadata: reply.metadata, pictures: reply.pictures };
}

function modelOutput({ text, pictures }: AiToolOutput): AiModelOutput {
  if (pictures.length === 0) {
    return { type: "text", value: text };
  }
  const files = pictures.map(
    ({ mimeType, data }): AiContent => ({ type: "file", mediaType: mimeType, data: { type: "data", data } }),
  );
  return { type: "content", value: [{ type: "text", text }, ...files] };
}
