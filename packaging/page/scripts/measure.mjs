// Measures the page with real processes: first paint, a timeline of many calls, live output, memory.
//
// `node scripts/measure.mjs [CALLS]`. Figures depend on the machine; nothing is asserted.

import { launch, newContext, open, show } from "../tests/browser.mjs";
import { demoHome } from "./demo_home.mjs";

const CALLS = Number(process.argv[2] ?? 100_000);
const PARALLEL = 32;

const { home, shop } = await demoHome();
const browser = await launch();
try {
  const { address, origin } = await home.page();
  const context = await newContext(browser);
  const tab = await open(context, address);
  const agent = await home.agent(shop);
  await firstPaint(context, origin);
  await output(tab, agent);
  await fill(agent);
  await timeline(tab);
  await memory(context, tab);
} finally {
  await browser.close();
  await home.remove();
}

async function firstPaint(context, origin) {
  const times = [];
  for (let turn = 0; turn < 10; turn += 1) {
    const tab = await open(context, `${origin}/#/now`);
    times.push(await tab.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN));
    await tab.close();
  }
  report("first contentful paint, median of 10", `${times.sort((a, b) => a - b)[5].toFixed(0)} ms`);
}

async function fill(agent) {
  let left = CALLS;
  const work = async () => {
    while (left > 0) {
      left -= 1;
      await agent.call("LS", { path: "src" });
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, work));
}

async function timeline(tab) {
  await show(tab, "#/timeline");
  await tab.reload();
  await tab.locator(".row").first().waitFor();
  const started = Date.now();
  await tab.locator(".virtual").evaluate((box) => {
    box.scrollTop = box.scrollHeight;
  });
  await tab.waitForFunction(() => {
    const box = document.querySelector(".virtual");
    const atEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 1;
    box.scrollTop = box.scrollHeight;
    return atEnd && document.querySelectorAll(".row").length > 0 && !document.querySelector(".row-loading");
  }, undefined, { polling: 100, timeout: 300_000 });
  report("jump to the oldest call, all pages loaded", `${Date.now() - started} ms`);
  report("calls", await tab.locator(".view-sub").innerText());
  report("rows in the document", await tab.locator(".row").count());
  report("scrolling 600 frames of 400 px", await frames(tab, 600, -400));
}

async function output(tab, agent) {
  await show(tab, "#/now");
  const reply = agent.call("Bash", { command: "timeout 60 yes 'a line of output that repeats for ever'; true" });
  const card = tab.locator(".card", { hasText: "timeout 60 yes" });
  await card.locator(".output-line").nth(500).waitFor({ state: "attached" });
  report("frames while a command floods its output", await frames(tab, 300, 0));
  const note = await card.locator(".output-box").innerText();
  report("output", note.split("\n")[0]);
  await card.getByRole("button", { name: "Stop…" }).click();
  await card.getByRole("button", { name: "Stop the command" }).click();
  await reply;
}

async function memory(context, tab) {
  const session = await context.newCDPSession(tab);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  report("memory of scripts in the tab", `${(usedSize / 1e6).toFixed(1)} MB`);
}

/** The durations of frames while the list is scrolled by so many pixels per frame. */
async function frames(tab, count, pixels) {
  return tab.evaluate(async ([total, distance]) => {
    const times = [];
    const list = document.querySelector(".virtual");
    let before = performance.now();
    for (let at = 0; at < total; at += 1) {
      if (list) {
        list.scrollTop += distance;
      }
      await new Promise(requestAnimationFrame);
      const now = performance.now();
      times.push(now - before);
      before = now;
    }
    times.sort((a, b) => a - b);
    const at = (share) => times[Math.floor((times.length - 1) * share)].toFixed(1);
    return `median ${at(0.5)} ms, 95 % ${at(0.95)} ms, longest ${at(1)} ms`;
  }, [count, pixels]);
}

function report(name, value) {
  console.log(`${name}: ${value}`);
}
