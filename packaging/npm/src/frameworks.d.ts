// The parts of the frameworks that the adapters use. The adapters import a framework when they are called, so that
// this package depends on none of them.

declare module "ai" {
  export function jsonSchema(schema: unknown): unknown;
}

declare module "@mastra/core/tools" {
  export function createTool(options: unknown): unknown;
}

declare module "@mastra/core/workspace" {
  export class MastraSandbox {
    constructor(options: { name: string; processes: SandboxProcessManager });
    status: string;
  }
  export class ProcessHandle {
    constructor(options: unknown);
    stdout: string;
    stderr: string;
    emitStdout(text: string): void;
    emitStderr(text: string): void;
  }
  export class SandboxProcessManager {
    protected _tracked: Map<string, ProcessHandle>;
  }
  type FileError = new (path: string) => Error;
  export const FileNotFoundError: FileError;
  export const DirectoryNotFoundError: FileError;
  export const FileExistsError: FileError;
  export const IsDirectoryError: FileError;
  export const NotDirectoryError: FileError;
  export const DirectoryNotEmptyError: FileError;
  export const PermissionError: new (path: string, operation: string) => Error;
  export const StaleFileError: new (path: string, expected: Date, actual: Date) => Error;
}

declare module "@openai/agents" {
  export function tool(options: unknown): unknown;
  export function shellTool(options: unknown): unknown;
  export function applyPatchTool(options: unknown): unknown;
}

declare module "@anthropic-ai/sdk/lib/tools/ToolError" {
  export const ToolError: new (content: unknown) => Error;
}

declare module "@langchain/core/tools" {
  export function tool(run: unknown, options: unknown): unknown;
}

declare module "@langchain/core/messages" {
  export const ToolMessage: new (fields: unknown) => unknown;
}
