// Parses a stream of server-sent events.

export interface ServerSentEvent {
  id: string | null;
  name: string;
  data: string;
}

/** More text than this without an end is not an event of ours. */
const LIMIT = 32 * 1024 * 1024;

export class EventParser {
  #rest = "";
  #id: string | null = null;
  #name = "message";
  #data: string[] = [];

  /** The events that end in this text. Throws if an event is too long. */
  push(text: string): ServerSentEvent[] {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    if (this.#rest.length > LIMIT) {
      throw new Error("an event is too long");
    }
    const events: ServerSentEvent[] = [];
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line === "") {
        this.#finish(events);
      } else {
        this.#field(line);
      }
    }
    return events;
  }

  #field(line: string): void {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") {
      this.#data.push(value);
    } else if (name === "event") {
      this.#name = value;
    } else if (name === "id") {
      this.#id = value;
    }
  }

  #finish(events: ServerSentEvent[]): void {
    if (this.#data.length > 0) {
      events.push({ id: this.#id, name: this.#name, data: this.#data.join("\n") });
    }
    this.#name = "message";
    this.#data = [];
  }
}
