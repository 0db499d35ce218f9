// Requests for approval: what a card shows, every answer, and answers of others.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { open, show } from "./browser.mjs";
import { approve, ask, card, deny, until, usePage } from "./fixture.mjs";

const fixture = usePage();

/** Starts a command that asks. The last word of its first line names its card. */
async function askFor(command, description) {
  const { agent, tab } = fixture;
  await show(tab, "#/waiting");
  const name = command.split("\n")[0].split(" ").find((word, at, all) => all[at - 1] === "--tag");
  return ask(tab, agent, "Bash", { command, ...(description ? { description } : {}) }, `--tag ${name}`);
}

test("a card shows the command in steps, the rule, the reason and the sandbox", async () => {
  const { reply, asked } = await askFor("cd src && npm publish --tag one > out.txt", "Publish it");
  const steps = asked.locator(".step");
  assert.deepEqual(await steps.locator(".step-text").allInnerTexts(), ["cd src", "&& npm publish --tag one > out.txt"]);
  assert.deepEqual(await steps.locator(".step-mark").allInnerTexts(), ["may write"]);
  assert.equal(await asked.locator(".command-written pre").innerText(), "cd src && npm publish --tag one > out.txt");
  await asked.getByText("“Publish it”").waitFor();
  assert.match(await asked.locator(".reasons").innerText(), /publishing[\s\S]*it publishes a package[\s\S]*Sandbox/);
  assert.equal(await fixture.tab.title(), "(1) Toolcrib");
  assert.match(await fixture.tab.locator("link[rel=icon]").getAttribute("href"), /^data:image\/png/);
  await approve(asked);
  await asked.locator(".settled-note", { hasText: "Approved once by you" }).waitFor();
  assert.doesNotMatch(await reply(), /not allowed/);
});

test("a card shows the whole text of a command, also of one that is not split", async () => {
  for (const [command, count] of [
    ["npm publish --tag background &", 1],
    ["> emptied.txt; npm publish --tag redirected", 2],
    ["ls() { touch hidden; }; npm publish --tag function", 0],
    ["npm publish --tag lines\nls() {\n  touch hidden\n}", 0],
    ["npm publish --tag simple", 1],
  ]) {
    const { asked } = await askFor(command);
    assert.equal(await asked.locator(".step").count(), count, command);
    const texts = await asked.locator(count === 0 || command.endsWith("simple") ? ".command" : ".command-written pre").allInnerTexts();
    assert.equal(texts.length, 1, command);
    const lines = await asked.locator(".command-line").allInnerTexts();
    assert.ok(texts[0].includes(command) || lines.join("\n") === command, texts[0]);
    await deny(asked);
  }
});

test("a command that could not be split says so, and its invisible characters are visible", async () => {
  const { asked } = await askFor("npm publish --tag unsplit\nls() {\n\techo \u202etxt\u200b\n}");
  const note = await asked.locator(".command-note").innerText();
  assert.match(note, /could not be split into simple commands: .+It is shown as written/s);
  assert.deepEqual(await asked.locator(".command-line").allInnerTexts(), [
    "npm publish --tag unsplit", "ls() {", "\techo \\u{202e}txt\\u{200b}", "}",
  ]);
  assert.deepEqual(await asked.locator(".escaped").allInnerTexts(), ["\\u{202e}", "\\u{200b}"]);
  await deny(asked);
});

test("all requests of one session are shown, and each can be answered first", async () => {
  const first = await askFor("npm publish --tag several-one");
  const second = await askFor("npm publish --tag several-two");
  const third = await askFor("npm publish --tag several-three");
  assert.equal(await fixture.tab.title(), "(3) Toolcrib");
  await approve(third.asked);
  assert.doesNotMatch(await third.reply(), /not allowed/);
  await deny(first.asked);
  assert.match(await first.reply(), /not allowed/);
  await approve(second.asked);
  assert.doesNotMatch(await second.reply(), /not allowed/);
});

test("a request says how long it can be answered, and what happens then", async () => {
  const { asked } = await askFor("npm publish --tag time");
  const note = asked.locator(".time-left");
  await note.filter({ hasText: /\d+ s left\. Then the agent is told no\. Your answer still counts if it tries again within 10 minutes\./ }).waitFor();
  await deny(asked);
  assert.equal(await note.count(), 0);
});

