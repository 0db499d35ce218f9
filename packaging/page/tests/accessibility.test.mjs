// axe-core in every view and both colour schemes, 320 px, and the keyboard.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { newContext, open, show } from "./browser.mjs";
import { ask, card, usePage } from "./fixture.mjs";

const fixture = usePage({ prepare });
const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
let routes = [];

/** Something to see in every view. */
async function prepare({ tab, agent, home, root }) {
  await agent.call("Bash", { command: "rm README.md; echo x > src/made.txt; touch /etc/refused" });
  await agent.call("Bash", { command: "git push --force" });
  void agent.call("Bash", { command: "printf '\\033[31mred\\033[0m\\n'; sleep 600" }).catch(() => undefined);
  const cautious = await home.agent(root, { profile: "cautious", client: "cautious-agent" });
  await ask(tab, cautious, "Bash", { command: "cd src && make axe > out.txt", description: "Make it" }, "make axe");
  await show(tab, "#/timeline");
  await tab.locator(".row", { hasText: "rm README.md" }).first().click();
  const call = await tab.evaluate(() => location.hash);
  await tab.getByRole("link", { name: /Open or undo/ }).click();
  await tab.getByRole("heading", { name: /^Change/ }).waitFor();
  const change = await tab.evaluate(() => location.hash);
  routes = [
    ["#/waiting", ".question"], ["#/now", ".output-line"], ["#/timeline", ".row"], [call, ".detail .line-removed"],
    [change, ".diff-file"], ["#/sandbox", ".refusal-row"], ["#/rules", ".rule"],
  ];
}

async function axe(tab, name) {
  // The debugger runs it: the policy of the page allows no other script.
  await tab.evaluate(AXE);
  const violations = await tab.evaluate(async (tags) => {
    const result = await window.axe.run(document, { runOnly: tags });
    return result.violations.map((one) => `${one.id}: ${one.nodes.map((node) => `${node.target} ${node.failureSummary}`).join(" | ")}`);
  }, TAGS);
  assert.deepEqual(violations, [], name);
}

for (const scheme of ["light", "dark"]) {
  test(`axe-core finds nothing in any view, ${scheme}`, async () => {
    const { tab } = fixture;
    await tab.emulateMedia({ colorScheme: scheme });
    for (const [route, ready] of routes) {
      await show(tab, route);
      await tab.locator(ready).first().waitFor();
      await axe(tab, `${route} ${scheme}`);
    }
    await show(tab, "#/waiting");
    const asked = card(tab, "make axe");
    for (const name of [/For minutes/, /Always/, /Deny…/]) {
      await asked.getByRole("button", { name }).click();
      await asked.locator(".panel").waitFor();
      await axe(tab, `${name} ${scheme}`);
    }
    await asked.getByRole("button", { name: "Cancel" }).click();
    await tab.getByRole("button", { name: "Keyboard help" }).click();
    await axe(tab, `help ${scheme}`);
    await tab.keyboard.press("Escape");
    await tab.getByRole("button", { name: "Settings" }).click();
    await axe(tab, `settings ${scheme}`);
    await tab.keyboard.press("Escape");
  });
}

test("no view scrolls sideways at 320 px, and axe-core finds nothing there", async () => {
  const { tab } = fixture;
  await tab.setViewportSize({ width: 320, height: 640 });
  for (const [route, ready] of routes) {
    await show(tab, route);
    await tab.locator(ready).first().waitFor();
    const over = await tab.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(over <= 0, `${route} is ${over} px too wide`);
    await axe(tab, `${route} 320`);
  }
  await tab.setViewportSize({ width: 1280, height: 900 });
});

test("forced colours and reduced motion keep every view usable", async () => {
  const context = await newContext(fixture.browser, { forcedColors: "active", reducedMotion: "reduce" });
  const address = (await fixture.home.page()).address;
  const tab = await open(context, address);
  await show(tab, "#/now");
  await tab.locator(".pulse").first().waitFor();
  assert.equal(await tab.locator(".pulse").first().evaluate((dot) => getComputedStyle(dot).animationName), "none");
  await context.close();
});

test("every control is reached with the Tab key, and shows the focus", async () => {
  const { tab } = fixture;
  await show(tab, "#/waiting");
  const asked = card(tab, "make axe");
  await asked.locator(".answer-approve:enabled").first().waitFor();
  await tab.reload();
  await asked.locator(".answer-approve:enabled").first().waitFor();
  const reached = [];
  for (let at = 0; at < 40 && !reached.includes("Never"); at += 1) {
    await tab.keyboard.press("Tab");
    const focus = await tab.evaluate(() => {
      const element = document.activeElement;
      return { name: (element?.getAttribute("aria-label") ?? element?.textContent ?? "").trim(), outline: element ? getComputedStyle(element).outlineStyle : "" };
    });
    assert.notEqual(focus.outline, "none", focus.name);
    reached.push(focus.name.replace(/[….].*$/, ""));
  }
  for (const name of ["Skip to the content", "Waiting", "Settings", "Command", "Always", "Deny"]) {
    assert.ok(reached.some((one) => one.startsWith(name)), `${name} in ${reached}`);
  }
});

test("landmarks and one heading of the first level in every view", async () => {
  const { tab } = fixture;
  for (const [route, ready] of routes) {
    await show(tab, route);
    await tab.locator(ready).first().waitFor();
    const counts = await tab.evaluate(() => ["main", "nav", "header.bar", "h1"].map((one) => document.querySelectorAll(one).length));
    assert.deepEqual(counts, [1, 1, 1, 1], route);
  }
});
