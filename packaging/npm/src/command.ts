/** Commands: their options, and what is known after they have ended. */
import type { Message } from "./frame_decoder.js";

/** A program with its arguments, which no shell interprets, or a text for bash. */
export type Command = string | readonly string[];

export interface CommandOptions {
  /** The working directory. Default: the first root. */
  cwd?: string | undefined;
  /** Variables for this command. */
  env?: Readonly<Record<string, string>> | undefined;
  /** Kills the command and its processes after this time. */
  timeoutMs?: number | undefined;
  /** Cancels the command. */
  signal?: AbortSignal | undefined;
  /** The most bytes of output that wait to be read. A command that writes more is cancelled. Default 256 MiB. */
  maxBuffer?: number | undefined;
}

export const COMMAND_OPTIONS: Readonly<Record<keyof CommandOptions, true>> = {
  cwd: true,
  env: true,
  timeoutMs: true,
  signal: true,
  maxBuffer: true,
};

export interface ExecOptions extends CommandOptions {
  /** Standard input. Default: none. */
  stdin?: string | Uint8Array | undefined;
  /** Gets each chunk as it arrives. */
  onStdout?: ((chunk: Uint8Array) => void) | undefined;
  onStderr?: ((chunk: Uint8Array) => void) | undefined;
}

export interface SpawnOptions extends CommandOptions {
  /** Whether standard input can be written. Default: `open`. */
  stdin?: "open" | "none" | undefined;
  /** Runs the command in a terminal of this size; its output is all in `stdout`. */
  pty?: { rows: number; cols: number } | undefined;
}

/** How a command ended. */
export interface Exit {
  /** `null` if a signal ended the command. */
  exitCode: number | null;
  /** The number of the signal that ended the command, or `null`. */
  signal: number | null;
  timedOut: boolean;
  durationMs: number;
  /** The id of the change in the journal, or `null` if no file was changed. */
  change: number | null;
  /** What the sandbox denied. */
  refused: string[];
  notes: string[];
}

/** A command that has ended, with its whole output. */
export class Completed implements Exit {
  readonly exitCode: number | null;
  readonly signal: number | null;
  readonly timedOut: boolean;
  readonly durationMs: number;
  readonly change: number | null;
  readonly refused: string[];
  readonly notes: string[];
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;

  constructor(exit: Exit, stdout: Uint8Array, stderr: Uint8Array) {
    this.exitCode = exit.exitCode;
    this.signal = exit.signal;
    this.timedOut = exit.timedOut;
    this.durationMs = exit.durationMs;
    this.change = exit.change;
    this.refused = exit.refused;
    this.notes = exit.notes;
    this.stdout = stdout;
    this.stderr = stderr;
  }

  /** Whether the exit code is 0. */
  get success(): boolean {
    return this.exitCode === 0;
  }

  /** stdout, decoded as UTF-8. */
  get stdoutText(): string {
    return new TextDecoder().decode(this.stdout);
  }

  /** stderr, decoded as UTF-8. */
  get stderrText(): string {
    return new TextDecoder().decode(this.stderr);
  }
}

/** The arguments of the operation `exec`. Fails at a timeout that JSON has no number for: it would mean no limit. */
export function execArguments(command: Command, options: SpawnOptions): Message {
  const { timeoutMs } = options;
  if (timeoutMs != null && !(Number.isSafeInteger(timeoutMs) && timeoutMs >= 0)) {
    throw new RangeError(`timeoutMs is a whole number of milliseconds, not ${timeoutMs}; without it there is no limit`);
  }
  return {
    ...(typeof command === "string" ? { shell: command } : { argv: command }),
    cwd: options.cwd,
    env: options.env,
    timeout_ms: timeoutMs,
    stdin: options.stdin,
    pty: options.pty,
  };
}

/** The end of a command out of the reply to `exec`. */
export function exitOf(message: Message): Exit {
  const result = message["result"] as Record<string, unknown>;
  return {
    exitCode: (result["exit_code"] as number | null | undefined) ?? null,
    signal: (result["signal"] as number | null | undefined) ?? null,
    timedOut: result["timed_out"] === true,
    durationMs: result["duration_ms"] as number,
    change: (result["change"] as number | null | undefined) ?? null,
    refused: (result["refused"] as string[] | undefined) ?? [],
    notes: (result["notes"] as string[] | undefined) ?? [],
  };
}
