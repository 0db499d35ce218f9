/** One running program: starts it, sends requests, passes replies and events to whoever waits for them. */
import { spawn, type ChildProcess } from "node:child_process";
import { statSync } from "node:fs";
import type { Readable, Writable } from "node:stream";

import { LimitExceeded, NotADirectory, NotFound, SessionClosed, StartFailed } from "./errors.js";
import { encodeLine, FrameDecoder, type Frame, type Message } from "./frame_decoder.js";
import * as liveChildren from "./live_children.js";

// What the program accepts.
const MAX_LINE = 32 * 1024 * 1024;
const MAX_PAYLOAD = 256 * 1024 * 1024;

// Enough for the program's own error message.
const STDERR_TAIL = 8 * 1024;
// A program that was told to end cancels its commands first, which takes a moment on a busy machine.
const TERM_AFTER_MS = 10_000;
const KILL_AFTER_MS = 5_000;
const PIPES_AFTER_EXIT_MS = 1_000;

// A process that could not be started may have no pipes.
interface Pipes {
  readonly stdin?: Writable;
  readonly stdout?: Readable;
  readonly stderr?: Readable;
}

/** How to start the program. */
export interface Launch {
  roots: readonly string[];
  program: string;
  args: readonly string[];
  env: NodeJS.ProcessEnv;
}

/** A request that has been sent. */
export interface Sent {
  id: number;
  reply: Promise<Frame>;
}

interface Waiting {
  resolve: (frame: Frame) => void;
  reject: (error: Error) => void;
  onEvent: ((frame: Frame) => void) | undefined;
}

export class Connection {
  readonly #child: ChildProcess;
  readonly #pipes: Pipes;
  readonly #waiting = new Map<number, Waiting>();
  readonly #decoder = new FrameDecoder();
  readonly #onOther: (message: Message, connection: Connection) => void;
  readonly #gone: Promise<void>;
  #nextId = 1;
  #stderr = "";
  #failure: Error | undefined;
  #hasAnswered = false;

