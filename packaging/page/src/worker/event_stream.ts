// One stream of events from the page process, with reconnection.
//
// `EventSource` cannot send the token, so the stream is read with fetch.

import type { LiveEvent } from "../live/live_state";
import type { Link } from "../live/messages";
import { EventParser } from "./event_parser";

/** The server sends a comment every 15 s. */
const SILENCE_MS = 40_000;
const RETRY_MS = [250, 500, 1_000, 2_000, 3_000];

export interface StreamListener {
  onLink(link: Link): void;
  onEvent(event: LiveEvent): void;
}

export class EventStream {
  readonly #listener: StreamListener;
  readonly #token: string;
  #lastId: string | null = null;
  #failures = 0;
  #abort = new AbortController();
  #closed = false;
  #retry: ReturnType<typeof setTimeout> | undefined;

  constructor(token: string, listener: StreamListener) {
    this.#token = token;
    this.#listener = listener;
    listener.onLink("connecting");
    void this.#run();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#retry);
    this.#abort.abort();
  }

  /** Tries again now instead of after the delay. */
  retryNow(): void {
    if (this.#retry !== undefined) {
      clearTimeout(this.#retry);
      this.#retry = undefined;
      void this.#run();
    }
  }

  async #run(): Promise<void> {
    const refused = await this.#connect().catch(() => false);
    if (this.#closed) {
      return;
    }
    if (refused) {
      this.#listener.onLink("refused");
      return;
    }
    this.#listener.onLink(this.#failures === 0 ? "connecting" : "gone");
    const delay = RETRY_MS[Math.min(this.#failures, RETRY_MS.length - 1)] ?? 3_000;
    this.#failures += 1;
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      void this.#run();
    }, delay);
  }

  /** Reads until the stream ends. Returns whether the token was refused. */
  async #connect(): Promise<boolean> {
    this.#abort = new AbortController();
    const headers = new Headers({ Authorization: `Bearer ${this.#token}`, Accept: "text/event-stream" });
    if (this.#lastId !== null) {
      headers.set("Last-Event-ID", this.#lastId);
    }
    let silence = this.#expectBytes(undefined);
    try {
      const response = await fetch("/api/events", { headers, signal: this.#abort.signal, cache: "no-store" });
      if (response.status === 401 || response.status === 403) {
        return true;
      }
      if (!response.ok || !response.body) {
        throw new Error(`status ${response.status}`);
      }
      this.#failures = 0;
      this.#listener.onLink("live");
      const parser = new EventParser();
      const decoder = new TextDecoder();
      const reader = response.body.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) {
          return false;
        }
        silence = this.#expectBytes(silence);
        this.#deliver(parser, decoder.decode(value, { stream: true }));
      }
    } finally {
      clearTimeout(silence);
    }
  }

  #deliver(parser: EventParser, text: string): void {
    for (const event of parser.push(text)) {
      this.#lastId = event.id ?? this.#lastId;
      try {
        this.#listener.onEvent({ name: event.name, data: JSON.parse(event.data) });
      } catch {
        // An event of a newer version that is not JSON: the next ones still count.
      }
    }
  }

  #expectBytes(before: ReturnType<typeof setTimeout> | undefined): ReturnType<typeof setTimeout> {
    clearTimeout(before);
    return setTimeout(() => this.#abort.abort(), SILENCE_MS);
  }
}
