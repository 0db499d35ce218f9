// Answers are dead while the list moves. The clock of the tab is held, so that no test depends on time.

import assert from "node:assert/strict";
import { test } from "node:test";
import { open } from "./browser.mjs";
import { card, usePage } from "./fixture.mjs";

const fixture = usePage();

test("a request that just appeared cannot be answered", async () => {
  const { context, page, agent } = fixture;
  const tab = await context.newPage();
  await tab.clock.install();
  await tab.goto(`${page.origin}/#/waiting`);
  await tab.locator(".link-live").waitFor();
  await tab.clock.pauseAt(Date.now() + 3_600_000);
  const reply = agent.call("Bash", { command: "npm publish --tag dead" });
  const asked = card(tab, "--tag dead");
  await asked.waitFor();
  const approve = asked.getByRole("button", { name: /Approve once/ });
  assert.equal(await approve.isDisabled(), true);
  await approve.dispatchEvent("click");
  await tab.clock.runFor(1_000);
  await approve.and(tab.locator(":enabled")).waitFor();
  assert.equal(await asked.locator(".settled-note").count(), 0);
  await approve.click();
  await tab.clock.runFor(1_000);
  await asked.locator(".settled-note").waitFor();
  await reply;
  await tab.close();
});

test("an answered request stays for ten seconds and then goes away", async () => {
  const { context, page, agent } = fixture;
  const tab = await context.newPage();
  await tab.clock.install();
  await tab.goto(`${page.origin}/#/waiting`);
  await tab.locator(".link-live").waitFor();
  const reply = agent.call("Bash", { command: "npm publish --tag stays" });
  const asked = card(tab, "--tag stays");
  await asked.getByRole("button", { name: /Approve once/ }).click();
  await asked.locator(".settled-note").waitFor();
  await tab.clock.runFor(15_000);
  await asked.waitFor({ state: "detached" });
  await reply;
  await tab.close();
});

test("a second tab needs no ticket of its own", async () => {
  const tab = await open(fixture.context, `${fixture.page.origin}/`);
  await tab.close();
});
