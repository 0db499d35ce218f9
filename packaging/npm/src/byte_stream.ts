/** Bytes: an output stream of a command, whose chunks wait until they are read, and data of the caller. */
import { inspect } from "node:util";
import { isUint8Array } from "node:util/types";

const EMPTY = new Uint8Array(0);

/** An output stream. It can be iterated once; what is not read stays in memory. */
export class ByteStream implements AsyncIterable<Uint8Array> {
  #chunks: Uint8Array[] = [];
  #next = 0;
  #unread = 0;
  #ended = false;
  #error: unknown;
  #wake: (() => void) | undefined;

  /** The number of bytes that wait to be read. */
  get unread(): number {
    return this.#unread;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    while (true) {
      const chunk = this.#take();
      if (chunk) {
        yield chunk;
      } else if (this.#error !== undefined) {
        throw this.#error;
      } else if (this.#ended) {
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }

  /** The rest, decoded as UTF-8, in chunks that end at character boundaries. */
  async *textParts(): AsyncGenerator<string, void, undefined> {
    const decoder = new TextDecoder();
    for await (const chunk of this) {
      const text = decoder.decode(chunk, { stream: true });
      if (text) {
        yield text;
      }
    }
    const end = decoder.decode();
    if (end) {
      yield end;
    }
  }

  /** The rest as lines, without their newlines. */
  async *lines(): AsyncGenerator<string, void, undefined> {
    let line = "";
    for await (const text of this.textParts()) {
      const parts = text.split("\n");
      parts[0] = line + parts[0];
      line = parts.pop() ?? "";
      yield* parts;
    }
    if (line) {
      yield line;
    }
  }

  /** The rest, decoded as UTF-8. */
  async text(): Promise<string> {
    return new TextDecoder().decode(await this.bytes());
  }

  /** The rest as one array. */
  async bytes(): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of this) {
      chunks.push(chunk);
    }
    return concat(chunks);
  }

  /** @internal */
  push(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    this.#unread += chunk.length;
    this.#notify();
  }

  /** @internal Ends the stream; with an error, after the chunks before it were read. */
  end(error?: unknown): void {
    this.#ended = true;
    this.#error ??= error;
    this.#notify();
  }

  #take(): Uint8Array | undefined {
    const chunk = this.#chunks[this.#next];
    if (chunk === undefined) {
      return undefined;
    }
    this.#unread -= chunk.length;
    this.#next += 1;
    if (this.#next === this.#chunks.length) {
      this.#chunks = [];
      this.#next = 0;
    } else {
      this.#chunks[this.#next - 1] = EMPTY;
    }
    return chunk;
  }

  #notify(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}

/** The bytes of an argument that is bytes or text. Other values have no length, and would be sent as no bytes. */
export function bytesOf(data: unknown, name: string): Uint8Array {
  if (typeof data === "string") {
    return Buffer.from(data);
  }
  // Not `instanceof`, because test runners have a `Uint8Array` for each realm.
  if (isUint8Array(data)) {
    return data;
  }
  throw new TypeError(`\`${name}\` must be a Uint8Array or a string, not ${inspect(data, { depth: 0 })}`);
}

/** Joins chunks. */
export function concat(chunks: readonly Uint8Array[]): Uint8Array {
  if (chunks.length === 1 && chunks[0]) {
    return chunks[0];
  }
  const joined = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    joined.set(chunk, at);
    at += chunk.length;
  }
  return joined;
}
