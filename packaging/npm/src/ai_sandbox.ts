/** A session in the form of the AI SDK's sandbox session. */
import { ReadableStream, WritableStream } from "node:stream/web";

import { orNull, shellExitCode, writeWithParents } from "./adapter_files.js";
import { IsDirectory } from "./errors.js";
import type { FileKind } from "./files.js";
import type { Process } from "./running_process.js";
import type { Session } from "./session.js";

interface CommandOptions {
  command: string;
  workingDirectory?: string;
  env?: Record<string, string>;
  abortSignal?: AbortSignal;
}

interface PathOptions {
  path: string;
  abortSignal?: AbortSignal;
}

/** A process in the form of the AI SDK. */
export interface AiProcess {
  readonly stdout: globalThis.ReadableStream<Uint8Array>;
  readonly stderr: globalThis.ReadableStream<Uint8Array>;
  wait(): Promise<{ exitCode: number }>;
  kill(): Promise<void>;
}

export interface AiWritableProcess extends AiProcess {
  readonly stdin: globalThis.WritableStream<Uint8Array>;
}

/** A sandbox session of the AI SDK. */
export interface AiSandbox {
  readonly description: string;
  run(options: CommandOptions): Promise<{ exitCode: number; stdout: string; stderr: string }>;
  spawn: {
    (options: CommandOptions & { stdin: true }): Promise<AiWritableProcess>;
    (options: CommandOptions & { stdin?: false }): Promise<AiProcess>;
    (options: CommandOptions & { stdin?: boolean }): Promise<AiProcess | AiWritableProcess>;
  };
  readFile(options: PathOptions): Promise<globalThis.ReadableStream<Uint8Array> | null>;
  readBinaryFile(options: PathOptions): Promise<Uint8Array | null>;
  readTextFile(
    options: PathOptions & { encoding?: string; startLine?: number; endLine?: number },
  ): Promise<string | null>;
  writeFile(options: PathOptions & { content: globalThis.ReadableStream<Uint8Array> }): Promise<void>;
  writeBinaryFile(options: PathOptions & { content: Uint8Array }): Promise<void>;
  writeTextFile(options: PathOptions & { content: string; encoding?: string }): Promise<void>;
  stat(options: PathOptions): Promise<{ type: "file" | "directory" | "other"; size: number } | null>;
  listDirectory(options: PathOptions): Promise<{ name: string; type: FileKind }[] | null>;
  deleteFile(options: PathOptions): Promise<boolean>;
}

// A stream is written in parts, because one request holds its content in memory.
const STREAM_PART = 16 * 1024 * 1024;

/** The session as `experimental_sandbox`: commands are confined, and every change can be undone. */
export async function sandbox(session: Session): Promise<AiSandbox> {
  const { roots, sandbox: confinement } = await session.info();
  return {
    description:
      `Commands run with bash in ${roots[0]} and can change files only below ${roots.join(", ")} and in /tmp. ` +
      `Confinement: ${confinement.name} (level ${confinement.level}).`,
    ...commands(session),
    ...reads(session),
    ...writes(session),
  };
}

function commands(session: Session): Pick<AiSandbox, "run" | "spawn"> {
  const optionsOf = ({ workingDirectory: cwd, env, abortSignal: signal }: CommandOptions) => ({ cwd, env, signal });
  return {
    run: async (options) => {
      const done = await session.exec(options.command, optionsOf(options));
      return { exitCode: shellExitCode(done), stdout: done.stdoutText, stderr: done.stderrText };
    },
    spawn: (async (options: CommandOptions & { stdin?: boolean }) => {
      const stdin = options.stdin ? "open" : "none";
      return processOf(await session.spawn(options.command, { ...optionsOf(options), stdin }), stdin === "open");
    }) as AiSandbox["spawn"],
  };
}

function processOf(process: Process, writable: boolean): AiProcess | AiWritableProcess {
  const handle: AiProcess = {
    stdout: ReadableStream.from(process.stdout) as globalThis.ReadableStream<Uint8Array>,
    stderr: ReadableStream.from(process.stderr) as globalThis.ReadableStream<Uint8Array>,
    wait: async () => ({ exitCode: shellExitCode(await process.wait()) }),
    kill: () => process.kill(),
  };
  if (!writable) {
    return handle;
  }
  const stdin = new WritableStream<Uint8Array>({
    write: (chunk) => process.stdin.write(chunk),
    close: () => process.stdin.close(),
    abort: () => process.stdin.close(),
  });
  return { ...handle, stdin };
}

function reads(
  session: Session,
): Pick<AiSandbox, "readFile" | "readBinaryFile" | "readTextFile" | "stat" | "listDirectory"> {
  return {
    readFile: async ({ path, abortSignal: signal }) => {
      const parts = session.readParts(path, { signal });
      const first = await orNull(parts.next());
      return first && (ReadableStream.from(startingWith(first, parts)) as globalThis.ReadableStream<Uint8Array>);
    },
    readBinaryFile: ({ path, abortSignal: signal }) => orNull(session.read(path, { signal })),
    readTextFile: async ({ path, encoding, startLine, endLine, abortSignal: signal }) => {
      const bytes = await orNull(session.read(path, { signal }));
      return bytes && linesOf(new TextDecoder(encoding).decode(bytes), startLine, endLine);
    },
    stat: async ({ path, abortSignal: signal }) => {
      const found = await orNull(session.stat(path, { signal }));
      return found && { type: found.kind === "symlink" ? "other" : found.kind, size: found.size };
    },
    listDirectory: async ({ path, abortSignal: signal }) => {
      const found = await orNull(session.list(path, { signal }));
      return found && found.entries.map(({ name, kind }) => ({ name, type: kind }));
    },
  };
}

function writes(session: Session): Pick<AiSandbox, "writeFile" | "writeBinaryFile" | "writeTextFile" | "deleteFile"> {
  return {
    writeFile: async ({ path, content, abortSignal: signal }) => {
      let append = false;
      for await (const part of inParts(content)) {
        await writeWithParents(session, path, part, { append, signal });
        append = true;
      }
    },
    writeBinaryFile: ({ path, content, abortSignal: signal }) => writeWithParents(session, path, content, { signal }),
    writeTextFile: ({ path, content, encoding, abortSignal: signal }) =>
      writeWithParents(session, path, Buffer.from(content, encoding as BufferEncoding | undefined), { signal }),
    deleteFile: async ({ path, abortSignal: signal }) => {
      const found = await orNull(session.stat(path, { follow: false, signal }));
      if (found?.kind === "directory") {
        throw new IsDirectory("is_directory", `${path} is a directory`);
      }
      return found !== null && (await session.remove(path, { missingOk: true, signal })).removed > 0;
    },
  };
}

function linesOf(text: string, startLine = 1, endLine?: number): string {
  if (startLine === 1 && endLine === undefined) {
    return text;
  }
  return text.split("\n").slice(startLine - 1, endLine).join("\n");
}

async function* startingWith<Value>(
  first: IteratorResult<Value, unknown>,
  rest: AsyncIterable<Value>,
): AsyncGenerator<Value> {
  if (!first.done) {
    yield first.value;
    yield* rest;
  }
}

/** The content in parts; an empty stream is one empty part. */
async function* inParts(stream: globalThis.ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  let chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream as ReadableStream<Uint8Array>) {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= STREAM_PART) {
      yield Buffer.concat(chunks);
      chunks = [];
      size = 0;
    }
  }
  yield Buffer.concat(chunks);
}
