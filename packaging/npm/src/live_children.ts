/** Ends the programs that are still running when this process exits. */
import type { ChildProcess } from "node:child_process";

const live = new Set<ChildProcess>();

// The end of stdin alone would let running commands finish first.
function endAll(): void {
  for (const child of live) {
    child.kill("SIGTERM");
  }
}

export function add(child: ChildProcess): void {
  if (live.size === 0) {
    process.on("exit", endAll);
  }
  live.add(child);
}

export function remove(child: ChildProcess): void {
  live.delete(child);
  if (live.size === 0) {
    process.off("exit", endAll);
  }
}
