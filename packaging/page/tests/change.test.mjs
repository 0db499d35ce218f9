// Undo: of all, of one file, of one hunk, with a preview first; redo.

import assert from "node:assert/strict";
import { access, readFile } from "node:fs/promises";
import { test } from "node:test";
import { show } from "./browser.mjs";
import { usePage } from "./fixture.mjs";

const fixture = usePage();
let changes = 0;

const exists = (path) => access(`${fixture.root}/${path}`).then(() => true, () => false);
const read = (path) => readFile(`${fixture.root}/${path}`, "utf8");

/** Runs a command that changes files, and opens its change. */
async function change(command) {
  const { tab, agent } = fixture;
  changes += 1;
  await agent.call("Bash", { command: `${command} # change-${changes}` });
  await show(tab, "#/timeline");
  await tab.locator(".row").filter({ hasText: `change-${changes}` }).first().click();
  await tab.getByRole("link", { name: /Open or undo/ }).click();
  // The detail of the timeline has diffs, too.
  await tab.locator(".undo").waitFor();
  await tab.locator(".diff-file").first().waitFor();
}

async function confirm() {
  await fixture.tab.getByRole("button", { name: "Undo now" }).click();
  await fixture.tab.locator(".note-good").waitFor();
}

test("undo of all, with the preview first, and redo", async () => {
  const { tab } = fixture;
  await change("rm README.md; echo more > extra.txt");
  await tab.getByText("Undo today").waitFor();
  await tab.getByRole("button", { name: /Undo all/ }).click();
  assert.match(await tab.locator(".undo-preview").innerText(), /README\.md/);
  assert.equal(await exists("README.md"), false, "a preview changes nothing");
  await confirm();
  assert.deepEqual([await exists("README.md"), await exists("extra.txt")], [true, false]);
  await tab.getByRole("heading", { name: "This change was undone" }).waitFor();
  await tab.locator(".relations", { hasText: /^Undone by change/ }).waitFor();
  await tab.getByRole("button", { name: "Redo" }).click();
  await tab.getByRole("heading", { name: "Undo today" }).waitFor();
  assert.deepEqual([await exists("README.md"), await exists("extra.txt")], [false, true]);
});

test("a created file will be deleted, and its preview says so", async () => {
  const { tab } = fixture;
  await change("echo new > created.txt");
  assert.match(await tab.locator(".forecast").innerText(), /^deleted\s+created\.txt\s+the change created it$/);
});

test("undo of one file leaves the others", async () => {
  const { tab } = fixture;
  await change("echo one > a.txt; echo two > b.txt");
  await tab.locator(".diff-file", { hasText: "a.txt" }).getByRole("button", { name: /Undo file/ }).click();
  await confirm();
  assert.deepEqual([await exists("a.txt"), await exists("b.txt")], [false, true]);
  await tab.locator(".relations", { hasText: /^Partly undone by change/ }).waitFor();
  await tab.getByRole("button", { name: /Undo the rest/ }).waitFor();
});

test("undo of one hunk leaves the others", async () => {
  const { tab } = fixture;
  await change("sed -i 's/line 2$/FIRST/; s/line 38$/SECOND/' src/list.txt");
  const hunks = tab.locator(".hunk");
  assert.equal(await hunks.count(), 2);
  await hunks.nth(0).getByRole("button", { name: /Undo hunk/ }).click();
  await hunks.nth(0).locator(".undo-preview").waitFor();
  await confirm();
  await hunks.nth(0).locator(".tag", { hasText: "undone" }).waitFor();
  await tab.locator(".relations", { hasText: /^Partly undone by change/ }).waitFor();
  await tab.getByRole("heading", { name: "Undo the rest today" }).waitFor();
  const text = await read("src/list.txt");
  assert.match(text, /line 2\n/);
  assert.match(text, /SECOND/);
});

test("later edits of the same file are kept", async () => {
  const { tab, agent } = fixture;
  await change("sed -i 's/line 10$/TEN/' src/list.txt");
  await agent.call("Edit", { file_path: "src/list.txt", old_string: "line 30\n", new_string: "THIRTY\n" });
  await tab.reload();
  await tab.getByRole("button", { name: /Undo all/ }).waitFor();
  await tab.keyboard.press("u");
  await tab.locator(".undo-preview").waitFor();
  await confirm();
  const text = await read("src/list.txt");
  assert.match(text, /line 10\n/);
  assert.match(text, /THIRTY/);
});

test("a key works as soon as its button is there", async () => {
  const { tab } = fixture;
  await change("sed -i 's/line 15$/FIFTEEN/' src/list.txt");
  const route = await tab.evaluate(() => location.hash);
  await show(tab, "#/rules");
  await tab.getByRole("heading", { name: "Rules", exact: true }).waitFor();
  await tab.evaluate(() => {
    const observer = new MutationObserver(() => {
      if (document.querySelector(".undo")) {
        observer.disconnect();
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "u", bubbles: true }));
      }
    });
    observer.observe(document.body, { childList: true, subtree: true });
  });
  await show(tab, route);
  await tab.locator(".undo-preview").waitFor();
});

test("a conflict is told, and nothing is changed", async () => {
  const { tab, agent } = fixture;
  await change("sed -i 's/line 20$/TWENTY/' src/list.txt");
  await agent.call("Edit", { file_path: "src/list.txt", old_string: "TWENTY", new_string: "twenty again" });
  await tab.reload();
  await tab.locator(".diff-file").first().waitFor();
  assert.equal(await tab.getByRole("button", { name: /Undo all/ }).count(), 0, "it would fail");
  const text = await tab.locator(".undo").innerText();
  assert.match(text, /conflict/i);
  assert.doesNotMatch(text, /\\n/);
  await tab.locator(".forecast").getByRole("link", { name: /^change \d+/ }).click();
  await tab.getByRole("heading", { name: /^Change/ }).waitFor();
  assert.match(await tab.locator(".diff-file").innerText(), /twenty again/);
  assert.match(await read("src/list.txt"), /twenty again/);
});

test("an unknown change says so", async () => {
  await show(fixture.tab, "#/change/999999");
  await fixture.tab.locator(".note-error").waitFor();
});

test("nothing was refused by the policy of the page, and no script failed", () => {
  assert.deepEqual(fixture.context.problems, []);
});
