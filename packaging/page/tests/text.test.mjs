// The pure modules: visible characters, terminal output, diffs, the event stream.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

async function load(path) {
  const absWorkingDir = fileURLToPath(new URL("..", import.meta.url));
  const options = { absWorkingDir, entryPoints: [path], bundle: true, write: false, format: "esm" };
  const result = await esbuild.build(options);
  return import(`data:text/javascript;base64,${Buffer.from(result.outputFiles[0].contents).toString("base64")}`);
}

const { visiblePieces, visibleText } = await load("src/text/visible_text.ts");
const { TerminalText } = await load("src/text/terminal_text.ts");
const { parseUnifiedDiff } = await load("src/text/unified_diff.ts");
const { EventParser } = await load("src/worker/event_parser.ts");
const { applyEvent, emptyState } = await load("src/live/live_state.ts");
const { parseRoute, href } = await load("src/router.ts");

function terminal(...parts) {
  const text = new TerminalText();
  parts.forEach((part) => text.push(part));
  return text.lines().map((line) => line.runs.map((run) => run.text).join(""));
}

test("control, bidirectional and invisible characters are escaped", () => {
  assert.equal(visibleText("a\u202eb\u200bc\u001b[0m\r\n\t\u00a0\u3164\u{e0041}\ufeff\u2028"),
    "a\\u{202e}b\\u{200b}c\\x1b[0m\\r\\n\\t\\xa0\\u{3164}\\u{e0041}\\u{feff}\\u{2028}");
  assert.equal(visibleText("\ud800x"), "\\u{d800}x");
  assert.equal(visibleText("größe 日本 עברית 🙂"), "größe 日本 עברית 🙂");
  assert.deepEqual(visiblePieces("a\n\tb", true), [{ text: "a\n\tb" }]);
  assert.deepEqual(visiblePieces("\u202e", true), [{ text: "\\u{202e}", escaped: "right-to-left override" }]);
});

test("carriage returns, backspaces and erasing change the line, other escapes vanish", () => {
  assert.deepEqual(terminal("10%\r20%\r100%\nnext"), ["100%", "next"]);
  assert.deepEqual(terminal("abc\b\bX\n"), ["aXc"]);
  assert.deepEqual(terminal("long line\rshort\x1b[K\n"), ["short"]);
  assert.deepEqual(terminal("\x1b]0;title\x07a\x1b[2Jb\x1b(Bc\x1b[8mhidden\n"), ["abchidden"]);
});

test("an escape sequence may arrive in parts, and a broken one is text", () => {
  assert.deepEqual(terminal("a\x1b", "[3", "1mb\n"), ["ab"]);
  assert.deepEqual(terminal("a\x1b\x01b\n"), ["a\x1b\x01b"]);
});

test("colours become classes", () => {
  const text = new TerminalText();
  text.push("\x1b[1;31mred\x1b[0m plain \x1b[38;5;200mx\x1b[38;2;1;2;3my\n");
  assert.deepEqual(text.lines()[0].runs, [{ text: "red", style: "ansi-red ansi-bold" }, { text: " plain xy", style: "" }]);
});

test("output is bounded", () => {
  const text = new TerminalText();
  text.push(`${"x".repeat(1_000_000)}\n`);
  assert.equal(text.lines()[0].runs[0].text.length, 4_000);
  assert.equal(text.lines()[0].cut, 996_000);
  text.push("line\n".repeat(50_000));
  assert.ok(text.lines().length <= 4_000);
  assert.equal(text.lines().at(-1).number, 50_001);
});

test("lines that are not kept are counted", () => {
  const text = new TerminalText();
  text.push("1\n2\n3");
  text.skip("-end of 3\n4\n5\n");
  text.push("6\n");
  assert.deepEqual(text.lines().map((line) => [line.number, line.runs[0].text]), [[6, "6"]]);
});

test("a unified diff is split into files and hunks with line numbers", () => {
  const files = parseUnifiedDiff("--- a/x\n+++ b/x\n@@ -3,2 +3,2 @@ f\n a\n-b\n+c\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+d\n\\ No newline at end of file\n");
  assert.deepEqual(files.map((file) => file.path), ["x", "y"]);
  assert.deepEqual(files[0].hunks[0].lines, [
    { kind: " ", old: 3, new: 3, text: "a" }, { kind: "-", old: 4, text: "b" }, { kind: "+", new: 4, text: "c" },
  ]);
  assert.equal(files[1].hunks[0].lines.length, 2);
});

test("removed lines that look like headers stay lines", () => {
  const files = parseUnifiedDiff("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n keep\n");
  assert.deepEqual(files.map((file) => file.path), ["x"]);
  assert.deepEqual(files[0].hunks[0].lines.map((line) => line.text), ["-- old", "++ new", "keep"]);
});

test("events may arrive in any parts", () => {
  const stream = "id: 7\nevent: state\ndata: {\"a\":\ndata: 1}\n\n: ping\n\nid: 8\r\nevent: x\r\ndata: 2\r\n\r\n";
  const parser = new EventParser();
  const events = [...stream].flatMap((char) => parser.push(char));
  assert.deepEqual(events, [{ id: "7", name: "state", data: "{\"a\":\n1}" }, { id: "8", name: "x", data: "2" }]);
});

test("events change the state; unknown ones and other values do not", () => {
  const question = { id: "q", opened: 1, server: "s" };
  let state = applyEvent(emptyState(), { name: "question_opened", data: question }, 5);
  state = applyEvent(state, { name: "of a newer version", data: {} }, 6);
  state = applyEvent(state, { name: "call_begun", data: null }, 6);
  assert.deepEqual(state.waiting, [question]);
  const settled = { answer: "once", by: "terminal", at: 7 };
  const after = applyEvent(state, { name: "question_settled", data: { id: "q", settled } }, 7);
  assert.deepEqual([after.waiting, after.settled], [[], [{ question, settled, seenAt: 7 }]]);
  const left = applyEvent(state, { name: "server_left", data: { server: "s" } }, 7);
  assert.equal(left.settled[0].settled.by, "cancelled");
});

test("routes keep ids with any characters", () => {
  const route = parseRoute(href("timeline", "1-a/b?c#d", new URLSearchParams({ text: "x&y" })));
  assert.deepEqual([route.view, route.id, route.params.get("text")], ["timeline", "1-a/b?c#d", "x&y"]);
  assert.equal(parseRoute("#/%").view, "waiting");
});
