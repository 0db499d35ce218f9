// Writes docs/images/page-VIEW-SCHEME.png with real processes. `pngquant` makes the files small, if it is installed.

import { execFile } from "node:child_process";
import { mkdir, rename, stat } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { launch, newContext, open, show } from "../tests/browser.mjs";
import { ask } from "../tests/fixture.mjs";
import { demoHome, fillTimeline } from "./demo_home.mjs";

const IMAGES = fileURLToPath(new URL("../../../docs/images/", import.meta.url));
const SIZE = { width: 1120, height: 760 };
const SIZE_LIMIT = 100_000;

await mkdir(IMAGES, { recursive: true });
const { home, shop, billing } = await demoHome();
const browser = await launch();
try {
  const { address } = await home.page();
  const context = await newContext(browser, { viewport: SIZE, locale: "en-GB", reducedMotion: "reduce" });
  const tab = await open(context, address);
  const agent = await home.agent(shop, { client: "claude-code" });
  const other = await home.agent(billing, { client: "codex" });
  await fillTimeline(agent, other);
  void agent.call("Bash", { command: "sh watch.sh", description: "Run the tests and watch" }).catch(() => undefined);
  const publish = { command: "cd src && npm publish --access public > publish.log && rm -rf dist", description: "Publish the new version" };
  await ask(tab, agent, "Bash", publish, "npm publish");
  const edit = { file_path: "src/invoice.rs", old_string: "lines.iter().sum()", new_string: "let net: Money = lines.iter().sum();\n    net + tax(net)" };
  const cautious = await home.agent(billing, { profile: "cautious", client: "gemini-cli" });
  await ask(tab, cautious, "Edit", edit, "invoice.rs");
  await everyView(tab);
} finally {
  await browser.close();
  await home.remove();
}

async function everyView(tab) {
  await show(tab, "#/timeline");
  await tab.locator(".row", { hasText: "cart.ts" }).first().click();
  await tab.locator(".detail .line-added").first().waitFor();
  const call = await tab.evaluate(() => location.hash);
  await tab.getByRole("link", { name: /Open or undo/ }).click();
  await tab.locator(".undo").waitFor();
  const change = await tab.evaluate(() => location.hash);
  const views = [
    ["waiting", "#/waiting", ".answer-approve:enabled"], ["now", "#/now", ".output-line"], ["timeline", call, ".detail .line-added"],
    ["change", change, ".diff-file"], ["sandbox", "#/sandbox", ".refusal-row"], ["rules", "#/rules", ".rule"],
  ];
  for (const scheme of ["light", "dark"]) {
    await tab.emulateMedia({ colorScheme: scheme });
    for (const [name, route, ready] of views) {
      await show(tab, route);
      await tab.locator(ready).first().waitFor();
      await tab.mouse.move(0, 0);
      await tab.screenshot({ path: `${IMAGES}page-${name}-${scheme}.png`, animations: "disabled" });
      await shrink(`${IMAGES}page-${name}-${scheme}.png`);
    }
  }
}

/** Reduces the image to a palette. */
async function shrink(path) {
  const small = `${path}.small`;
  await promisify(execFile)("pngquant", ["--force", "--strip", "--output", small, "64", path]).then(() => rename(small, path), () => undefined);
  const { size } = await stat(path);
  if (size > SIZE_LIMIT) {
    throw new Error(`${path} has ${size} bytes, more than ${SIZE_LIMIT}`);
  }
}