  /** `onOther` gets the messages that answer no request: questions and invocations. */
  constructor(launch: Launch, onOther: (message: Message, connection: Connection) => void) {
    this.#onOther = onOther;
    this.#child = spawn(launch.program, launch.args, { env: launch.env, stdio: ["pipe", "pipe", "pipe"] });
    this.#pipes = this.#child as Pipes;
    liveChildren.add(this.#child);
    this.#gone = new Promise<void>((resolve) => {
      this.#child.on("error", (error) => {
        this.#fail(new StartFailed(`cannot start ${launch.program}: ${error.message}`));
        resolve();
      });
      this.#child.on("exit", () => {
        // A process that it left behind may keep the pipes open.
        setTimeout(() => this.#destroyPipes(), PIPES_AFTER_EXIT_MS).unref();
      });
      this.#child.on("close", (code, signal) => {
        this.#fail(this.#death(launch.roots, code, signal));
        resolve();
      });
    }).then(() => liveChildren.remove(this.#child));
    // The exit of the program says more than a broken pipe.
    this.#pipes.stdin?.on("error", () => {});
    this.#pipes.stderr?.on("data", (chunk: Buffer) => {
      this.#stderr = (this.#stderr + chunk.toString("utf8")).slice(-STDERR_TAIL);
    });
    this.#pipes.stdout?.on("data", (chunk: Buffer) => this.#receive(chunk));
    this.#keepEventLoop(false);
  }

  /** Whether requests can be sent. */
  get alive(): boolean {
    return this.#failure === undefined;
  }

  /** The process id of the program. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Sends a request. Its id is added. `onEvent` gets the events until the reply. */
  send(message: Message, payload?: Uint8Array, onEvent?: (frame: Frame) => void): Sent {
    const id = this.#nextId++;
    const line = encodeLine({ id, ...message }, payload);
    if (line.length - 1 > MAX_LINE || (payload?.length ?? 0) > MAX_PAYLOAD) {
      throw new LimitExceeded("limit", "the request is too large for the program", "Send it in parts.");
    }
    if (this.#failure) {
      throw this.#failure;
    }
    const reply = new Promise<Frame>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, onEvent });
    });
    this.#keepEventLoop(true);
    this.#write(line, payload);
    return { id, reply };
  }

  /** Sends a message that gets no reply. */
  notify(message: Message): void {
    if (this.alive) {
      this.#write(encodeLine(message));
    }
  }

  /** Cancels what is running, ends the program and waits until it has gone. */
  async close(reason: Error): Promise<void> {
    for (const id of this.#waiting.keys()) {
      this.notify({ cancel: id });
    }
    this.#fail(reason);
    this.#pipes.stdin?.end();
    this.#keepEventLoop(true);
    const timers = [
      setTimeout(() => this.#child.kill("SIGTERM"), TERM_AFTER_MS),
      setTimeout(() => this.#child.kill("SIGKILL"), TERM_AFTER_MS + KILL_AFTER_MS),
    ];
    await this.#gone;
    timers.forEach(clearTimeout);
  }

  #write(line: Uint8Array, payload?: Uint8Array): void {
    const { stdin } = this.#pipes;
    stdin?.cork();
    stdin?.write(line);
    if (payload !== undefined && payload.length > 0) {
      stdin?.write(payload);
    }
    stdin?.uncork();
  }

  #receive(chunk: Uint8Array): void {
    if (this.#failure) {
      return;
    }
    try {
      for (const frame of this.#decoder.push(chunk)) {
        this.#dispatch(frame);
      }
    } catch (error) {
      this.#fail(new SessionClosed((error as Error).message, "Check that `binary` is toolcrib.", { cause: error }));
      this.#child.kill("SIGTERM");
    }
  }

  #dispatch(frame: Frame): void {
    this.#hasAnswered = true;
    const id = frame.message["id"];
    const waiting = typeof id === "number" ? this.#waiting.get(id) : undefined;
    if (waiting === undefined) {
      this.#onOther(frame.message, this);
    } else if ("event" in frame.message) {
      this.#passEvent(id as number, waiting, frame);
    } else {
      this.#forget(id as number);
      waiting.resolve(frame);
    }
  }

  /** An error in a callback of the caller ends only the request of that caller. */
  #passEvent(id: number, waiting: Waiting, frame: Frame): void {
    try {
      waiting.onEvent?.(frame);
    } catch (error) {
      this.#forget(id);
      this.notify({ cancel: id });
      waiting.reject(error as Error);
    }
  }

  #forget(id: number): void {
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) {
      this.#keepEventLoop(false);
    }
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const one of waiting) {
      one.reject(this.#failure);
    }
  }

  #death(roots: readonly string[], code: number | null, signal: NodeJS.Signals | null): Error {
    const end = signal ? `signal ${signal}` : `exit code ${code}`;
    const stderr = this.#stderr.trim();
    const words = stderr ? `: ${stderr}` : "";
    if (this.#hasAnswered) {
      const hint = "The call may have had effects: `history()` shows the recorded changes.";
      return new SessionClosed(`the program ended (${end})${words}`, hint);
    }
    return wrongRoot(roots) ?? new StartFailed(`the program did not start: it ended (${end}) before its first answer${words}`);
  }

  #destroyPipes(): void {
    this.#pipes.stdin?.destroy();
    this.#pipes.stdout?.destroy();
    this.#pipes.stderr?.destroy();
  }

  /** An idle session must not keep the process running; a request must. */
  #keepEventLoop(keep: boolean): void {
    if (this.#child.pid === undefined) {
      // It was not started, and Deno cannot unref it.
      return;
    }
    const { stdin, stdout, stderr } = this.#pipes;
    for (const handle of [this.#child, stdin, stdout, stderr]) {
      (handle as Partial<Record<"ref" | "unref", () => void>> | undefined)?.[keep ? "ref" : "unref"]?.();
    }
  }
}

/** The error of the first root that is no directory. */
function wrongRoot(roots: readonly string[]): Error | undefined {
  const hint = "Check `root` of the session.";
  for (const root of roots) {
    const path = root.replace(/:ro$/, "");
    try {
      if (!statSync(path).isDirectory()) {
        return new NotADirectory("not_a_directory", `the root ${path} is not a directory`, hint);
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") {
        return new NotFound("not_found", `the root ${path} does not exist`, hint);
      }
    }
  }
  return undefined;
}
