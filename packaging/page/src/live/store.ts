// The state of this tab: the live state, the link to the page process, and settings. Components read it with `useStore`.

import { useEffect, useState } from "preact/hooks";
import { applyEvent, emptyState, forgetSettled, settleQuestion, type LiveEvent, type LiveState } from "./live_state";
import type { Link } from "./messages";
import type { Settled } from "../api_schema";

export interface TabState {
  live: LiveState;
  link: Link;
  /** Whether a `state` event or a snapshot of the worker has arrived. */
  known: boolean;
  /** Questions that this tab has answered. */
  mine: ReadonlySet<string>;
}

let current: TabState = { live: emptyState(), link: "starting", known: false, mine: new Set() };
const listeners = new Set<() => void>();

export function tabState(): TabState {
  return current;
}

export function update(change: Partial<TabState>): void {
  current = { ...current, ...change };
  for (const listener of listeners) {
    listener();
  }
}

export function applyEvents(events: LiveEvent[]): void {
  const now = Date.now();
  const live = events.reduce((state, event) => applyEvent(state, event, now), forgetSettled(current.live, now));
  update({ live, known: current.known || events.some((event) => event.name === "state") });
}

/** Records an answer at once, without waiting for the event. */
export function settle(id: string, settled: Settled, byThisTab: boolean): void {
  const mine = byThisTab ? new Set([...current.mine, id]) : current.mine;
  update({ live: settleQuestion(current.live, id, settled, Date.now()), mine });
}

export function dropSettled(): void {
  const live = forgetSettled(current.live, Date.now());
  if (live !== current.live) {
    update({ live });
  }
}

/** A part of the state; the component renders again when the part is another value. */
export function useStore<T>(select: (state: TabState) => T): T {
  const [value, setValue] = useState(() => select(current));
  useEffect(() => {
    const check = () => setValue(() => select(current));
    listeners.add(check);
    check();
    return () => {
      listeners.delete(check);
    };
  }, []);
  return value;
}
