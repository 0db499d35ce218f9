// Desktop notifications: only while no tab is visible, and they only open the page.

import assert from "node:assert/strict";
import { test } from "node:test";
import { newContext, open, show } from "./browser.mjs";
import { usePage } from "./fixture.mjs";

const fixture = usePage();

test("a request that nobody sees makes one notification, which opens the page", async () => {
  const { browser, home, root, tab: visible } = fixture;
  await visible.close();
  const context = await newContext(browser, { permissions: ["notifications"] });
  await context.addInitScript(() => {
    localStorage.setItem("toolcrib-settings", JSON.stringify({ notifications: true }));
    Object.defineProperty(document, "visibilityState", { get: () => "hidden" });
    window.shown = [];
    window.Notification = class {
      static permission = "granted";
      constructor(title, options) {
        window.shown.push({ title, options, notification: this });
      }
      close() {}
    };
  });
  const tab = await open(context, (await home.page()).address);
  await show(tab, "#/rules");
  // The client can be asked, so the request opens although no tab is visible.
  const agent = await home.agent(root, { client: "asking-agent", capabilities: { elicitation: {} } });
  agent.call("Bash", { command: "npm publish --tag unseen" }).catch(() => undefined);
  await tab.waitForFunction(() => window.shown.length > 0);
  const [first] = await tab.evaluate(() => window.shown.map(({ title, options }) => ({ title, ...options })));
  assert.equal(first.title, "Toolcrib: approval needed");
  assert.match(first.body, /asking-agent.* asks for approval of Bash/);
  assert.equal(first.actions, undefined, "a notification has no Approve");
  assert.doesNotMatch(first.body, /npm publish/, "a notification cuts text, so it shows no command");
  await tab.evaluate(() => window.shown[0].notification.onclick());
  await tab.locator(".question", { hasText: "--tag unseen" }).waitFor();
  assert.equal(await tab.evaluate(() => window.shown.length), 1);
  assert.match(await tab.locator("[role=alert][aria-live=assertive]").innerText(), /1 request waits for approval/);
  await context.close();
});