test("the answer for a session says what it allows, and a rule for one file is the first choice", async () => {
  const { home, root, tab } = fixture;
  await show(tab, "#/waiting");
  const cautious = await home.agent(root, { profile: "cautious", client: "editor-agent" });
  const edit = { file_path: "src/list.txt", old_string: "line 1\n", new_string: "line one\n" };
  const { asked } = await ask(tab, cautious, "Edit", edit, "src/list.txt");
  assert.match(await asked.locator(".card-head").innerText(), /editor-agent[\s\S]*shop/);
  await asked.getByRole("button", { name: /^All edits this session/ }).waitFor();
  await asked.getByRole("button", { name: /Always/ }).click();
  const choices = asked.getByRole("radiogroup").locator("label");
  assert.deepEqual(await choices.allInnerTexts(), ["only this file", "all files in src/"]);
  assert.equal(await choices.first().getByRole("radio").isChecked(), true);
  assert.match(await asked.locator(".toml").innerText(), /src\/list\.txt"/);
  await choices.last().getByRole("radio").check();
  assert.match(await asked.locator(".toml").innerText(), /src"\]/);
  await asked.getByRole("button", { name: "Cancel" }).click();
  await deny(asked);
  await cautious.end();
});

test("a request without “Always” says why", async () => {
  const { asked } = await askFor("npm publish --tag why");
  assert.match(await asked.locator(".answer-reason").innerText(), /your own rule asks/);
  await deny(asked);
});

test("agents with the same client and workspace are told apart", async () => {
  const { home, root, tab } = fixture;
  await show(tab, "#/waiting");
  const twins = [await home.agent(root, { client: "twin" }), await home.agent(root, { client: "twin" })];
  const { asked } = await ask(tab, twins[0], "Bash", { command: "npm publish --tag twin" }, "--tag twin");
  await asked.locator(".agent-id", { hasText: /twin.*shop.*process \d+, started/ }).waitFor();
  await deny(asked);
  await Promise.all(twins.map((agent) => agent.end()));
});

test("a call that waits for an answer does not run, also if it asks again", async () => {
  const { tab } = fixture;
  const first = await askFor("npm publish --tag queued-one");
  const second = await askFor("npm publish --tag queued-two");
  await show(tab, "#/now");
  await tab.getByText("No call is running").waitFor();
  assert.equal(await tab.locator(".note-wait", { hasText: "It waits for your answer" }).count(), 2);
  await show(tab, "#/waiting");
  await deny(first.asked);
  await deny(second.asked);
});

test("a command that asks about a host runs", async () => {
  const { home, root, tab } = fixture;
  await show(tab, "#/waiting");
  const online = await home.agent(root, { client: "online", args: ["--network-access", "list"] });
  const known = await ask(tab, online, "Bash", { command: "npm publish --tag host" }, "--tag host");
  await deny(known.asked);
  const reply = online.call("Bash", { command: "echo before; exec 3<>/dev/tcp/asked.example/80; echo x >&3; cat <&3" });
  const asked = card(tab, "asked.example");
  await asked.getByText("connects to").waitFor();
  await asked.getByRole("button", { name: /^This host this session/ }).waitFor();
  await show(tab, "#/now");
  await tab.getByText("1 call running").waitFor();
  await tab.locator(".output-line", { hasText: "before" }).waitFor();
  await show(tab, "#/waiting");
  await deny(asked);
  await reply;
  await online.end();
});

test("a denial carries the message to the agent", async () => {
  const { reply, asked } = await askFor("npm publish --tag two");
  await deny(asked, "use <b>staging</b>");
  await asked.locator(".settled-note", { hasText: "use <b>staging</b>" }).waitFor();
  assert.match(await reply(), /use <b>staging<\/b>/);
});

test("this session: the same command does not ask again", async () => {
  const { reply, asked } = await askFor("npm publish --tag session");
  const session = asked.getByRole("button", { name: /This command this session/ });
  assert.match(await session.getAttribute("title"), /npm publish --tag session/);
  await until(asked.locator(".settled-note"), (limit) => session.click(limit));
  await reply();
  assert.doesNotMatch(await fixture.agent.call("Bash", { command: "npm publish --tag session" }), /not allowed/);
});

test("for minutes", async () => {
  const { reply, asked } = await askFor("npm publish --tag minutes");
  await asked.getByRole("button", { name: /For minutes/ }).click();
  await asked.getByRole("spinbutton").fill("7");
  await approve(asked, "Approve for 7 minutes");
  await asked.locator(".settled-note", { hasText: "for 7 minutes" }).waitFor();
  await reply();
});

test("always shows the rule and its preview, asks again, and writes the rule", async () => {
  const { home, root, tab } = fixture;
  await show(tab, "#/waiting");
  const cautious = await home.agent(root, { profile: "cautious", client: "cautious-agent" });
  const { reply, asked } = await ask(tab, cautious, "Bash", { command: "make always-made" }, "make always-made");
  await asked.getByRole("button", { name: /Always/ }).click();
  const toml = await asked.locator(".toml").innerText();
  assert.match(toml, /\[\[rule\]\][\s\S]*make always-made/);
  await asked.locator(".preview-title").waitFor();
  assert.doesNotMatch(await readFile(home.rules, "utf8"), /always-made/, "nothing is written before the second step");
  await approve(asked, "Add the rule and approve");
  await asked.locator(".settled-note").waitFor();
  await reply();
  assert.match(await readFile(home.rules, "utf8"), /make always-made/);
  await cautious.end();
});

test("never adds a rule that denies", async () => {
  const { home } = fixture;
  const { reply, asked } = await askFor("npm publish --tag never");
  await asked.getByRole("button", { name: /Never/ }).click();
  assert.match(await asked.locator(".toml").innerText(), /decision = "deny"/);
  await until(asked.locator(".settled-note"), (limit) => asked.getByRole("button", { name: "Add the rule and deny" }).click(limit));
  await asked.locator(".settled-note", { hasText: "Always denied by you" }).waitFor();
  assert.match(await reply(), /not allowed/);
  assert.match(await readFile(home.rules, "utf8"), /--tag never/);
});

test("an answer in another tab is shown with its answer", async () => {
  const other = await open(fixture.context, `${fixture.page.origin}/#/waiting`);
  await fixture.tab.bringToFront();
  const { reply, asked } = await askFor("npm publish --tag tabs");
  await other.bringToFront();
  await approve(card(other, "--tag tabs"));
  await reply();
  await asked.locator(".settled-note", { hasText: "Approved once on the page" }).waitFor();
  await other.close();
  await fixture.tab.bringToFront();
});

test("a lost race shows who answered what", async () => {
  const { tab, context } = fixture;
  const { reply, asked } = await askFor("npm publish --tag race");
  const approve = asked.getByRole("button", { name: /Approve once/ });
  await approve.and(tab.locator(":enabled")).waitFor();
  // Another client denies while our answer is on its way.
  const token = await tab.evaluate(() => sessionStorage.getItem("toolcrib-token"));
  await tab.route("**/api/questions/*", async (route) => {
    const sent = route.request();
    const denial = { digest: sent.postDataJSON().digest, answer: "no" };
    const headers = { ...(await sent.allHeaders()), authorization: `Bearer ${token}` };
    delete headers["content-length"];
    await context.request.post(sent.url(), { data: denial, headers });
    await route.continue();
  });
  const answered = tab.waitForResponse((response) => response.url().includes("/api/questions/"));
  await approve.click();
  assert.equal((await answered).status(), 409);
  await asked.locator(".settled-note", { hasText: "Denied on the page" }).waitFor();
  assert.match(await reply(), /not allowed/);
  await tab.unroute("**/api/questions/*");
});

test("approving is not possible until the end of a long command was on the screen", async () => {
  const lines = Array.from({ length: 80 }, (_, at) => `echo step ${at}`).join("\n");
  const { reply, asked } = await askFor(`npm publish --tag long\n${lines}\nrm -rf build`);
  const approve = asked.getByRole("button", { name: /Approve once/ });
  await asked.getByRole("button", { name: "Scroll to the end first" }).waitFor();
  assert.equal(await approve.isDisabled(), true);
  await asked.getByRole("button", { name: "Scroll to the end first" }).click();
  await approve.and(fixture.tab.locator(":enabled")).waitFor();
  await deny(asked);
  assert.match(await reply(), /not allowed/);
});

test("an edit outside the workspace shows its diff, and one approval allows one call", async () => {
  const { agent, tab, home } = fixture;
  await show(tab, "#/waiting");
  const outside = await home.workspace("elsewhere", { "note.txt": "one\ntwo\n" });
  const edit = { file_path: `${outside}/note.txt`, old_string: "two", new_string: "three" };
  const { reply, asked } = await ask(tab, agent, "Edit", edit, "note.txt");
  await asked.locator(".line-added", { hasText: "three" }).waitFor();
  await asked.locator(".line-removed", { hasText: "two" }).waitFor();
  await asked.getByRole("button", { name: "All edits there this session" }).waitFor();
  await approve(asked);
  await reply();
  assert.equal(await readFile(`${outside}/note.txt`, "utf8"), "one\nthree\n");
  const again = await ask(tab, agent, "Edit", { ...edit, old_string: "three", new_string: "four" }, "note.txt");
  await deny(again.asked);
  assert.match(await again.reply(), /not allowed/);
});

test("a diff that is too long for the page needs a tick besides its end", async () => {
  const { agent, tab, home } = fixture;
  await show(tab, "#/waiting");
  const outside = await home.workspace("large");
  const content = `${"a line of a large file, which is longer than the page shows\n".repeat(15_000)}`;
  const { reply, asked } = await ask(tab, agent, "Write", { file_path: `${outside}/large.txt`, content }, "large.txt");
  const approve = asked.getByRole("button", { name: /Approve once/ });
  await asked.getByRole("button", { name: "Scroll to the end first" }).click();
  await asked.getByText("Tick the box first").waitFor();
  assert.equal(await approve.isDisabled(), true);
  await asked.getByRole("checkbox").check();
  await approve.and(tab.locator(":enabled")).waitFor();
  await deny(asked);
  assert.match(await reply(), /not allowed/);
});

test("the keyboard alone chooses and answers; Enter does nothing by itself", async () => {
  const { tab } = fixture;
  const { reply, asked } = await askFor("npm publish --tag keys");
  await tab.keyboard.press("j");
  await tab.keyboard.press("j");
  await tab.keyboard.press("j");
  await asked.and(tab.locator("[aria-current=true]")).waitFor();
  await asked.locator(".answer-approve:enabled").first().waitFor();
  await tab.keyboard.press("Enter");
  assert.equal(await asked.locator(".settled-note").count(), 0);
  await tab.keyboard.press("n");
  await tab.keyboard.type("yes sir y");
  assert.equal(await asked.getByLabel("Message to the agent").inputValue(), "yes sir y");
  await tab.keyboard.press("Escape");
  assert.equal(await asked.getByLabel("Message to the agent").count(), 0);
  await until(asked.locator(".settled-note"), () => tab.keyboard.press("y"));
  await asked.locator(".settled-note", { hasText: "Approved once by you" }).waitFor();
  await reply();
});

test("single keys can be switched off", async () => {
  const { tab } = fixture;
  await tab.getByRole("button", { name: "Settings" }).click();
  await tab.getByLabel(/Single keys/).uncheck();
  await tab.keyboard.press("Escape");
  await tab.locator("dialog").waitFor({ state: "detached" });
  await tab.keyboard.press("3");
  await tab.keyboard.press("?");
  assert.equal(await tab.locator("dialog").count(), 0);
  assert.match(tab.url(), /waiting/);
  await tab.getByRole("button", { name: "Settings" }).click();
  await tab.getByLabel(/Single keys/).check();
  await tab.keyboard.press("Escape");
});

test("after an answer, the focus is on the next request, and then on the heading", async () => {
  const { tab } = fixture;
  const first = await askFor("npm publish --tag next-one");
  const second = await askFor("npm publish --tag next-two");
  await first.asked.locator(".answer-approve:enabled").first().waitFor();
  await first.asked.focus();
  await until(first.asked.locator(".settled-note"), () => tab.keyboard.press("y"));
  await second.asked.and(tab.locator(":focus")).waitFor();
  await tab.keyboard.press("y");
  await first.reply();
  assert.equal(await second.asked.locator(".settled-note").count(), 0, "a second press does not answer the next request");
  await second.asked.locator(".answer-approve:enabled").first().waitFor();
  await approve(second.asked);
  await tab.locator("h1:focus", { hasText: "Waiting" }).waitFor();
  await second.reply();
});

test("an event does not move the focus", async () => {
  const { tab } = fixture;
  const { reply, asked } = await askFor("npm publish --tag focus-one");
  await asked.getByRole("button", { name: /Deny/ }).click();
  await asked.getByLabel("Message to the agent").fill("half a sen");
  const second = await askFor("npm publish --tag focus-two");
  await tab.keyboard.type("tence");
  assert.equal(await asked.getByLabel("Message to the agent").inputValue(), "half a sentence");
  await deny(asked);
  await deny(second.asked);
  await Promise.all([reply(), second.reply()]);
});

test("nothing was refused by the policy of the page, and no script failed", () => {
  assert.deepEqual(fixture.context.problems, []);
});
