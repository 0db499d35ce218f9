/** Background jobs of the tool Bash, as the agent sees them. */
import { checkOptions } from "./options.js";
import type { Reply } from "./reply.js";
import type { Session } from "./session.js";

const LONGEST_WAIT_MS = 600_000;

/** A background job. Iterating yields its output as text until it ends; a second iteration starts from the beginning. */
export class BackgroundJob implements AsyncIterable<string> {
  /** Its id in BashOutput and KillShell. */
  readonly id: string;
  readonly #session: Session;

  /** @internal */
  constructor(session: Session, id: string) {
    this.#session = session;
    this.id = id;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string, void, undefined> {
    let cursor = 0;
    while (true) {
      const reply = await this.#read({ wait_for: "output", cursor });
      const end = reply.metadata["cursor"] as number;
      if (end > cursor) {
        yield withoutState(reply.output);
      }
      if (reply.metadata["status"] !== "running") {
        return;
      }
      cursor = end;
    }
  }

  /** Waits for the end. The metadata has `status` and `exit_code`; the output is the part that was not read yet. */
  async wait(options: { signal?: AbortSignal } = {}): Promise<Reply> {
    checkOptions("wait", options, { signal: true });
    while (true) {
      const reply = await this.#read({ wait_for: "exit" }, options.signal);
      if (reply.metadata["status"] !== "running") {
        return reply;
      }
    }
  }

  /** Ends the job and its child processes. */
  async kill(): Promise<void> {
    (await this.#session.call("KillShell", { shell_id: this.id })).orThrow();
  }

  async #read(
    args: { wait_for: "output" | "exit"; cursor?: number },
    signal?: AbortSignal,
  ): Promise<Reply> {
    const request = { bash_id: this.id, timeout: LONGEST_WAIT_MS, ...args };
    return (await this.#session.call("BashOutput", request, { signal })).orThrow();
  }
}

/** The output without the last line, which says for the model whether the job runs. */
function withoutState(output: string): string {
  return output.replace(/\[[^\n]*\]\n$/, "");
}
