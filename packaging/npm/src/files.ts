/** Files of a session as bytes: results of the raw file operations. */
import { concat } from "./byte_stream.js";
import type { Channel } from "./channel.js";

export type FileKind = "file" | "directory" | "symlink" | "other";

export interface Stat {
  kind: FileKind;
  size: number;
  mode: number;
  /** Nanoseconds since 1970, exact to 256 ns. */
  modifiedNs: number;
  modified: Date;
  /** The target of a symlink, if it was not followed. */
  target: string | undefined;
}

export interface Entry {
  name: string;
  kind: FileKind;
  size: number;
}

export interface Listing {
  /** Sorted by name. */
  entries: Entry[];
  /** Whether there are more entries than the program lists. */
  truncated: boolean;
}

export interface WriteOptions {
  /** Adds to the end of the file. */
  append?: boolean | undefined;
  /** Default: the mode is kept, and new files are not executable. */
  executable?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

/** A change of files. */
export interface Changed {
  /** The id of the change in the journal, or `null` if nothing was changed or the journal is off. */
  change: number | null;
}

export interface ReadOptions {
  /** The first byte. Default 0. */
  offset?: number | undefined;
  /** The number of bytes. Default: to the end of the file. */
  limit?: number | undefined;
  signal?: AbortSignal | undefined;
}

export const READ_OPTIONS: Readonly<Record<keyof ReadOptions, true>> = { offset: true, limit: true, signal: true };

// What one request returns at most.
const READ_CHUNK = 16 * 1024 * 1024;

/** Reads a file, in parts if it is large. */
export async function readFile(channel: Channel, path: string, options: ReadOptions): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const part of readParts(channel, path, options)) {
    parts.push(part);
  }
  return concat(parts);
}

/** Reads a file part by part. */
export async function* readParts(channel: Channel, path: string, options: ReadOptions): AsyncGenerator<Uint8Array> {
  let offset = options.offset ?? 0;
  let left = options.limit ?? Number.POSITIVE_INFINITY;
  while (true) {
    const limit = Math.min(left, READ_CHUNK);
    const { message, payload } = await channel.op("read", { path, offset, limit }, { signal: options.signal });
    yield payload;
    offset += payload.length;
    left -= payload.length;
    const { eof } = message["result"] as { eof: boolean };
    if (eof || left <= 0 || payload.length === 0) {
      return;
    }
  }
}

export function statOf(result: Record<string, unknown>): Stat {
  const modifiedNs = result["modified_ns"] as number;
  return {
    kind: result["kind"] as FileKind,
    size: result["size"] as number,
    mode: result["mode"] as number,
    modifiedNs,
    modified: new Date(modifiedNs / 1_000_000),
    target: result["target"] as string | undefined,
  };
}
