// Twelve tabs, frames of other pages, tickets, and a page process that is killed and comes back.

import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { launch, live, newContext, open, show } from "./browser.mjs";
import { approve, ask, card, FILES, RULES } from "./fixture.mjs";
import { end, Home } from "./program.mjs";

let home, page, browser, context, root, agent;

before(async () => {
  home = await Home.create(RULES);
  page = await home.page();
  browser = await launch();
  context = await newContext(browser);
  root = await home.workspace("shop", FILES);
  agent = await home.agent(root);
});

after(async () => {
  await browser?.close();
  await home?.remove();
});

test("twelve tabs share one stream, and all see a request and its answer", async () => {
  const tabs = [await open(context, page.address)];
  while (tabs.length < 12) {
    tabs.push(await open(context, `${page.origin}/#/waiting`));
  }
  const { reply } = await ask(tabs[0], agent, "Bash", { command: "npm publish --tag twelve" }, "--tag twelve");
  for (const tab of tabs) {
    await card(tab, "--tag twelve").waitFor();
  }
  await tabs[11].bringToFront();
  await approve(card(tabs[11], "--tag twelve"));
  for (const tab of tabs) {
    await card(tab, "--tag twelve").locator(".settled-note").waitFor();
  }
  await reply();
  for (const tab of tabs.slice(1)) {
    await tab.close();
  }
});

test("a ticket works once", async () => {
  const stranger = await newContext(browser);
  const tab = await stranger.newPage();
  await tab.goto(page.address);
  await tab.getByRole("heading", { name: "This tab is not signed in" }).waitFor();
  assert.doesNotMatch(tab.url(), new RegExp(new URL(page.address).hash.slice(1)));
  await stranger.close();
});

test("a reload keeps the tab signed in", async () => {
  const [tab] = context.pages();
  await tab.reload();
  await live(tab);
});

test("another page cannot frame it or read from it", async () => {
  const foreign = createServer((_request, response) => {
    response.setHeader("Content-Type", "text/html");
    response.end(`<h1>foreign</h1><iframe src="${page.origin}/"></iframe>`);
  });
  await new Promise((resolve) => foreign.listen(0, "127.0.0.1", resolve));
  const tab = await context.newPage();
  await tab.goto(`http://127.0.0.1:${foreign.address().port}/`);
  const frame = tab.frames()[1];
  assert.ok(!frame || !(await frame.content().catch(() => "")).includes("id=\"app\""));
  const outcomes = await tab.evaluate(async (origin) => Promise.all(["/api/workspaces", "/api/session", "/app.js"].map(
    (path) => fetch(origin + path, { method: path === "/api/session" ? "POST" : "GET" }).then(() => "read", () => "refused"),
  )), page.origin);
  assert.deepEqual(outcomes, ["refused", "refused", "refused"]);
  await tab.close();
  await new Promise((resolve) => foreign.close(resolve));
});

test("a killed page process is told, agents go on, and a new one brings all tabs back", async () => {
  const [tab] = context.pages();
  await show(tab, "#/timeline");
  const port = new URL(page.origin).port;
  await end(page.child, "SIGKILL");
  await tab.getByText("The page process does not answer").waitFor();
  await tab.waitForFunction(() => document.title.includes("offline"));
  assert.match(await agent.call("Bash", { command: "echo still-working" }), /still-working/);

  page = await home.page("--port", port);
  assert.equal(new URL(page.origin).port, port);
  // The new process does not know the old token. One tab with a new ticket signs all tabs in.
  await tab.getByRole("heading", { name: "This tab is not signed in any more" }).waitFor();
  const fresh = await open(context, page.address);
  await live(tab);
  await tab.locator(".row", { hasText: "still-working" }).first().waitFor();
  await fresh.bringToFront();
  await show(fresh, "#/waiting");
  const { asked, reply } = await ask(fresh, agent, "Bash", { command: "npm publish --tag return" }, "--tag return");
  await approve(asked);
  await reply();
  await fresh.close();
});

test("a request survives the page process, and a new one can answer it", async () => {
  const [tab] = context.pages();
  await tab.bringToFront();
  await show(tab, "#/waiting");
  const { reply } = await ask(tab, agent, "Bash", { command: "npm publish --tag survives" }, "--tag survives");
  const port = new URL(page.origin).port;
  await end(page.child, "SIGKILL");
  page = await home.page("--port", port);
  const fresh = await open(context, page.address);
  await show(fresh, "#/waiting");
  const asked = card(fresh, "--tag survives");
  await asked.locator(".time-left").waitFor();
  await approve(asked);
  await asked.locator(".settled-note", { hasText: "Approved once by you" }).waitFor();
  // The call waits for 50 seconds. On a slow machine it ends before the answer, which then counts for the same call.
  const replied = await reply();
  const again = /still open on the page/.test(replied) ? await agent.call("Bash", { command: "npm publish --tag survives" }) : replied;
  assert.doesNotMatch(again, /not allowed/);
  await fresh.close();
});

test("two browsers have a token each, and both see a request and its answer", async () => {
  const [tab] = context.pages();
  await tab.bringToFront();
  await show(tab, "#/waiting");
  await live(tab);
  // The process runs already, so the command prints another address of it.
  const second = await home.page();
  assert.equal(second.origin, page.origin);
  const stranger = await newContext(browser);
  const other = await open(stranger, second.address);
  const { asked, reply } = await ask(tab, agent, "Bash", { command: "npm publish --tag browsers" }, "--tag browsers");
  await show(other, "#/waiting");
  await approve(card(other, "--tag browsers"));
  await asked.locator(".settled-note", { hasText: "Approved once on the page" }).waitFor();
  assert.doesNotMatch(await reply(), /not allowed/);
  assert.notEqual(...await Promise.all([tab, other].map((one) => one.evaluate(() => sessionStorage.getItem("toolcrib-token")))));
  await stranger.close();
});

test("an agent that is killed leaves no request, no command and no socket", async () => {
  const [tab] = context.pages();
  await tab.bringToFront();
  await show(tab, "#/waiting");
  const other = await home.agent(root, { client: "killed-agent" });
  await other.call("Bash", { command: "sleep 600", run_in_background: true });
  const { asked } = await ask(tab, other, "Bash", { command: "npm publish --tag killed" }, "--tag killed");
  const sockets = async () => (await readdir(`${home.runtime}/toolcrib`)).filter((name) => name.endsWith(".sock")).length;
  const before = await sockets();
  await other.end("SIGKILL");
  await asked.locator(".settled-note", { hasText: "withdrawn" }).waitFor();
  await show(tab, "#/now");
  await tab.locator(".card", { hasText: "sleep 600" }).waitFor({ state: "detached" });
  await tab.locator(".agent", { hasText: "killed-agent" }).waitFor({ state: "detached" });
  while (await sockets() >= before) {
    await setTimeout(100);
  }
});

test("an agent that ends takes its request along", async () => {
  const [tab] = context.pages();
  await tab.bringToFront();
  await show(tab, "#/waiting");
  const other = await home.agent(root, { client: "short-lived" });
  const { asked } = await ask(tab, other, "Bash", { command: "npm publish --tag orphan" }, "--tag orphan");
  await other.end();
  await asked.locator(".settled-note", { hasText: "withdrawn" }).waitFor();
});

test("nothing was refused by the policy of the page, and no script failed", () => {
  // The foreign page of these tests is refused on purpose.
  assert.deepEqual(context.problems.filter((one) => !/fram/i.test(one)), []);
});
