/** A command that runs: its streams, signals and end. */
import { ByteStream, bytesOf } from "./byte_stream.js";
import type { Channel } from "./channel.js";
import { execArguments, exitOf, type Command, type Exit, type SpawnOptions } from "./command.js";
import type { Connection } from "./connection.js";
import { LimitExceeded, succeeded } from "./errors.js";
import type { Frame, Message } from "./frame_decoder.js";
import { checkOptions } from "./options.js";

const DEFAULT_MAX_BUFFER = 256 * 1024 * 1024;
// Small enough that other requests are not delayed.
const STDIN_CHUNK = 1024 * 1024;

export type SignalName = "TERM" | "INT" | "HUP" | "QUIT" | "KILL" | "USR1" | "USR2";

/** Standard input of a command. Writes are made in order. */
export interface ProcessInput {
  /** Resolves when the bytes were written. */
  write(data: string | Uint8Array): Promise<void>;
  /** Ends the input after the writes before it. */
  close(): Promise<void>;
}

/** A running command, as `Session.spawn` returns it. */
export class Process implements AsyncDisposable {
  readonly stdout = new ByteStream();
  readonly stderr = new ByteStream();
  readonly stdin: ProcessInput;
  #connection!: Connection;
  #id = 0;
  #exited!: Promise<Exit>;
  #running = true;
  #written: Promise<void> = Promise.resolve();

  private constructor() {
    this.stdin = {
      write: async (data) => {
        const bytes = bytesOf(data, "data");
        await this.#inOrder(() => this.#writeAll(bytes));
      },
      close: () => this.#inOrder(() => this.#control("close_stdin", {})),
    };
  }

  /** @internal Starts a command and waits until it runs. */
  static async start(
    channel: Channel,
    command: Command,
    options: SpawnOptions,
    input: Uint8Array | undefined,
    onOutput?: (stream: "stdout" | "stderr", chunk: Uint8Array) => void,
  ): Promise<Process> {
    const started = new Process();
    const limit = options.maxBuffer ?? DEFAULT_MAX_BUFFER;
    await new Promise<void>((resolve, reject) => {
      const reply = channel.request(
        { op: "exec", args: execArguments(command, options) },
        {
          payload: input,
          signal: options.signal,
          onSent: (id, connection) => {
            started.#id = id;
            started.#connection = connection;
          },
          onEvent: (frame) => {
            if (frame.message["event"] === "started") {
              resolve();
            } else if (frame.message["event"] === "output") {
              started.#receive(frame, limit, onOutput);
            }
          },
        },
      );
      started.#exited = reply.then((frame) => exitOf(succeeded(frame).message));
      started.#exited.then(
        () => {
          started.#end();
          resolve();
        },
        (error: unknown) => {
          started.#end(error);
          reject(error);
        },
      );
    });
    return started;
  }

  /** Whether the command still runs. */
  get running(): boolean {
    return this.#running;
  }

  /** Waits for the end of the command. An abort ends only the waiting. */
  async wait(options: { signal?: AbortSignal } = {}): Promise<Exit> {
    checkOptions("wait", options, { signal: true });
    const { signal } = options;
    if (!signal) {
      return this.#exited;
    }
    signal.throwIfAborted();
    let stop = () => {};
    const aborted = new Promise<never>((_, reject) => {
      stop = () => reject(signal.reason);
      signal.addEventListener("abort", stop, { once: true });
    });
    try {
      return await Promise.race([this.#exited, aborted]);
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  /** Sends a signal to the processes of the command. */
  async signal(name: SignalName): Promise<void> {
    await this.#control("signal", { signal: name });
  }

  /** Kills the processes of the command. Does nothing if it has ended. */
  async kill(): Promise<void> {
    try {
      await this.signal("KILL");
    } catch (error) {
      // It may end while the request is under way.
      await Promise.resolve();
      if (this.#running) {
        throw error;
      }
    }
  }

  /** Changes the size of the terminal. */
  async resize(rows: number, cols: number): Promise<void> {
    await this.#control("resize", { rows, cols });
  }

  /** Kills the command, if it runs, and waits for its end. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#running) {
      this.#connection.notify({ cancel: this.#id });
    }
    await this.#exited.catch(() => {});
  }

  #receive(
    frame: Frame,
    limit: number,
    onOutput: ((stream: "stdout" | "stderr", chunk: Uint8Array) => void) | undefined,
  ): void {
    const name = frame.message["stream"] === "stderr" ? "stderr" : "stdout";
    this[name].push(frame.payload);
    onOutput?.(name, frame.payload);
    if (this.stdout.unread + this.stderr.unread > limit) {
      throw new LimitExceeded(
        "limit",
        `more than ${limit} bytes of output wait to be read`,
        "Read the output while the command runs, or set maxBuffer.",
      );
    }
  }

  #end(error?: unknown): void {
    this.#running = false;
    this.stdout.end(error);
    this.stderr.end(error);
  }

  async #control(op: string, args: Message, payload?: Uint8Array): Promise<void> {
    const { reply } = this.#connection.send({ op, args: { to: this.#id, ...args } }, payload);
    succeeded(await reply);
  }

  async #writeAll(data: Uint8Array): Promise<void> {
    for (let at = 0; at < data.length; at += STDIN_CHUNK) {
      await this.#control("write_stdin", {}, data.subarray(at, at + STDIN_CHUNK));
    }
  }

  #inOrder(action: () => Promise<void>): Promise<void> {
    const done = this.#written.then(action);
    this.#written = done.catch(() => {});
    return done;
  }
}
