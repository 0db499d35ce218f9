// The objects of the HTTP interface of `toolcrib page`. Text fields are raw: show them with `Raw` only.

export type Decision = "allow" | "ask" | "deny";
export type AnswerWord = "once" | "session" | "minutes" | "always" | "always_directory" | "no" | "never";
export type Answerer = "terminal" | "client" | "program" | "page" | "watch" | "store" | "timeout" | "cancelled" | "withdrawn";
export type Outcome = "done" | "failed" | "denied" | "running";

export interface Server {
  server: string;
  pid: number;
  version?: string;
  program: string;
  started: number;
  roots: string[];
  profile: string;
  network: string;
  sandbox: string;
  client?: string | null;
  rules_file?: string | null;
}

export interface Access {
  effect: "read" | "write" | "command" | "connect" | "reach";
  text: string;
}

/** How a command ended after its call. */
export interface CommandEnd {
  /** `completed`, `failed`, `killed`, `timeout`, or `server_ended` if its server ended and could not record more. */
  status: string;
  exit_code?: number | null;
  at?: number | null;
  refusals?: Refusal[];
}

export interface RunningCall {
  id: string;
  server?: string;
  session: string;
  tool: string;
  title: string;
  description?: string | null;
  started: number;
  accesses?: Access[];
  job?: string | null;
  workspace?: string | null;
  /** The call has ended, and its command still runs. */
  in_background?: boolean;
}

export interface Refusal {
  what: string;
  setting?: string | null;
  /** The rule that would allow it, as TOML. */
  rule?: string | null;
  at: number;
}

export interface Connection {
  call?: string | null;
  host: string;
  port: number;
  decision: Decision;
  rule?: string | null;
  why?: string | null;
  bytes_up?: number | null;
  bytes_down?: number | null;
  at: number;
}

export interface Call extends RunningCall {
  /** Null in calls of older versions. */
  ms: number | null;
  outcome: Outcome | null;
  error_kind?: string | null;
  message?: string | null;
  dry_run?: boolean;
  decision?: Decision | null;
  rule?: string | null;
  /** `nobody`: there was nobody to ask. */
  answered?: { answer: AnswerWord | "nobody"; by: Answerer } | null;
  change?: string | number | null;
  files_changed?: number | null;
  refusals?: Refusal[] | null;
  command_end?: CommandEnd | null;
  connections?: Connection[] | null;
  arguments?: unknown;
  cut?: string[];
}

export interface Span {
  start: number;
  end: number;
  kind: "program" | "path" | "write" | "redirect" | "operator";
}

export interface Step {
  text: string;
  writes: boolean;
  spans: Span[];
}

export interface Proposal {
  toml: string;
  covers: string[];
}

export interface Settled {
  answer: AnswerWord;
  by: Answerer;
  at: number;
  minutes?: number | null;
  message?: string | null;
}

/** How long a question can be answered. */
export interface TimeLeft {
  /** When its call stops waiting and is denied. */
  call_waits_until?: number | null;
  /** Its call has ended without an answer. An answer counts if the agent makes the same call again. */
  call_ended?: boolean;
  /** After how many milliseconds the agent was told no. */
  denied_after?: number | null;
  expires?: number | null;
}

export interface Question extends TimeLeft {
  id: string;
  digest: string;
  call: string;
  server?: string;
  session: string;
  tool: string;
  description?: string | null;
  opened: number;
  directory: string;
  accesses: Access[];
  command?: { text: string; steps: Step[]; unparsed?: string | null } | null;
  diff?: string | null;
  rule: string;
  why: string;
  remedy: string;
  /** What an answer for the session covers: `all edits`, `this command`; and the same in detail. */
  session_scope?: string;
  session_covers?: string[];
  always?: Proposal | null;
  always_directory?: Proposal | null;
  never?: Proposal | null;
  sandbox: string;
  client?: string | null;
  workspace: string;
  cut?: string[];
}

export interface OutputPart {
  from: number;
  next: number;
  text: string;
  dropped: number;
  ended: boolean;
}

export interface CallPage {
  calls: Call[];
  next?: string | null;
  total?: number | null;
}

export interface DiffLine {
  kind: " " | "+" | "-";
  old?: number | null;
  new?: number | null;
  text: string;
}

export interface Hunk {
  header: string;
  lines: DiffLine[];
}

export interface ChangedFile {
  path: string;
  kind: string;
  not_kept?: string | null;
  undone?: boolean;
  /** Numbers of the hunks that were undone one by one. */
  undone_hunks?: number[];
  hunks: Hunk[];
  cut?: boolean;
  binary?: boolean;
}

export interface UndoForecast {
  possible: boolean;
  text: string;
  /** `later`: changes of the file that are in the way. */
  files: { path: string; result: string; text: string; later?: string[] }[];
}

export interface Change {
  id: string | number;
  tool: string;
  at: number;
  workspace: string;
  summary: string;
  undone: boolean;
  undone_in_part?: boolean;
  /** Changes that this one undid, and changes that undid it. */
  undoes?: string[];
  undone_by?: string[];
  files: ChangedFile[];
  undo: UndoForecast;
}

export interface UndoResult {
  text: string;
  change?: string | number | null;
}

export interface RefusalRow extends Refusal {
  call?: string | null;
  tool: string;
  workspace: string;
  count: number;
}

export interface RefusalPage {
  refusals: RefusalRow[];
  next?: string | null;
}

export interface Rule {
  name: string;
  first_line: number;
  last_line: number;
  decision: Decision;
  kind: string;
  last_decided?: number | null;
  decided_30_days: number;
}

export interface Rules {
  file: string;
  text: string;
  rules: Rule[];
  problem?: string | null;
}

export interface RulePreview {
  toml?: string | null;
  problem?: string | null;
  calls: { at: number; tool: string; what: string; before: Decision; after: Decision }[];
  total: number;
  days: number;
  note?: string | null;
}

export type RuleEdit = { add: string } | { remove: { first_line: number; last_line: number; text: string } };

export interface Workspaces {
  workspaces: { path: string; last: number }[];
}
