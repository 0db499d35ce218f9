/** Splits the output of the program into messages: lines of JSON, each with the raw bytes that follow it. */

/** A line of JSON. */
export type Message = Record<string, unknown>;

/** A message with its payload, which is empty for a message without `bytes`. */
export interface Frame {
  message: Message;
  payload: Uint8Array;
}

// The program truncates replies far below these limits; more is not its output.
const MAX_LINE = 256 * 1024 * 1024;
const MAX_PAYLOAD = 256 * 1024 * 1024;

const NEWLINE = 0x0a;
const EMPTY = new Uint8Array(0);

/** The output is no sequence of messages. */
export class FrameError extends Error {}

/** Takes the output in chunks of any size. */
export class FrameDecoder {
  #line: Uint8Array[] = [];
  #lineLength = 0;
  #message: Message | undefined;
  #payload: Uint8Array = EMPTY;
  #filled = 0;

  /** The messages that this chunk completes. */
  *push(chunk: Uint8Array): Generator<Frame> {
    let rest = chunk;
    while (rest.length > 0) {
      rest = this.#message ? this.#takePayload(rest) : this.#takeLine(rest);
      if (this.#message && this.#filled === this.#payload.length) {
        const frame = { message: this.#message, payload: this.#payload };
        this.#message = undefined;
        this.#payload = EMPTY;
        this.#filled = 0;
        yield frame;
      }
    }
  }

  /** Whether the output ended within a message. */
  get incomplete(): boolean {
    return this.#message !== undefined || this.#lineLength > 0;
  }

  #takePayload(chunk: Uint8Array): Uint8Array {
    const taken = Math.min(chunk.length, this.#payload.length - this.#filled);
    this.#payload.set(chunk.subarray(0, taken), this.#filled);
    this.#filled += taken;
    return chunk.subarray(taken);
  }

  #takeLine(chunk: Uint8Array): Uint8Array {
    const end = chunk.indexOf(NEWLINE);
    const part = end < 0 ? chunk : chunk.subarray(0, end);
    this.#lineLength += part.length;
    if (this.#lineLength > MAX_LINE) {
      throw new FrameError("a line of the program is too long");
    }
    this.#line.push(part);
    if (end < 0) {
      return EMPTY;
    }
    const line = this.#line.length === 1 ? part : Buffer.concat(this.#line, this.#lineLength);
    this.#line = [];
    this.#lineLength = 0;
    this.#message = parse(line);
    this.#payload = room(this.#message);
    return chunk.subarray(end + 1);
  }
}

/** A lone surrogate in JSON: `JSON.stringify` escapes only these. */
const LONE_SURROGATE = /(?<!\\)(?:\\\\)*\\ud[89a-f][0-9a-f]{2}/;

/** The line of a message. Throws for a string that is not valid Unicode: the program could not read the line. */
export function encodeLine(message: Message, payload?: Uint8Array): Uint8Array {
  const header = payload ? { ...message, bytes: payload.length } : message;
  const line = JSON.stringify(header);
  if (LONE_SURROGATE.test(line)) {
    throw new FrameError("a string of the request has a lone surrogate");
  }
  return Buffer.from(`${line}\n`);
}

function parse(line: Uint8Array): Message {
  const text = Buffer.from(line.buffer, line.byteOffset, line.length).toString("utf8");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new FrameError(`a line of the program is not JSON: ${text.slice(0, 200)}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new FrameError(`a line of the program is not an object: ${text.slice(0, 200)}`);
  }
  return value as Message;
}

function room(message: Message): Uint8Array {
  const bytes = message["bytes"];
  if (bytes === undefined) {
    return EMPTY;
  }
  if (!Number.isSafeInteger(bytes) || (bytes as number) < 0 || (bytes as number) > MAX_PAYLOAD) {
    throw new FrameError(`a message of the program announces ${JSON.stringify(bytes)} bytes`);
  }
  // Every byte is overwritten before the payload is passed on.
  return new Uint8Array(Buffer.allocUnsafeSlow(bytes as number).buffer);
}
