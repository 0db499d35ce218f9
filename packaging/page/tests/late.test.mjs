// A request whose agent was told no: it can still be answered, for the next try.

import assert from "node:assert/strict";
import { test } from "node:test";
import { show } from "./browser.mjs";
import { approve, ask, usePage } from "./fixture.mjs";

const fixture = usePage();

test("a late request says what became of the call, and what a late answer is good for", async () => {
  const { agent, tab } = fixture;
  await show(tab, "#/waiting");
  const { asked, reply } = await ask(tab, agent, "Bash", { command: "npm publish --tag late" }, "--tag late");
  assert.match(await reply(), /nobody has answered yet/);
  const note = asked.locator(".time-left-ended");
  await note.filter({ hasText: /^The agent was told no after 50 s\. Your answer counts if it tries again within/ }).waitFor();
  await asked.locator(".card-wait", { hasText: "the agent does not wait" }).waitFor();
  assert.match(await tab.locator(".view-sub").innerText(), /No agent waits for you; 1 more can still be answered/);
  // The same question of another call.
  const again = agent.call("Bash", { command: "npm publish --tag late" });
  await asked.locator(".card-wait", { hasText: "waiting" }).waitFor();
  await show(tab, "#/now");
  await tab.getByText("No call is running").waitFor();
  await show(tab, "#/waiting");
  assert.match(await again, /nobody has answered yet/);
  await note.waitFor();
  await approve(asked);
  await asked.locator(".settled-note", { hasText: /Approved once by you\. The agent was told no after 50 s\. Your answer counts if it tries again/ }).waitFor();
  assert.doesNotMatch(await agent.call("Bash", { command: "npm publish --tag late" }), /not allowed/);
});
