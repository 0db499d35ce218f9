// The calls of the journal that match a filter, loaded in pages as the list is scrolled.

import { listCalls, messageOf, type CallFilter } from "../../api";
import type { Call } from "../../api_schema";
import { titleOf } from "../../parts/labels";

/** What a row shows. Whole calls of 100,000 rows would need too much memory. */
export type CallRow = Pick<Call, "id" | "tool" | "title" | "started" | "ms" | "outcome" | "workspace" | "change" | "files_changed" | "dry_run" | "command_end">
  & { refusals: number };

const FIRST_PAGE = 100;
const PAGE = 1_000;
const NEWS = 50;
const ROW_LIMIT = 500_000;
const TITLE_LENGTH = 300;

export class CallList {
  rows: CallRow[] = [];
  total: number | null = null;
  error: string | null = null;
  loading = true;
  /** Rows that were added at the top since the last look. */
  added = 0;
  readonly #filter: CallFilter;
  readonly #changed: () => void;
  #known = new Set<string>();
  #next: string | null | undefined;
  #wanted = FIRST_PAGE;
  #closed = false;

  constructor(filter: CallFilter, changed: () => void) {
    this.#filter = filter;
    this.#changed = changed;
  }

  start(): void {
    void this.#load();
  }

  close(): void {
    this.#closed = true;
  }

  get complete(): boolean {
    return this.#next === null || this.rows.length >= ROW_LIMIT;
  }

  /** The number of rows for the scroll bar: those that exist, as far as it is known. */
  get length(): number {
    return this.complete ? this.rows.length : Math.min(ROW_LIMIT, Math.max(this.total ?? 0, this.rows.length + 1));
  }

  /** Loads as far as this row. */
  want(index: number): void {
    if (index > this.#wanted) {
      this.#wanted = index;
    }
    if (!this.loading && this.error === null && !this.complete && this.rows.length < this.#wanted) {
      void this.#load();
    }
  }

  /** Adds calls that ended since. */
  async refresh(): Promise<void> {
    try {
      const page = await listCalls(this.#filter, NEWS);
      if (this.#closed) {
        return;
      }
      this.total = page.total ?? this.total;
      const fresh = page.calls.filter((call) => !this.#known.has(call.id));
      if (fresh.length >= NEWS && this.rows.length > 0) {
        this.#restart();
        return;
      }
      this.#replaceKnown(page.calls);
      this.rows = [...fresh.map((call) => this.#row(call)), ...this.rows];
      this.added += fresh.length;
      this.error = null;
    } catch (error) {
      this.error = messageOf(error);
    }
    this.#changed();
  }

  #restart(): void {
    this.rows = [];
    this.#known.clear();
    this.#next = undefined;
    void this.#load();
  }

  async #load(): Promise<void> {
    this.loading = true;
    this.#changed();
    try {
      do {
        const limit = this.rows.length === 0 ? FIRST_PAGE : PAGE;
        const page = await listCalls(this.#filter, limit, this.#next);
        if (this.#closed) {
          return;
        }
        const fresh = page.calls.filter((call) => !this.#known.has(call.id));
        this.rows = this.rows.concat(fresh.map((call) => this.#row(call)));
        // A search reads a bounded part of the journal at a time: a page may be empty and not the last.
        this.#next = page.next ?? null;
        this.total = page.total ?? this.total;
        this.error = null;
        this.#changed();
      } while (!this.complete && this.rows.length < this.#wanted);
    } catch (error) {
      this.error = messageOf(error);
    }
    this.loading = false;
    this.#changed();
  }

  #replaceKnown(calls: Call[]): void {
    const running = this.rows.findIndex((row) => row.outcome === "running");
    if (running >= 0) {
      const byId = new Map(calls.map((call) => [call.id, call]));
      this.rows = this.rows.map((row) => {
        const call = row.outcome === "running" ? byId.get(row.id) : undefined;
        return call ? this.#row(call) : row;
      });
    }
  }

  #row(call: Call): CallRow {
    this.#known.add(call.id);
    const { id, tool, started, ms, outcome, workspace, change, files_changed, dry_run, command_end } = call;
    const title = titleOf(call).slice(0, TITLE_LENGTH);
    return { id, tool, title, started, ms, outcome, workspace, change, files_changed, dry_run, command_end, refusals: call.refusals?.length ?? 0 } as CallRow;
  }
}
