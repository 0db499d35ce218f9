// The browser of the tests: the system's Chromium, driven by Playwright.

import { access } from "node:fs/promises";
import { chromium } from "playwright-core";

const NAMES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
];

/** Long, because CI machines are slow: no test depends on it. */
export const PATIENCE = 60_000;

export async function launch() {
  return chromium.launch({ executablePath: await executable(), args: FLAGS });
}

async function executable() {
  if (process.env.CHROMIUM) {
    return process.env.CHROMIUM;
  }
  for (const name of NAMES) {
    if (await access(name).then(() => true, () => false)) {
      return name;
    }
  }
  throw new Error("no Chromium found: install it, or set CHROMIUM");
}

/** A browser context whose pages collect errors: script errors, and anything that the CSP refused. */
export async function newContext(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(PATIENCE);
  context.problems = [];
  context.on("weberror", (error) => context.problems.push(String(error.error())));
  context.on("console", (message) => {
    if (/Content Security Policy|TrustedHTML|TrustedScript|Uncaught/.test(message.text())) {
      context.problems.push(message.text());
    }
  });
  context.on("dialog", (dialog) => {
    context.problems.push(`a dialog was opened: ${dialog.message()}`);
    void dialog.dismiss();
  });
  return context;
}

/** Opens the start address and waits until the stream is live. */
export async function open(context, address) {
  const tab = await context.newPage();
  await tab.goto(address);
  await live(tab);
  return tab;
}

export async function live(tab) {
  await tab.locator(".link-live").waitFor();
}

export async function show(tab, route) {
  await tab.evaluate((hash) => {
    location.hash = hash;
  }, route);
}
