// The rules file, its explainer and previews, and the view of refusals.

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { show } from "./browser.mjs";
import { RULES, usePage } from "./fixture.mjs";

const fixture = usePage();

test("the file is shown with line numbers, and with what each rule decided", async () => {
  const { tab, agent } = fixture;
  await agent.call("Bash", { command: "git push --force" });
  await show(tab, "#/rules");
  const rule = tab.locator(".rule", { hasText: "no-force" });
  await rule.getByText("deny", { exact: true }).waitFor();
  assert.match(await rule.locator(".line-number").first().innerText(), /^10$/);
  await rule.getByText("1 call in 30 days").waitFor();
});

test("a rule is added after its preview", async () => {
  const { tab } = fixture;
  await show(tab, "#/rules");
  await tab.getByLabel("The rule as TOML").fill('[[rule]]\nname = "added-here"\ndecision = "deny"\nkind = "command"\ncommands = ["git push"]\n');
  await tab.getByRole("button", { name: "Preview…" }).click();
  await tab.locator(".preview-title").waitFor();
  assert.equal(await readFile(fixture.home.rules, "utf8"), RULES, "a preview changes nothing");
  await tab.getByRole("button", { name: "Add this rule" }).click();
  await tab.locator(".rule", { hasText: "added-here" }).first().waitFor();
  assert.match(await readFile(fixture.home.rules, "utf8"), /added-here/);
});

test("a rule that does not parse is not added", async () => {
  const { tab } = fixture;
  await tab.getByLabel("The rule as TOML").fill("[[rule]]\ndecision = \"perhaps\"\n");
  await tab.getByRole("button", { name: "Preview…" }).click();
  await tab.locator(".note-error").first().waitFor();
  await tab.getByLabel("The rule as TOML").fill("");
});

test("a rule is removed after its preview", async () => {
  const { tab } = fixture;
  const rule = tab.locator(".rule", { hasText: "added-here" }).first();
  await rule.getByRole("button", { name: "Remove…" }).click();
  await rule.getByRole("button", { name: "Remove this rule" }).click();
  await rule.waitFor({ state: "detached" });
  const text = await readFile(fixture.home.rules, "utf8");
  assert.doesNotMatch(text, /added-here/);
  assert.match(text, /no-force/);
});

test("a rule whose lines have changed is not removed", async () => {
  const { tab, home } = fixture;
  await tab.reload();
  const rule = tab.locator(".rule", { hasText: "publishing" });
  await rule.getByRole("button", { name: "Remove…" }).click();
  await writeFile(home.rules, RULES.replace("publishing", "renamed"));
  await rule.getByRole("button", { name: "Remove this rule" }).click();
  await rule.locator(".note-error").waitFor();
  assert.match(await readFile(home.rules, "utf8"), /renamed/);
  await writeFile(home.rules, RULES);
});

test("the explainer says how a command would be decided", async () => {
  const { tab } = fixture;
  await tab.reload();
  await tab.getByLabel("command", { exact: true }).fill("npm publish");
  await tab.getByRole("button", { name: "Explain" }).click();
  assert.match(await tab.locator(".explanation").innerText(), /publishing/);
});

test("refusals of the sandbox are listed with the setting that allows them", async () => {
  const { tab, agent } = fixture;
  await agent.call("Bash", { command: "touch /etc/refused-here" });
  await show(tab, "#/sandbox");
  const row = tab.locator(".refusal-row").first();
  await row.waitFor();
  assert.match(await row.innerText(), /write/i);
  await row.getByRole("link", { name: "Show the call" }).click();
  await tab.locator(".detail .detail-title", { hasText: "refused-here" }).waitFor();
});

test("an explanation uses the profile of the chosen agent", async () => {
  const { tab, home, root } = fixture;
  const cautious = await home.agent(root, { profile: "cautious", client: "careful" });
  // A client is known by its name after its first request.
  await cautious.call("LS", {});
  await show(tab, "#/rules");
  await tab.getByLabel("command", { exact: true }).fill("make all");
  const agents = tab.getByLabel("Agent");
  await agents.locator("option", { hasText: "careful" }).waitFor({ state: "attached" });
  const name = await agents.locator("option", { hasText: "careful" }).innerText();
  assert.match(name, /profile cautious/);
  await agents.selectOption({ label: name });
  await tab.getByRole("button", { name: "Explain" }).click();
  await tab.locator(".explanation", { hasText: /^ask by profile:cautious/ }).waitFor();
  await agents.selectOption({ label: await agents.locator("option", { hasText: "test-agent" }).innerText() });
  await tab.getByRole("button", { name: "Explain" }).click();
  await tab.locator(".explanation", { hasText: /^allow by/ }).waitFor();
  await cautious.end();
});

test("a refused host comes with the rule that would allow it, and a button that adds it", async () => {
  const { tab, home, root } = fixture;
  // The page does not know this agent, so nobody is asked, and the host is refused.
  const online = await home.agent(root, { client: "online", args: ["--network-access", "list", "--no-monitor"] });
  await online.call("Bash", { command: "exec 3<>/dev/tcp/refused.example/80" });
  await show(tab, "#/sandbox");
  await tab.reload();
  const refused = tab.locator(".refusal-row", { hasText: "connect refused.example:80" });
  await refused.first().waitFor();
  await refused.first().getByRole("button", { name: "Add this rule…" }).click();
  await refused.first().getByRole("button", { name: "Add this rule", exact: true }).click();
  await tab.getByText("The rule was added").first().waitFor();
  assert.match(await readFile(home.rules, "utf8"), /hosts = \["refused\.example:80"\]/);
  await online.end();
});

test("nothing was refused by the policy of the page, and no script failed", () => {
  assert.deepEqual(fixture.context.problems, []);
});
