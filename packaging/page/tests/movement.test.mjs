// Answers are dead while the list moves. The clock of the tab is held, so that no test depends on time.

import assert from "node:assert/strict";
import { test } from "node:test";
import { newContext, open } from "./browser.mjs";
import { approve, ask, card, usePage } from "./fixture.mjs";

const fixture = usePage();

/** A tab in a browser of its own, whose clock the test moves. */
async function tabWithClock() {
  const context = await newContext(fixture.browser);
  await context.clock.install();
  return open(context, (await fixture.home.page()).address);
}

test("a request that just appeared cannot be answered", async () => {
  const { agent } = fixture;
  const tab = await tabWithClock();
  await tab.clock.pauseAt(Date.now() + 3_600_000);
  const { asked, reply } = await ask(tab, agent, "Bash", { command: "npm publish --tag dead" }, "--tag dead");
  const approve = asked.getByRole("button", { name: /Approve once/ });
  assert.equal(await approve.isDisabled(), true);
  await approve.dispatchEvent("click");
  await tab.clock.runFor(1_000);
  await approve.and(tab.locator(":enabled")).waitFor();
  assert.equal(await asked.locator(".settled-note").count(), 0);
  await approve.click();
  await asked.locator(".settled-note").waitFor();
  await reply();
  await tab.context().close();
});

test("an answered request stays for ten seconds and then goes away", async () => {
  const { agent } = fixture;
  const tab = await tabWithClock();
  const { asked, reply } = await ask(tab, agent, "Bash", { command: "npm publish --tag stays" }, "--tag stays");
  await approve(asked);
  await asked.locator(".settled-note").waitFor();
  await tab.clock.runFor(15_000);
  await card(tab, "--tag stays").waitFor({ state: "detached" });
  await reply();
  await tab.context().close();
});

test("a second tab needs no ticket of its own", async () => {
  const tab = await open(fixture.context, `${fixture.page.origin}/`);
  await tab.close();
});
