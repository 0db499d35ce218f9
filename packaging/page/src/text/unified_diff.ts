// Parses a unified diff into files and hunks with line numbers.

import type { ChangedFile, DiffLine, Hunk } from "../api_schema";

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;

export function parseUnifiedDiff(text: string): ChangedFile[] {
  const files: ChangedFile[] = [];
  let file: ChangedFile | null = null;
  let hunk: Hunk | null = null;
  let oldLine = 0;
  let newLine = 0;
  const lines = text.split("\n");
  if (lines.at(-1) === "") {
    lines.pop();
  }
  for (const [index, line] of lines.entries()) {
    const header = HUNK.exec(line);
    if (header) {
      file ??= startFile(files, "");
      hunk = { header: line, lines: [] };
      file.hunks.push(hunk);
      oldLine = Number(header[1]);
      newLine = Number(header[2]);
    } else if (line.startsWith("--- ") && (lines[index + 1]?.startsWith("+++ ") ?? false)) {
      file = startFile(files, nameOf(line, lines[index + 1] ?? ""));
      hunk = null;
    } else if (hunk) {
      const parsed = parseLine(line, oldLine, newLine);
      hunk.lines.push(parsed);
      oldLine += parsed.old === undefined ? 0 : 1;
      newLine += parsed.new === undefined ? 0 : 1;
    } else if (!line.startsWith("+++ ")) {
      // A text that is not a diff is shown as it is.
      file ??= startFile(files, "");
      hunk = { header: "", lines: [{ kind: " ", text: line }] };
      file.hunks.push(hunk);
    }
  }
  return files;
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
