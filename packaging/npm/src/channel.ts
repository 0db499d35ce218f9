/** The requests of one session: a connection that is started again after its program has ended. */
import { answerQuestion, type ApprovalQuestion } from "./approval.js";
import { Connection } from "./connection.js";
import { SessionClosed, succeeded, Unsupported, type ErrorFields } from "./errors.js";
import type { Frame, Message } from "./frame_decoder.js";
import { OwnTools, registration } from "./own_tools.js";
import { launchOf, type SessionOptions } from "./session_options.js";

/** The protocol that this package speaks. */
const PROTOCOL = 1;

export interface RequestOptions {
  payload?: Uint8Array | undefined;
  signal?: AbortSignal | undefined;
  onEvent?: ((frame: Frame) => void) | undefined;
  /** Gets the id of the request and its connection when it has been sent. */
  onSent?: ((id: number, connection: Connection) => void) | undefined;
}

export class Channel {
  readonly #options: SessionOptions;
  readonly #ownTools: OwnTools;
  #connection: Connection | undefined;
  #opening: Promise<Connection> | undefined;
  #closed: SessionClosed | undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#ownTools = new OwnTools(options.ownTools ?? []);
  }

  /** Starts the program, unless it runs. */
  async open(): Promise<Connection> {
    if (this.#closed) {
      throw this.#closed;
    }
    if (this.#connection?.alive) {
      return this.#connection;
    }
    this.#opening ??= this.#start().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  get closed(): boolean {
    return this.#closed !== undefined;
  }

  get pid(): number | undefined {
    return this.#connection?.alive ? this.#connection.pid : undefined;
  }

  /** Sends a request and waits for its reply, whether it succeeded or not. An abort throws the reason of the signal. */
  async request(message: Message, options: RequestOptions = {}): Promise<Frame> {
    options.signal?.throwIfAborted();
    const connection = this.#connection?.alive ? this.#connection : await this.open();
    options.signal?.throwIfAborted();
    const { id, reply } = connection.send(message, options.payload, options.onEvent);
    options.onSent?.(id, connection);
    const { signal } = options;
    if (!signal) {
      return reply;
    }
    const cancel = () => connection.notify({ cancel: id });
    signal.addEventListener("abort", cancel, { once: true });
    try {
      const frame = await reply;
      // A request that was finished before it could be cancelled has its result.
      if (signal.aborted && (frame.message["error"] as ErrorFields | undefined)?.kind === "cancelled") {
        throw signal.reason;
      }
      return frame;
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  }

  /** Sends a raw operation. An error reply is thrown. */
  async op(name: string, args: Message, options: RequestOptions = {}): Promise<Frame> {
    return succeeded(await this.request({ op: name, args }, options));
  }

  async close(): Promise<void> {
    this.#closed ??= new SessionClosed("the session is closed", "Open a new session.");
    const connection = await this.#opening?.catch(() => undefined);
    this.#ownTools.cancelAll();
    await (connection ?? this.#connection)?.close(this.#closed);
  }

  async #start(): Promise<Connection> {
    const before = this.#connection;
    if (before && this.#options.restart === false) {
      throw new SessionClosed("the program of the session has ended", "Open a new session.");
    }
    // Calls of own tools have nobody to report to any more.
    this.#ownTools.cancelAll();
    const connection = new Connection(launchOf(this.#options), (message, from) => this.#receive(message, from));
    try {
      // The program takes registrations only before other messages.
      for (const tool of this.#options.ownTools ?? []) {
        succeeded(await connection.send(registration(tool)).reply);
      }
      await greet(connection);
    } catch (error) {
      await connection.close(new SessionClosed("the session could not be opened"));
      throw error;
    }
    this.#connection = connection;
    if (before) {
      this.#options.onRestart?.();
    }
    return connection;
  }

  #receive(message: Message, connection: Connection): void {
    if (typeof message["approval"] === "object") {
      void answerQuestion(this.#options.approver, message["approval"] as ApprovalQuestion, connection);
    } else if ("invoke" in message) {
      void this.#ownTools.invoke(message, connection);
    } else if ("invoke_cancelled" in message) {
      this.#ownTools.cancel(message);
    }
    // The rest are errors about requests that are no longer running, such as a cancellation that came too late.
  }
}

async function greet(connection: Connection): Promise<void> {
  const { message } = await connection.send({ op: "info", args: {} }).reply;
  const protocol = (message["result"] as { protocol?: unknown } | undefined)?.protocol;
  if (protocol !== PROTOCOL) {
    throw new Unsupported(
      "unsupported",
      `the program does not speak version ${PROTOCOL} of the protocol`,
      "Use the program of the same version as this package.",
    );
  }
}
