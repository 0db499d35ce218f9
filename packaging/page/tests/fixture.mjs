// What most tests need: a page, a browser, a tab, and agents.

import { after, before } from "node:test";
import { launch, newContext, open } from "./browser.mjs";
import { Home } from "./program.mjs";

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
export function usePage({ rules = RULES, config = "", context: contextOptions = {} } = {}) {
  const fixture = {};
  before(async () => {
    fixture.home = await Home.create(rules, config);
    fixture.page = await fixture.home.page();
    fixture.browser = await launch();
    fixture.context = await newContext(fixture.browser, contextOptions);
    fixture.tab = await open(fixture.context, fixture.page.address);
    fixture.root = await fixture.home.workspace("shop", FILES);
    fixture.agent = await fixture.home.agent(fixture.root);
  });
  after(async () => {
    await fixture.browser?.close();
    await fixture.home?.remove();
  });
  return fixture;
}

/** The card of a request, by a text in it. */
export function card(tab, text) {
  return tab.locator(".question").filter({ hasText: text });
}
