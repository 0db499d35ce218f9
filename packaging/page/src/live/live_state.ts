// What is going on now, kept up to date by the events of the stream. The worker and every tab apply the same events.

import type { Call, CommandEnd, Question, RunningCall, Server, Settled, TimeLeft } from "../api_schema";

export interface LiveEvent {
  name: string;
  data: unknown;
}

export interface SettledQuestion {
  question: Question;
  settled: Settled;
  /** When the tab learned it, by its own clock. */
  seenAt: number;
}

export interface LiveState {
  servers: Server[];
  /** Oldest first. */
  waiting: Question[];
  /** Settled a short time ago, so that a person who reads one sees who answered. */
  settled: SettledQuestion[];
  running: RunningCall[];
  /** Newest first, bounded. */
  recent: Call[];
  /** Events that were lost since the page was opened. */
  missed: number;
  /** Grows when the journal may have news. */
  journalNews: number;
}

export const SETTLED_SHOWN_MS = 10_000;
const RECENT_LIMIT = 20;
const LIST_LIMIT = 2_000;

export function emptyState(): LiveState {
  return { servers: [], waiting: [], settled: [], running: [], recent: [], missed: 0, journalNews: 0 };
}

export function applyEvent(state: LiveState, event: LiveEvent, now: number): LiveState {
  const data = event.data;
  if (typeof data !== "object" || data === null) {
    return state;
  }
  switch (event.name) {
    case "state":
      return applySnapshot(state, data as Partial<LiveState>, now);
    case "server_joined":
    case "client_named":
      return joinServer(state, data as Server);
    case "server_left":
      return leaveServer(state, (data as { server: string }).server, now);
    case "call_begun":
      return { ...state, running: upsert(state.running, data as RunningCall) };
    case "call_ended":
      return endCall(state, data as Call);
    case "command_ended": {
      const { id, end } = data as { id: string; end: CommandEnd };
      return endCommand(state, id, end);
    }
    case "question_opened":
      return { ...state, waiting: oldestFirst(upsert(state.waiting, data as Question)) };
    case "question_time": {
      const { id, ...time } = data as TimeLeft & { id: string; call?: string };
      const changed = (one: Question): Question => {
        const { call_waits_until: _until, call_ended: _ended, denied_after: _after, expires: _expires, ...rest } = one;
        return { ...rest, ...time };
      };
      const waiting = state.waiting.map((one) => (one.id === id ? changed(one) : one));
      return { ...state, waiting };
    }
    case "question_settled": {
      const { id, settled } = data as { id: string; settled: Settled };
      return settleQuestion(state, id, settled, now);
    }
    default:
      return state;
  }
}

export function settleQuestion(state: LiveState, id: string, settled: Settled, now: number): LiveState {
  const question = state.waiting.find((one) => one.id === id);
  if (!question) {
    return state;
  }
  return {
    ...state,
    waiting: state.waiting.filter((one) => one.id !== id),
    settled: [...state.settled, { question, settled, seenAt: now }].slice(-LIST_LIMIT),
  };
}

/** Drops settled questions that were shown long enough. Returns the same object if there are none. */
export function forgetSettled(state: LiveState, now: number): LiveState {
  const kept = state.settled.filter((one) => now - one.seenAt < SETTLED_SHOWN_MS);
  return kept.length === state.settled.length ? state : { ...state, settled: kept };
}

/** Whether a call waits for an answer. It does not run before that, unless its running command asks about a host. */
export function isWaiting(state: LiveState, call: RunningCall): boolean {
  const isAboutHost = (question: Question) => question.accesses.every((access) => access.effect === "connect");
  return state.waiting.some((question) => question.call === call.id && !question.call_ended && !isAboutHost(question));
}

/** The number of requests whose agent waits. The others can still be answered, for the next try. */
export function waitingCount(state: LiveState): number {
  return state.waiting.filter((question) => !question.call_ended).length;
}

export function runningCount(state: LiveState): number {
  return state.running.filter((call) => !isWaiting(state, call)).length;
}

function applySnapshot(state: LiveState, data: Partial<LiveState>, now: number): LiveState {
  const waiting = oldestFirst(data.waiting ?? []);
  const ids = new Set(waiting.map((one) => one.id));
  // A question that vanished while the stream was down was settled; who did it is not known any more.
  const vanished = state.waiting
    .filter((one) => !ids.has(one.id))
    .map((question) => ({ question, settled: withdrawn(now), seenAt: now }));
  return {
    servers: data.servers ?? [],
    waiting,
    settled: [...state.settled, ...vanished].slice(-LIST_LIMIT),
    running: data.running ?? [],
    recent: state.recent,
    missed: state.missed + (data.missed ?? 0),
    journalNews: state.journalNews + 1,
  };
}

function joinServer(state: LiveState, server: Server): LiveState {
  const others = state.servers.filter((one) => one.server !== server.server);
  const servers = [...others, server].sort((a, b) => a.started - b.started);
  // Its first calls may have ended before the page joined it.
  return { ...state, servers, journalNews: state.journalNews + 1 };
}

function leaveServer(state: LiveState, server: string, now: number): LiveState {
  const left = state.waiting.filter((one) => one.server === server);
  const settled = left.reduce((before, one) => settleQuestion(before, one.id, withdrawn(now), now), state);
  return {
    ...settled,
    servers: state.servers.filter((one) => one.server !== server),
    running: state.running.filter((one) => one.server !== server),
  };
}

function withdrawn(now: number): Settled {
  return { answer: "no", by: "cancelled", at: now };
}

function endCall(state: LiveState, call: Call): LiveState {
  const recent = [call, ...state.recent.filter((one) => one.id !== call.id)].slice(0, RECENT_LIMIT);
  const others = state.running.filter((one) => one.id !== call.id);
  const running = call.in_background ? [call, ...others] : others;
  return { ...state, running, recent, journalNews: state.journalNews + 1 };
}

/** A command that went on after its call has ended. */
function endCommand(state: LiveState, id: string, end: CommandEnd): LiveState {
  const ended = (call: Call): Call => ({ ...call, outcome: end.status === "completed" ? "done" : "failed", command_end: end });
  return {
    ...state,
    running: state.running.filter((one) => one.id !== id),
    recent: state.recent.map((call) => (call.id === id ? ended(call) : call)),
    journalNews: state.journalNews + 1,
  };
}

function upsert<T extends { id: string }>(list: T[], item: T): T[] {
  const at = list.findIndex((one) => one.id === item.id);
  return at < 0 ? [...list, item].slice(-LIST_LIMIT) : list.with(at, item);
}

function oldestFirst(questions: Question[]): Question[] {
  return questions.toSorted((a, b) => a.opened - b.opened || (a.id < b.id ? -1 : 1));
}
