/** A session: tools, commands and files of one workspace, in one running program. */
import { inspect } from "node:util";

import { BackgroundJob } from "./background_job.js";
import { bytesOf } from "./byte_stream.js";
import { Channel } from "./channel.js";
import { COMMAND_OPTIONS, Completed, type Command, type ExecOptions, type SpawnOptions } from "./command.js";
import * as files from "./files.js";
import type { Frame, Message } from "./frame_decoder.js";
import type { BashArguments, ToolArguments, UndoArguments } from "./generated/tool_arguments.js";
import { checkOptions } from "./options.js";
import { Reply } from "./reply.js";
import { Process } from "./running_process.js";
import type { SessionOptions } from "./session_options.js";
import type { ToolDefinitions } from "./tool_definitions.js";

/** Progress of a call. */
export interface Progress {
  done: number;
  total: number | null;
  message: string;
}

export interface CallOptions {
  /** Cancels the call: the promise is rejected with the reason of the signal when the call has ended. */
  signal?: AbortSignal | undefined;
  /** Changes nothing, and shows what would be done. */
  dryRun?: boolean | undefined;
  onProgress?: ((progress: Progress) => void) | undefined;
}

/** The arguments of a built-in tool are typed; those of other tools are any object. */
export type CallParameters<Name extends string> = Name extends keyof ToolArguments
  ? Partial<ToolArguments[Name]> extends ToolArguments[Name]
    ? [args?: ToolArguments[Name], options?: CallOptions]
    : [args: ToolArguments[Name], options?: CallOptions]
  : [args?: Record<string, unknown>, options?: CallOptions];

interface Abortable {
  signal?: AbortSignal | undefined;
}

/** What the program is and what it offers. */
export interface Info {
  version: string;
  protocol: number;
  roots: string[];
  /** The session's `/tmp`, as commands see it. */
  tmp: string;
  sandbox: { level: number; name: string };
}

/** A change in the journal, as History lists it. */
export type Change = Readonly<Record<string, unknown>> & { id: number };

/** A point in the journal. */
export type Snapshot = number;

/** A session. Open one with `Session.open`, and close it, or declare it with `await using`. */
export class Session implements AsyncDisposable {
  readonly #channel: Channel;

  private constructor(channel: Channel) {
    this.#channel = channel;
  }

  /** Starts the program and waits until it answers. */
  static async open(options: SessionOptions = {}): Promise<Session> {
    const channel = new Channel(options);
    await channel.open();
    return new Session(channel);
  }

