// This tab's link to the shared worker, and the token.
//
// The start address has a single-use ticket in its fragment, which no server or log sees. The tab trades it for a
// token. The worker shares the token with the other tabs; `sessionStorage` keeps it over a reload.

import { applyEvents, tabState, update } from "./store";
import type { ToTab, ToWorker } from "./messages";
import { notifyOnDesktop } from "./notifications";

const TOKEN_KEY = "toolcrib-token";
const PING_MS = 5_000;

let port: MessagePort | null = null;
let token: string | null = sessionStorage.getItem(TOKEN_KEY);

export function currentToken(): string | null {
  return token;
}

/** Connects to the worker. Returns why it cannot, as a sentence. */
export async function connect(): Promise<string | null> {
  if (typeof SharedWorker === "undefined") {
    return "This browser has no shared workers. Use a current version of Chrome, Edge, Firefox or Safari on a computer.";
  }
  const ticket = takeTicket();
  const fresh = ticket === null ? null : await trade(ticket);
  port = openWorker();
  port.onmessage = (event: MessageEvent<ToTab>) => receive(event.data);
  if (fresh !== null) {
    keep(fresh);
    send({ kind: "token", token: fresh });
  }
  send({ kind: "hello", token });
  watchVisibility();
  return null;
}

export function retryNow(): void {
  send({ kind: "retry" });
}

function openWorker(): MessagePort {
  const url = "/worker.js";
  const trusted = window.trustedTypes?.createPolicy("toolcrib", { createScriptURL: () => url });
  const worker = new SharedWorker((trusted?.createScriptURL(url) ?? url) as string, { name: "toolcrib" });
  return worker.port;
}

/** Removes the ticket from the address, so that it is not in the history. */
function takeTicket(): string | null {
  const fragment = location.hash.slice(1);
  if (fragment === "" || fragment.startsWith("/")) {
    return null;
  }
  history.replaceState(null, "", "/#/waiting");
  return fragment;
}

async function trade(ticket: string): Promise<string | null> {
  try {
    const headers = { "Content-Type": "application/json" };
    const response = await fetch("/api/session", { method: "POST", headers, body: JSON.stringify({ ticket }) });
    const body: { token?: string } = response.ok ? await response.json() : {};
    return body.token ?? null;
  } catch {
    return null;
  }
}

function receive(message: ToTab): void {
  switch (message.kind) {
    case "welcome":
      adopt(message.token);
      update({ live: message.state, link: message.link, known: message.link === "live" || tabState().known });
      break;
    case "link":
      adopt(message.token);
      update({ link: message.link });
      break;
    case "events":
      applyEvents(message.events);
      break;
    case "notify":
      notifyOnDesktop(message);
      break;
  }
}

function adopt(shared: string | null): void {
  if (shared !== null && shared !== token) {
    keep(shared);
  }
}

function keep(value: string): void {
  token = value;
  sessionStorage.setItem(TOKEN_KEY, value);
}

function send(message: ToWorker): void {
  port?.postMessage(message);
}

function watchVisibility(): void {
  const tell = () => send({ kind: "visible", visible: document.visibilityState === "visible" });
  tell();
  document.addEventListener("visibilitychange", tell);
  setInterval(() => document.visibilityState === "visible" && tell(), PING_MS);
  addEventListener("pagehide", () => send({ kind: "bye" }));
  addEventListener("pageshow", (event) => {
    if (event.persisted) {
      send({ kind: "hello", token });
      tell();
    }
  });
}

declare global {
  interface Window {
    trustedTypes?: {
      createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): unknown };
    };
  }
}
