// Hostile names, commands, outputs and diffs in every view: they are shown as text, and nothing runs or escapes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { show } from "./browser.mjs";
import { ask, deny, usePage } from "./fixture.mjs";

const fixture = usePage();

const MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>";
const BIDI = "\u202etxt.exe";
const FILE = `src/${"<b onclick=alert(3)>"}${BIDI}.txt`;
const VIEWS = ["#/waiting", "#/now", "#/timeline", "#/sandbox", "#/rules"];

/** No element of a page of ours comes from content, and no character changes the direction of text. */
async function checkView(name) {
  const { tab } = fixture;
  const found = await tab.evaluate(() => ({
    foreign: document.querySelectorAll("#app img:not([src='/favicon.svg']), #app script, #app iframe, #app b[onclick], #app style").length,
    raw: /[\u202a-\u202e\u2066-\u2069\u200b-\u200f\u001b]/.test(document.body.innerText),
    wide: document.documentElement.scrollWidth > window.innerWidth,
  }));
  assert.deepEqual(found, { foreign: 0, raw: false, wide: false }, name);
}

test("a hostile request is readable", async () => {
  const { tab, agent } = fixture;
  await show(tab, "#/waiting");
  const command = `npm publish "${MARKUP}" '${BIDI}' $'\\x1b[2K' \u200b# end`;
  const { asked, reply } = await ask(tab, agent, "Bash", { command, description: `${MARKUP} ${BIDI}` }, "npm publish");
  const text = await asked.innerText();
  assert.ok(text.includes(MARKUP), text);
  assert.ok(text.includes("\\u{202e}"), text);
  assert.ok(text.includes("\\u{200b}"), text);
  assert.ok(await asked.locator(".escaped").count() >= 3);
  await checkView("waiting");
  await deny(asked, MARKUP);
  await checkView("settled");
  await reply();
});

test("a hostile command that cannot be split is readable line by line", async () => {
  const { tab, agent } = fixture;
  await show(tab, "#/waiting");
  const command = `npm publish --tag unsplit\nf() {\n  echo "${MARKUP}" ${BIDI}\r\n${"  \n".repeat(200)}}\nf`;
  const { asked, reply } = await ask(tab, agent, "Bash", { command }, "--tag unsplit");
  const lines = await asked.locator(".command-line").allInnerTexts();
  assert.equal(lines.length, command.split("\n").length);
  assert.ok(lines[2].includes(MARKUP) && lines[2].includes("\\u{202e}") && lines[2].endsWith("\\r"), lines[2]);
  await asked.getByRole("button", { name: "Scroll to the end first" }).waitFor();
  await checkView("unsplit");
  await deny(asked);
  await reply();
});

test("hostile file names and diffs with a line of a megabyte", async () => {
  const { tab, agent } = fixture;
  const content = `${MARKUP}\n${BIDI}\n\u001b[31mred\u001b[0m\n${"x".repeat(1_000_000)}\nend\n`;
  await agent.call("Write", { file_path: FILE, content });
  await show(tab, "#/timeline");
  await tab.locator(".row", { hasText: "onclick" }).first().click();
  await tab.locator(".detail .line-added").first().waitFor();
  await checkView("call");
  await tab.getByRole("link", { name: /Open or undo/ }).click();
  await tab.locator(".undo").waitFor();
  await tab.locator(".diff-file .line-added", { hasText: "<img" }).first().waitFor();
  await checkView("change");
});

test("hostile output", async () => {
  const { tab, agent } = fixture;
  await show(tab, "#/now");
  const output = `printf '%s\\n' '${MARKUP}'; printf '\\033]0;title\\007\\033[8mhidden\\033[0m \\xe2\\x80\\xaebidi\\n'; head -c 1000000 /dev/zero | tr '\\0' y; echo; echo the-end; sleep 600`;
  const reply = agent.call("Bash", { command: output });
  const running = tab.locator(".card", { hasText: "onerror=alert(1)" });
  await running.locator(".output-line", { hasText: "the-end" }).waitFor();
  const text = await running.locator(".output-box").innerText();
  assert.ok(text.includes(MARKUP) && text.includes("hidden") && text.includes("\\u{202e}bidi"), text.slice(0, 500));
  await checkView("now");
  await running.getByRole("button", { name: "Stop…" }).click();
  await running.getByRole("button", { name: "Stop the command" }).click();
  await reply;
});

test("a client with a hostile name, and refusals with hostile paths", async () => {
  const { tab, home } = fixture;
  const root = await home.workspace(`ws-<i>${BIDI}`);
  const other = await home.agent(root, { client: `${MARKUP}${BIDI}` });
  await other.call("Bash", { command: `touch '/etc/<img src=x onerror=alert(4)>${BIDI}'` });
  await show(tab, "#/now");
  await tab.locator(".agent", { hasText: "onerror" }).waitFor();
  for (const view of VIEWS) {
    await show(tab, view);
    await tab.locator("h1").waitFor();
    await checkView(view);
  }
  await show(tab, "#/sandbox");
  await tab.locator(".refusal-row").first().waitFor();
  await checkView("sandbox");
  await other.end();
});

test("a hostile address cannot choose anything", async () => {
  const { tab } = fixture;
  for (const hash of ["#/timeline/%3Cimg%20src=x%20onerror=alert(1)%3E", "#/change/..%2F..%2Fsession", "#/javascript:alert(1)"]) {
    await show(tab, hash);
    await tab.locator("h1").waitFor();
    await checkView(hash);
  }
});

test("nothing ran, and nothing was refused by the policy of the page", () => {
  assert.deepEqual(fixture.context.problems, []);
});
