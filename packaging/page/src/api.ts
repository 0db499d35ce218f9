// Requests to the page process.

import type {
  AnswerWord, Call, CallPage, Change, OutputPart, RefusalPage, RuleEdit, RulePreview, Rules, Settled, UndoResult,
  Workspaces,
} from "./api_schema";
import { currentToken } from "./live/worker_link";

export class ApiError extends Error {
  readonly status: number;
  readonly kind: string;
  readonly settled: Settled | null;

  constructor(status: number, kind: string, message: string, settled: Settled | null) {
    super(message);
    this.status = status;
    this.kind = kind;
    this.settled = settled;
  }
}

async function request<T>(method: "GET" | "POST", path: string, body?: unknown): Promise<T> {
  const headers = new Headers({ Authorization: `Bearer ${currentToken() ?? ""}` });
  const init: RequestInit = { method, headers, cache: "no-store" };
  if (method === "POST") {
    headers.set("Content-Type", "application/json");
    init.body = JSON.stringify(body ?? {});
  }
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch {
    throw new ApiError(0, "unreachable", "The page process does not answer. Nothing was changed.", null);
  }
  const value: unknown = await response.json().catch(() => null);
  if (!response.ok) {
    throw errorOf(response.status, value);
  }
  return value as T;
}

function errorOf(status: number, value: unknown): ApiError {
  const error = (value as { error?: { kind?: string; message?: string; settled?: Settled } } | null)?.error;
  const message = error?.message ?? `The page process answered with status ${status}.`;
  return new ApiError(status, error?.kind ?? "http", message, error?.settled ?? null);
}

/** The message of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const segment = (id: string | number) => encodeURIComponent(String(id));

function query(values: Record<string, string | number | null | undefined>): string {
  const pairs = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs.map(([name, value]) => [name, String(value)]))}`;
}

export interface Answer {
  answer: AnswerWord;
  minutes?: number;
  message?: string;
}

export interface CallFilter {
  text?: string;
  tool?: string;
  workspace?: string;
  server?: string;
  session?: string;
  path?: string;
  outcome?: string;
}

export const answerQuestion = (id: string, digest: string, answer: Answer) =>
  request<Settled>("POST", `/api/questions/${segment(id)}`, { digest, ...answer });

export const previewAnswer = (id: string, answer: AnswerWord) =>
  request<RulePreview>("POST", `/api/questions/${segment(id)}/preview`, { answer });

export const listCalls = (filter: CallFilter, limit: number, before?: string | null) =>
  request<CallPage>("GET", `/api/calls${query({ ...filter, limit, before })}`);

export const getCall = (id: string) => request<Call>("GET", `/api/calls/${segment(id)}`);

export const getOutput = (id: string, from: number) =>
  request<OutputPart>("GET", `/api/calls/${segment(id)}/output${query({ from })}`);

export const stopCall = (id: string) => request<object>("POST", `/api/calls/${segment(id)}/stop`);

export const getChange = (id: string) => request<Change>("GET", `/api/changes/${segment(id)}`);

export interface UndoPart {
  paths?: string[];
  hunk?: { path: string; index: number };
}

export const undoChange = (id: string, part: UndoPart, dryRun: boolean) =>
  request<UndoResult>("POST", `/api/changes/${segment(id)}/undo`, { ...part, dry_run: dryRun });

export const redoChange = (id: string) => request<UndoResult>("POST", `/api/changes/${segment(id)}/redo`);

export const listRefusals = (before?: string | null) =>
  request<RefusalPage>("GET", `/api/refusals${query({ limit: 100, before })}`);

export const getRules = () => request<Rules>("GET", "/api/rules");

export const previewRules = (edit: RuleEdit) => request<RulePreview>("POST", "/api/rules/preview", edit);

export const editRules = (edit: RuleEdit) => request<Rules>("POST", "/api/rules", edit);

export const explain = (subject: { tool: string; command?: string; path?: string; host?: string; workspace: string; profile?: string }) =>
  request<{ text: string }>("POST", "/api/rules/explain", subject);

export const listWorkspaces = () => request<Workspaces>("GET", "/api/workspaces");
