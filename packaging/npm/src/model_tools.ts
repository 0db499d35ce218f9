/** The tools of a session, as an adapter passes them to its framework. */
import { InvalidArgument } from "./errors.js";
import { nearest } from "./nearest.js";
import { checkOptions } from "./options.js";
import type { JsonSchema } from "./own_tools.js";
import type { Reply } from "./reply.js";
import type { Session } from "./session.js";

export interface ToolSelection {
  /** The names of the tools to offer. Default: all of the session. */
  only?: readonly string[];
}

export interface ModelTool {
  name: string;
  description: string;
  schema: JsonSchema & { type: "object"; properties: Record<string, JsonSchema> };
  call: (args: unknown, signal: AbortSignal | null | undefined) => Promise<Reply>;
}

export async function modelTools(session: Session, selection: ToolSelection = {}): Promise<ModelTool[]> {
  checkOptions("tools", selection, { only: true });
  const definitions = await session.tools("mcp");
  const known = definitions.map(({ name }) => name);
  const wanted = selection.only === undefined ? known : [selection.only].flat();
  for (const name of wanted) {
    if (!known.includes(name)) {
      const meant = nearest(String(name), known);
      const question = meant === undefined ? "" : `Did you mean ${meant}? `;
      const hint = `${question}Its tools are: ${known.join(", ")}.`;
      throw new InvalidArgument("invalid", `the session has no tool ${name}`, hint);
    }
  }
  return definitions
    .filter(({ name }) => wanted.includes(name))
    .map(({ name, description, inputSchema }) => ({
      name,
      description,
      schema: { ...inputSchema, type: "object", properties: propertiesOf(inputSchema) },
      call: (args, signal) =>
        session.call(name, args as Record<string, unknown>, { signal: signal ?? undefined }),
    }));
}

function propertiesOf(schema: JsonSchema): Record<string, JsonSchema> {
  return (schema["properties"] as Record<string, JsonSchema> | undefined) ?? {};
}
