// What most tests need: a page, a browser, a tab, and agents.

import { after, before } from "node:test";
import { setTimeout } from "node:timers/promises";
import { launch, newContext, open } from "./browser.mjs";
import { Home } from "./program.mjs";

const ATTEMPTS = 150;
const ATTEMPT_MS = 200;

export const RULES = `# Rules of the tests.

[[rule]]
name = "publishing"
decision = "ask"
kind = "command"
commands = ["npm publish"]
why = "it publishes a package"

[[rule]]
name = "no-force"
decision = "deny"
kind = "command"
commands = ["git push --force"]
`;

export const FILES = {
  "src/list.txt": `${Array.from({ length: 40 }, (_, at) => `line ${at + 1}`).join("\n")}\n`,
  "README.md": "# Shop\n",
};

/** Starts everything before the tests of a file and ends it after them. Fields are set in `before`. */
export function usePage({ rules = RULES, config = "", prepare = async () => undefined } = {}) {
  const fixture = {};
  before(async () => {
    fixture.home = await Home.create(rules, config);
    fixture.page = await fixture.home.page();
    fixture.browser = await launch();
    fixture.context = await newContext(fixture.browser);
    fixture.tab = await open(fixture.context, fixture.page.address);
    fixture.root = await fixture.home.workspace("shop", FILES);
    fixture.agent = await fixture.home.agent(fixture.root);
    await prepare(fixture);
  });
  after(async () => {
    await fixture.browser?.close();
    await fixture.home?.remove();
  });
  return fixture;
}

/**
 * Makes a call that asks, and waits for its card. A server asks the page only if it knows that a tab is visible, so the
 * call is repeated until then. Returns the card, and a function for the reply.
 */
export async function ask(tab, agent, tool, args, text) {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const asked = card(tab, text);
    const call = agent.call(tool, args);
    call.catch(() => undefined);
    const first = await Promise.race([asked.last().waitFor().then(() => "card"), call]);
    if (first === "card") {
      // Approving needs the end of the command on the screen.
      await asked.last().scrollIntoViewIfNeeded();
      return { asked: asked.last(), reply: () => call };
    }
    if (!/no approver is available|is outside the workspace/.test(first)) {
      throw new Error(`the call did not ask: ${first}`);
    }
    await setTimeout(ATTEMPT_MS);
  }
  throw new Error("the server never learned that a tab is visible");
}

/**
 * Repeats an action until its effect is visible. The page ignores clicks and keys shortly after something has moved, and
 * on a busy machine that is often.
 */
export async function until(effect, action) {
  const limit = { timeout: 5_000 };
  for (let attempt = 0; attempt < 12; attempt += 1) {
    if (await effect.isVisible()) return;
    try {
      await action(limit);
      await effect.waitFor(limit);
    } catch {
      // The next attempt, or the last check, tells.
    }
  }
  await effect.waitFor();
}

/** Chooses an answer that needs no other input. */
export async function approve(asked, name = /Approve once/) {
  await until(asked.locator(".settled-note"), (limit) => asked.getByRole("button", { name }).click(limit));
}

/** Denies, with a message if there is one. */
export async function deny(asked, message = "") {
  const button = asked.getByRole("button", { name: /^Deny(?!…)/ });
  await until(button, (limit) => asked.getByRole("button", { name: /Deny…/ }).click(limit));
  if (message) await asked.getByLabel("Message to the agent").fill(message);
  await until(asked.locator(".settled-note"), (limit) => button.click(limit));
}

/** The card of a request, by a text in it. */
export function card(tab, text) {
  return tab.locator(".question").filter({ hasText: text });
}
