/** File operations that several adapters need on top of a session. */
import { posix } from "node:path";

import { NotFound } from "./errors.js";
import type { Session } from "./session.js";

/** Writes a file and makes the directories above it. */
export async function writeWithParents(
  session: Session,
  path: string,
  data: string | Uint8Array,
  options: { append?: boolean; signal?: AbortSignal | undefined } = {},
): Promise<void> {
  try {
    await session.write(path, data, options);
  } catch (error) {
    if (!(error instanceof NotFound)) {
      throw error;
    }
    await session.mkdir(posix.dirname(path), { signal: options.signal });
    await session.write(path, data, options);
  }
}

/** The result, or `null` if the path does not exist. */
export async function orNull<Result>(result: Promise<Result>): Promise<Result | null> {
  try {
    return await result;
  } catch (error) {
    if (error instanceof NotFound) {
      return null;
    }
    throw error;
  }
}

/** The exit code as a shell reports it: 128 and more for signals. */
export function shellExitCode(exit: { exitCode: number | null; signal: number | null }): number {
  return exit.exitCode ?? 128 + (exit.signal ?? 0);
}
