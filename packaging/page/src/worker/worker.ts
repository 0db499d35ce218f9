// The shared worker: one event stream and one token for all tabs.
//
// HTTP/1.1 allows six connections per host. With a stream per tab, the seventh tab would wait for ever.

import { applyEvent, emptyState, forgetSettled, type LiveEvent } from "../live/live_state";
import type { Link, ToTab, ToWorker } from "../live/messages";
import { EventStream } from "./event_stream";

interface Tab {
  port: MessagePort;
  visible: boolean;
  /** Tabs repeat `visible`; one that was killed stops. */
  heardAt: number;
}

const BATCH_MS = 30;
const HEARTBEAT_MS = 10_000;
const TAB_SILENCE_MS = 12_000;
const NOTIFY_AFTER_MS = 2_000;

class Hub {
  readonly #tabs = new Set<Tab>();
  #state = emptyState();
  #token: string | null = null;
  #link: Link = "no_token";
  #stream: EventStream | null = null;
  #batch: LiveEvent[] = [];
  #toldVisible = false;

  constructor() {
    setInterval(() => this.#tellVisible(true), HEARTBEAT_MS);
  }

  join(port: MessagePort): void {
    const tab: Tab = { port, visible: false, heardAt: Date.now() };
    this.#tabs.add(tab);
    port.onmessage = (event: MessageEvent<ToWorker>) => this.#receive(tab, event.data);
    // A tab that crashed says no `bye`. Browsers without this event keep it in the list, which costs little.
    port.addEventListener("close", () => this.#receive(tab, { kind: "bye" }));
  }

  #receive(tab: Tab, message: ToWorker): void {
    tab.heardAt = Date.now();
    switch (message.kind) {
      case "hello":
        this.#tabs.add(tab);
        if (message.token !== null && (this.#token === null || this.#link === "refused")) {
          this.#use(message.token);
        }
        this.#flush();
        this.#state = forgetSettled(this.#state, Date.now());
        this.#send(tab, { kind: "welcome", token: this.#token, link: this.#link, state: this.#state });
        break;
      case "token":
        this.#use(message.token);
        break;
      case "visible":
        tab.visible = message.visible;
        this.#tellVisible(false);
        break;
      case "retry":
        this.#stream?.retryNow();
        break;
      case "bye":
        this.#tabs.delete(tab);
        this.#tellVisible(false);
        break;
    }
  }

  #use(token: string): void {
    this.#stream?.close();
    this.#token = token;
    this.#stream = new EventStream(token, {
      onLink: (link) => this.#setLink(link),
      onEvent: (event) => this.#accept(event),
    });
  }

  #setLink(link: Link): void {
    this.#link = link;
    this.#flush();
    this.#broadcast({ kind: "link", link, token: this.#token });
    if (link === "live") {
      this.#toldVisible = false;
      this.#tellVisible(false);
    }
  }

  #accept(event: LiveEvent): void {
    this.#state = applyEvent(forgetSettled(this.#state, Date.now()), event, Date.now());
    if (event.name === "question_opened") {
      const id = (event.data as { id: string }).id;
      setTimeout(() => this.#notify(id), NOTIFY_AFTER_MS);
    }
    if (event.name === "server_joined") {
      // A new server does not know yet that a tab is visible.
      this.#tellVisible(true);
    }
    if (this.#batch.push(event) === 1) {
      setTimeout(() => this.#flush(), BATCH_MS);
    }
  }

  #flush(): void {
    if (this.#batch.length > 0) {
      const events = this.#batch;
      this.#batch = [];
      this.#broadcast({ kind: "events", events });
    }
  }

  /** Asks one tab for a desktop notification if the question still waits and no tab is visible. */
  #notify(id: string): void {
    const question = this.#state.waiting.find((one) => one.id === id);
    const tab = [...this.#tabs].at(-1);
    if (question && tab && !this.#isVisible()) {
      const client = question.client ?? "";
      this.#send(tab, { kind: "notify", tool: question.tool, client, waiting: this.#state.waiting.length });
    }
  }

  #isVisible(): boolean {
    const now = Date.now();
    return [...this.#tabs].some((tab) => tab.visible && now - tab.heardAt < TAB_SILENCE_MS);
  }

  /** Tells the page process whether a person can see a tab. It expires there, so it is repeated. */
  #tellVisible(repeat: boolean): void {
    const visible = this.#isVisible();
    if (this.#link !== "live" || (visible === this.#toldVisible && !(repeat && visible))) {
      return;
    }
    this.#toldVisible = visible;
    const headers = { Authorization: `Bearer ${this.#token}`, "Content-Type": "application/json" };
    const body = JSON.stringify({ visible });
    // A lost heartbeat is repeated; the stream shows that the process is gone.
    fetch("/api/visible", { method: "POST", headers, body }).catch(() => undefined);
  }

  #broadcast(message: ToTab): void {
    for (const tab of this.#tabs) {
      this.#send(tab, message);
    }
  }

  #send(tab: Tab, message: ToTab): void {
    tab.port.postMessage(message);
  }
}

const hub = new Hub();
addEventListener("connect", (event) => {
  const port = (event as MessageEvent).ports[0];
  if (port) {
    hub.join(port);
  }
});
