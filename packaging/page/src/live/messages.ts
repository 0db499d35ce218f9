// Messages between the tabs and the shared worker.

import type { LiveEvent, LiveState } from "./live_state";

/** The state of the stream: `starting` = the worker has not answered yet, `gone` = the page process does not answer, `refused` = it does not know our token. */
export type Link = "starting" | "no_token" | "connecting" | "live" | "gone" | "refused";

export type ToWorker =
  | { kind: "hello"; token: string | null }
  | { kind: "token"; token: string }
  | { kind: "visible"; visible: boolean }
  | { kind: "retry" }
  | { kind: "bye" };

export type ToTab =
  | { kind: "welcome"; token: string | null; link: Link; state: LiveState }
  | { kind: "link"; link: Link; token: string | null }
  | { kind: "events"; events: LiveEvent[] }
  | { kind: "notify"; tool: string; client: string; waiting: number };