  /** Calls a tool. A call that fails has a reply too; `reply.orThrow()` throws its error. */
  call<Name extends string>(tool: Name, ...rest: CallParameters<Name>): Promise<Reply>;
  async call(tool: string, args: object = {}, options: CallOptions = {}): Promise<Reply> {
    checkOptions("call", options, { signal: true, dryRun: true, onProgress: true });
    const { onProgress, dryRun, signal } = options;
    const request: Message = { tool, args };
    if (dryRun) {
      request["dry_run"] = true;
    }
    if (onProgress) {
      request["progress"] = true;
    }
    const onEvent = onProgress && ((frame: Frame) => onProgress(progressOf(frame.message)));
    return new Reply((await this.#channel.request(request, { signal, onEvent })).message);
  }

  /** Runs a command to its end. The exit code is in the result; only a command that could not run is an error. */
  async exec(command: Command, options: ExecOptions = {}): Promise<Completed> {
    checkOptions("exec", options, { ...COMMAND_OPTIONS, stdin: true, onStdout: true, onStderr: true });
    const { onStdout, onStderr, stdin, ...rest } = options;
    const input = stdin === undefined ? undefined : bytesOf(stdin, "stdin");
    const process = await Process.start(this.#channel, command, rest, input, (stream, chunk) => {
      (stream === "stdout" ? onStdout : onStderr)?.(chunk);
    });
    const exit = await process.wait();
    return new Completed(exit, await process.stdout.bytes(), await process.stderr.bytes());
  }

  /** Starts a command. */
  async spawn(command: Command, options: SpawnOptions = {}): Promise<Process> {
    checkOptions("spawn", options, { ...COMMAND_OPTIONS, stdin: true, pty: true });
    const stdin = options.stdin ?? (options.pty ? undefined : "open");
    return Process.start(this.#channel, command, { ...options, stdin }, undefined);
  }

  /** Starts a background job with the tool Bash: the agent can read and end it too. */
  async background(command: string, args: Omit<BashArguments, "command" | "run_in_background"> = {}): Promise<BackgroundJob> {
    const reply = (await this.call("Bash", { ...args, command, run_in_background: true })).orThrow();
    return new BackgroundJob(this, String(reply.metadata["bash_id"]));
  }

  /** A background job by its id. */
  job(id: string): BackgroundJob {
    return new BackgroundJob(this, id);
  }

  /** Reads a file. */
  async read(path: string, options: files.ReadOptions = {}): Promise<Uint8Array> {
    checkOptions("read", options, files.READ_OPTIONS);
    return files.readFile(this.#channel, path, options);
  }

  /** Reads a file as UTF-8. */
  async readText(path: string, options: Abortable = {}): Promise<string> {
    checkOptions("readText", options, { signal: true });
    return new TextDecoder().decode(await this.read(path, options));
  }

  /** Reads a file in parts of 16 MiB. */
  readParts(path: string, options: files.ReadOptions = {}): AsyncGenerator<Uint8Array> {
    checkOptions("readParts", options, files.READ_OPTIONS);
    return files.readParts(this.#channel, path, options);
  }

  /** Writes a file of up to 256 MiB. */
  async write(
    path: string,
    data: string | Uint8Array,
    options: files.WriteOptions = {},
  ): Promise<files.Changed & { created: boolean }> {
    checkOptions("write", options, { append: true, executable: true, signal: true });
    const { append, executable, signal } = options;
    return this.#result("write", { path, append, executable }, { payload: bytesOf(data, "data"), signal });
  }

  async stat(path: string, options: { follow?: boolean } & Abortable = {}): Promise<files.Stat> {
    checkOptions("stat", options, { follow: true, signal: true });
    const { follow, signal } = options;
    return files.statOf(await this.#result("stat", { path, follow }, { signal }));
  }

  /** Lists a directory. */
  async list(path = ".", options: Abortable = {}): Promise<files.Listing> {
    checkOptions("list", options, { signal: true });
    return this.#result("list", { path }, options);
  }

  async mkdir(
    path: string,
    options: { parents?: boolean; existOk?: boolean } & Abortable = {},
  ): Promise<files.Changed & { created: boolean }> {
    checkOptions("mkdir", options, { parents: true, existOk: true, signal: true });
    const { parents, existOk, signal } = options;
    return this.#result("mkdir", { path, parents, exist_ok: existOk }, { signal });
  }

  async remove(
    path: string,
    options: { recursive?: boolean; missingOk?: boolean } & Abortable = {},
  ): Promise<files.Changed & { removed: number }> {
    checkOptions("remove", options, { recursive: true, missingOk: true, signal: true });
    const { recursive, missingOk, signal } = options;
    return this.#result("remove", { path, recursive, missing_ok: missingOk }, { signal });
  }

  async move(from: string, to: string, options: { overwrite?: boolean } & Abortable = {}): Promise<files.Changed> {
    checkOptions("move", options, { overwrite: true, signal: true });
    const { overwrite, signal } = options;
    return this.#result("move", { from, to, overwrite }, { signal });
  }

  /** The absolute path without symlinks. */
  async realpath(path: string, options: Abortable = {}): Promise<string> {
    checkOptions("realpath", options, { signal: true });
    return (await this.#result<{ path: string }>("realpath", { path }, options)).path;
  }

  /** A point to which `restore` returns. */
  async snapshot(): Promise<Snapshot> {
    return (await this.#result<{ snapshot: Snapshot }>("snapshot", {})).snapshot;
  }

  /** Takes back all changes since the snapshot. If later edits of others overlap, nothing is written (`Conflict`). */
  async restore(snapshot: Snapshot): Promise<{ undone: number[]; files: number }> {
    return this.#result("restore", { snapshot });
  }

  /** The definitions of the tools for the API of a model, with your own tools. */
  async tools<Format extends keyof ToolDefinitions>(format: Format): Promise<ToolDefinitions[Format][]> {
    return (await this.#result<{ tools: ToolDefinitions[Format][] }>("tools", { format })).tools;
  }

  /** The last changes, newest first. */
  async history(limit?: number): Promise<Change[]> {
    return (await this.call("History", { limit })).orThrow().metadata["changes"] as Change[];
  }

  /** Takes back the last change, or those that the arguments name; later edits are kept. */
  async undo(args: UndoArguments = {}): Promise<Reply> {
    if (typeof args !== "object" || args === null) {
      throw new TypeError(`undo takes an object, such as { steps: 1 } or { id: 7 }, not ${inspect(args)}`);
    }
    for (const name of ["id", "since"] as const) {
      // Without an id, the last change would be taken back, whoever made it.
      if (name in args && (args[name] ?? null) === null) {
        throw new TypeError(`undo: ${name} is ${args[name]}. A command that changed no file has no change to undo.`);
      }
    }
    return (await this.call("Undo", args)).orThrow();
  }

  async info(): Promise<Info> {
    return this.#result("info", {});
  }

  /** The process id of the program, while it runs. */
  get pid(): number | undefined {
    return this.#channel.pid;
  }

  /** Whether the session was closed. */
  get closed(): boolean {
    return this.#channel.closed;
  }

  /** Cancels what runs, ends the program and waits for its end. */
  async close(): Promise<void> {
    await this.#channel.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #result<Result = Record<string, unknown>>(
    op: string,
    args: Message,
    options: { payload?: Uint8Array; signal?: AbortSignal | undefined } = {},
  ): Promise<Result> {
    return (await this.#channel.op(op, args, options)).message["result"] as Result;
  }
}

function progressOf(message: Message): Progress {
  return {
    done: message["done"] as number,
    total: (message["total"] as number | null | undefined) ?? null,
    message: (message["message"] as string | undefined) ?? "",
  };
}
