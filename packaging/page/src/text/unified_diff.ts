// Parses a unified diff into files and hunks with line numbers.

import type { ChangedFile, DiffLine, Hunk } from "../api_schema";

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

export function parseUnifiedDiff(text: string): ChangedFile[] {
  const files: ChangedFile[] = [];
  let hunk: OpenHunk | null = null;
  const lines = text.split("\n");
  if (lines.at(-1) === "") {
    lines.pop();
  }
  for (const [index, line] of lines.entries()) {
    // The header of the hunk says how many lines follow: a removed line `-- x` is not the header of a file.
    if (hunk && (hunk.oldLeft > 0 || hunk.newLeft > 0 || line.startsWith("\\"))) {
      addLine(hunk, line);
      continue;
    }
    const header = HUNK.exec(line);
    if (header) {
      hunk = openHunk(line, header);
      (files.at(-1) ?? startFile(files, "")).hunks.push(hunk.hunk);
    } else if (line.startsWith("--- ") && (lines[index + 1]?.startsWith("+++ ") ?? false)) {
      startFile(files, nameOf(line, lines[index + 1] ?? ""));
      hunk = null;
    } else if (!line.startsWith("+++ ")) {
      // A text that is not a diff is shown as it is.
      (files.at(-1) ?? startFile(files, "")).hunks.push({ header: "", lines: [{ kind: " ", text: line }] });
    }
  }
  return files;
}

interface OpenHunk {
  hunk: Hunk;
  oldLine: number;
  newLine: number;
  oldLeft: number;
  newLeft: number;
}

function openHunk(line: string, header: RegExpExecArray): OpenHunk {
  const [, oldLine, oldCount = "1", newLine, newCount = "1"] = header;
  return {
    hunk: { header: line, lines: [] },
    oldLine: Number(oldLine),
    newLine: Number(newLine),
    oldLeft: Number(oldCount),
    newLeft: Number(newCount),
  };
}

function addLine(open: OpenHunk, line: string): void {
  const parsed = parseLine(line, open.oldLine, open.newLine);
  open.hunk.lines.push(parsed);
  if (parsed.old !== undefined) {
    open.oldLine += 1;
    open.oldLeft -= 1;
  }
  if (parsed.new !== undefined) {
    open.newLine += 1;
    open.newLeft -= 1;
  }
}

function parseLine(line: string, oldLine: number, newLine: number): DiffLine {
  const text = line.slice(1);
  switch (line[0]) {
    case "+":
      return { kind: "+", new: newLine, text };
    case "-":
      return { kind: "-", old: oldLine, text };
    case "\\":
      return { kind: " ", text: line };
    default:
      return { kind: " ", old: oldLine, new: newLine, text };
  }
}

function startFile(files: ChangedFile[], path: string): ChangedFile {
  const file: ChangedFile = { path, kind: "modified", hunks: [] };
  files.push(file);
  return file;
}

function nameOf(before: string, after: string): string {
  const clean = (line: string) => line.slice(4).replace(/\t.*$/, "").replace(/^[ab]\//, "");
  return clean(after) === "/dev/null" ? clean(before) : clean(after);
}
