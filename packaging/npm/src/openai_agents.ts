/** OpenAI Agents SDK: function tools, and the implementations of its shell and apply_patch tools. */
import { fromPackage } from "./framework.js";
import { modelTools, type ToolSelection } from "./model_tools.js";
import type { Reply } from "./reply.js";
import type { Session } from "./session.js";

/** The tools of the session, for the option `tools` of an agent. A failed call is text for the model. */
// `any`: the type belongs to the SDK.
export async function tools(session: Session, selection?: ToolSelection): Promise<any[]> {
  const { tool } = await fromPackage("@openai/agents", () => import("@openai/agents"));
  const all = await modelTools(session, selection);
  return all.map(({ name, description, schema, call }) =>
    tool({
      name,
      description,
      parameters: { ...schema, required: schema["required"] ?? [], additionalProperties: true },
      // Strict mode would make every optional argument required.
      strict: false,
      execute: async (args: unknown, _context: unknown, details?: { signal?: AbortSignal }) =>
        outputOf(await call(args, details?.signal)),
      errorFunction: (_context: unknown, error: unknown) => (error instanceof Error ? error.message : String(error)),
    }),
  );
}

interface ShellAction {
  commands: string[];
  timeoutMs?: number | undefined;
  maxOutputLength?: number | undefined;
}

// A type rather than an interface, because the SDK's type allows further fields.
type ShellOutput = {
  stdout: string;
  stderr: string;
  outcome: { type: "timeout" } | { type: "exit"; exitCode: number | null };
};

/** The shell of `shellTool({ shell: shell(session) })`. */
export function shell(session: Session): {
  run(action: ShellAction): Promise<{ output: ShellOutput[]; maxOutputLength?: number }>;
} {
  return {
    run: async ({ commands, timeoutMs, maxOutputLength }) => {
      const output: ShellOutput[] = [];
      for (const command of commands) {
        const done = await session.exec(command, { timeoutMs });
        output.push({
          stdout: done.stdoutText.slice(0, maxOutputLength),
          stderr: done.stderrText.slice(0, maxOutputLength),
          outcome: done.timedOut ? { type: "timeout" } : { type: "exit", exitCode: done.exitCode },
        });
      }
      return maxOutputLength === undefined ? { output } : { output, maxOutputLength };
    },
  };
}

interface PatchResult {
  status: "completed" | "failed";
  output: string;
}

/** The editor of `applyPatchTool({ editor: editor(session) })`. */
export function editor(session: Session): {
  createFile(operation: { path: string; diff: string }): Promise<PatchResult>;
  updateFile(operation: { path: string; diff: string; moveTo?: string | undefined }): Promise<PatchResult>;
  deleteFile(operation: { path: string }): Promise<PatchResult>;
} {
  const apply = async (...lines: string[]): Promise<PatchResult> => {
    const patch = ["*** Begin Patch", ...lines, "*** End Patch", ""].join("\n");
    const { success, output } = await session.call("ApplyPatch", { patch });
    return { status: success ? "completed" : "failed", output };
  };
  const body = (diff: string) => diff.replace(/\n$/, "");
  return {
    createFile: ({ path, diff }) => apply(`*** Add File: ${path}`, body(diff)),
    updateFile: ({ path, diff, moveTo }) =>
      apply(`*** Update File: ${path}`, ...(moveTo === undefined ? [] : [`*** Move to: ${moveTo}`]), body(diff)),
    deleteFile: ({ path }) => apply(`*** Delete File: ${path}`),
  };
}

function outputOf(reply: Reply): string | Record<string, unknown>[] {
  if (reply.pictures.length === 0) {
    return reply.output;
  }
  const images = reply.pictures.map(({ mimeType, data }) => ({ type: "image", image: { data, mediaType: mimeType } }));
  return [{ type: "text", text: reply.output }, ...images];
}
