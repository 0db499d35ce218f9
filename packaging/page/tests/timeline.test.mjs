// The timeline and the view of running calls.

import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { show } from "./browser.mjs";
import { until, usePage } from "./fixture.mjs";

const fixture = usePage();

function row(text) {
  return fixture.tab.locator(".row").filter({ hasText: text });
}

test("calls appear while the timeline is open", async () => {
  const { tab, agent } = fixture;
  await show(tab, "#/timeline");
  await agent.call("Write", { file_path: "src/new.txt", content: "hello\n" });
  await row("src/new.txt").first().waitFor();
  await agent.call("Read", { file_path: "src/list.txt" });
  await row("src/list.txt").first().waitFor();
});

test("a call has its diff, command, outcome and refusals", async () => {
  const { tab, agent } = fixture;
  await agent.call("Bash", { command: "echo probing; sed -i 's/line 3$/LINE 3/' src/list.txt; touch /etc/refused; exit 3" });
  await show(tab, "#/timeline");
  await row("echo probing").first().click();
  const detail = tab.locator(".detail");
  await detail.locator(".detail-title", { hasText: "touch /etc/refused" }).waitFor();
  await detail.locator(".line-added", { hasText: "LINE 3" }).waitFor();
  await detail.getByText("Refused by the sandbox").waitFor();
  await tab.keyboard.press("Escape");
  await detail.waitFor({ state: "detached" });
});

test("filters and search narrow the list, and the address keeps them", async () => {
  const { tab, agent } = fixture;
  await agent.call("Bash", { command: "echo needle-in-the-journal" });
  await agent.call("Read", { file_path: "README.md" });
  await show(tab, "#/rules");
  await tab.getByRole("heading", { name: "Rules", exact: true }).waitFor();
  await tab.keyboard.press("/");
  await tab.locator("input[aria-label=Search]:focus").waitFor();
  await tab.keyboard.type("needle-in-the");
  await tab.locator(".row-title", { hasText: "README.md" }).waitFor({ state: "detached" });
  await row("needle-in-the-journal").first().waitFor();
  await tab.waitForURL(/text=needle-in-the/);
  await tab.getByLabel("Search").fill("");
  await tab.getByLabel("Tool").selectOption("Read");
  await row("README.md").first().waitFor();
  await row("needle-in-the-journal").first().waitFor({ state: "detached" });
  await tab.getByLabel("Tool").selectOption("");
  await tab.getByLabel("Search").fill("no call has this text");
  await tab.getByText("No call matches").waitFor();
  await tab.getByLabel("Search").fill("");
  await row("README.md").first().waitFor();
});

test("j and k move the selection, u opens the change", async () => {
  const { tab, agent } = fixture;
  await agent.call("Write", { file_path: "src/last.txt", content: "x\n" });
  await show(tab, "#/timeline");
  await row("src/last.txt").first().waitFor();
  await tab.locator("h1").click();
  await tab.keyboard.press("j");
  await tab.locator(".row[aria-current]").waitFor();
  await tab.locator(".detail .line-added").waitFor();
  await tab.keyboard.press("u");
  await tab.getByRole("heading", { name: /^Change/ }).waitFor();
});

test("a running command shows its output, and can be stopped", async () => {
  const { tab, agent } = fixture;
  await show(tab, "#/now");
  const reply = agent.call("Bash", { command: "for i in 1 2 3; do echo tick $i; done; printf '10%%\\r90%%\\n'; sleep 600" });
  const card = tab.locator(".card", { hasText: "sleep 600" });
  await card.locator(".output-line", { hasText: "tick 3" }).waitFor();
  await card.locator(".output-line", { hasText: /^90%$/ }).waitFor();
  await tab.getByRole("heading", { name: "Agents" }).waitFor();
  await tab.locator(".agent", { hasText: "test-agent" }).waitFor();
  await card.getByRole("button", { name: "Stop…" }).click();
  await card.getByRole("button", { name: "Stop the command" }).click();
  await reply;
  await card.waitFor({ state: "detached" });
  await tab.locator(".recent .row", { hasText: "sleep 600" }).waitFor();
});

