/** Tools that the caller implements: the program checks and records a call and lets this process run it. */
import type { Connection } from "./connection.js";
import type { Message } from "./frame_decoder.js";

/** A JSON Schema. */
export type JsonSchema = Record<string, unknown>;

/** A tool of the caller. */
export interface OwnTool {
  name: string;
  /** What the model reads about it. */
  description: string;
  /** The JSON Schema of its arguments: an object. */
  schema: JsonSchema;
  /** Whether it changes nothing. Default false. */
  readOnly?: boolean;
  /** What it acts on outside of the workspace, such as a host; the policy decides on it. */
  reaches?: string;
  /** Runs a call. The result is the text for the model; an exception is an error for the model. */
  run: (args: Record<string, unknown>, context: { signal: AbortSignal }) => string | Promise<string>;
}

/** The tools of one session, and their running calls. */
export class OwnTools {
  readonly #tools: ReadonlyMap<string, OwnTool>;
  readonly #running = new Map<string, AbortController>();

  constructor(tools: readonly OwnTool[]) {
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
  }

  /** Runs a call and sends its result. */
  async invoke(message: Message, connection: Connection): Promise<void> {
    const invocation = String(message["invoke"]);
    const controller = new AbortController();
    this.#running.set(invocation, controller);
    const result = await this.#run(message, controller.signal);
    this.#running.delete(invocation);
    connection.notify({ invoked: invocation, ...result });
  }

  /** Aborts a running call. */
  cancel(message: Message): void {
    this.#running.get(String(message["invoke_cancelled"]))?.abort();
  }

  /** Aborts all running calls. */
  cancelAll(): void {
    this.#running.forEach((controller) => controller.abort());
    this.#running.clear();
  }

  async #run(message: Message, signal: AbortSignal): Promise<{ success: boolean; output: string }> {
    const name = String(message["tool"]);
    const tool = this.#tools.get(name);
    if (!tool) {
      return { success: false, output: `there is no function for the tool ${name}` };
    }
    try {
      const args = (message["args"] as Record<string, unknown> | undefined) ?? {};
      return { success: true, output: String(await tool.run(args, { signal })) };
    } catch (error) {
      return { success: false, output: error instanceof Error ? error.message : String(error) };
    }
  }
}

/** The registration of a tool. */
export function registration(tool: OwnTool): Message {
  const { name, description, schema, readOnly, reaches } = tool;
  return { op: "register", args: { name, description, schema, read_only: readOnly ?? false, reaches } };
}