test("a background command stays in Now until it ends, and the timeline shows how it ended", async () => {
  const { tab, agent, root } = fixture;
  await show(tab, "#/now");
  await agent.call("Bash", { command: "until test -e go-on; do sleep 0.1; done; touch /etc/refused-late; exit 7", run_in_background: true });
  const card = tab.locator(".card", { hasText: "until test -e go-on" });
  await card.getByText("in the background").waitFor();
  await tab.reload();
  await card.getByText("in the background").waitFor();
  assert.equal(await tab.locator(".recent .row", { hasText: "until test -e go-on" }).count(), 0);
  await writeFile(`${root}/go-on`, "");
  await card.waitFor({ state: "detached" });
  await show(tab, "#/timeline");
  await row("until test -e go-on").locator(".outcome-failed").waitFor();
  await row("until test -e go-on").click();
  const detail = tab.locator(".detail");
  await detail.getByText(/It went on after the call, and failed with exit code 7 after/).waitFor();
  await detail.getByText("Refused by the sandbox").waitFor();
  await show(tab, "#/sandbox");
  await tab.locator(".refusal-row", { hasText: "/etc/refused-late" }).waitFor();
});

test("a background command ends with its server", async () => {
  const { tab, home, root } = fixture;
  const agent = await home.agent(root, { client: "killed-agent" });
  await agent.call("Bash", { command: "sleep 601; echo never", run_in_background: true });
  await show(tab, "#/timeline");
  await row("sleep 601").locator(".outcome-running").waitFor();
  await agent.end("SIGKILL");
  await tab.reload();
  await row("sleep 601").locator(".outcome", { hasText: "ended with its server" }).waitFor({ state: "attached" });
  await row("sleep 601").click();
  await tab.locator(".detail").getByText("It went on after the call, and ended with its server").waitFor();
});

test("dry runs, undos and refused writes are named in the list", async () => {
  const { tab, agent, home, root } = fixture;
  const dry = home.spawn(["call", "Write", JSON.stringify({ file_path: "dry.txt", content: "x" }), "--dry-run"], root);
  await once(dry, "exit");
  await agent.call("Write", { file_path: "src/undone.txt", content: "x\n" });
  await agent.call("Undo", {});
  await agent.call("Write", { file_path: ".git/hooks/pre-commit", content: "x\n" });
  await show(tab, "#/timeline");
  await tab.reload();
  await row("dry.txt").locator(".fact", { hasText: "dry run" }).waitFor();
  await row("src/undone.txt").filter({ has: tab.locator(".tool", { hasText: "Undo" }) }).waitFor();
  await row(".git/hooks/pre-commit").waitFor();
});

test("a command that floods its output does not freeze the tab", async () => {
  const { tab, agent } = fixture;
  await show(tab, "#/now");
  const reply = agent.call("Bash", { command: "timeout 20 yes 'a line of output that repeats for ever' ; true" });
  const card = tab.locator(".card", { hasText: "timeout 20 yes" });
  await card.locator(".output-line").nth(500).waitFor({ state: "attached" });
  // The tab still reacts, and what it keeps is bounded.
  await tab.getByRole("link", { name: /Rules/ }).click();
  await tab.getByRole("heading", { name: "Rules", exact: true }).waitFor();
  await tab.getByRole("link", { name: /Now/ }).click();
  await card.locator(".output-line").nth(100).waitFor({ state: "attached" });
  assert.ok(await card.locator(".output-line").count() <= 1_501);
  await card.getByRole("button", { name: "Stop…" }).click();
  await card.getByRole("button", { name: "Stop the command" }).click();
  await reply;
});

test("many calls are drawn as few rows, and the last one is reached by scrolling", async () => {
  const { tab, agent } = fixture;
  await agent.call("Bash", { command: "echo the-very-first-of-many" });
  for (let at = 0; at < 300; at += 1) {
    await agent.call("LS", { path: at % 2 ? "src" : "." });
  }
  await show(tab, "#/timeline");
  await tab.reload();
  await tab.locator(".row").first().waitFor();
  assert.ok(await tab.locator(".row").count() < 120);
  let first = 240;
  await until(row("the-very-first-of-many").first(), async () => {
    first += 15;
    await tab.locator(".virtual").evaluate((box, at) => {
      box.scrollTop = at * 36;
    }, first);
  });
  assert.ok(await tab.locator(".row").count() < 120);
});

test("nothing was refused by the policy of the page, and no script failed", () => {
  assert.deepEqual(fixture.context.problems, []);
});
