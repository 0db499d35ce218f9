// A diff: signs besides colours, line numbers, and a bounded number of lines at first.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { ChangedFile, DiffLine, Hunk } from "../api_schema";
import { plural } from "../text/format";
import { LongRaw, Raw } from "./raw";

const LINES_AT_FIRST = 400;

const KINDS: Record<string, string> = { created: "new file", deleted: "deleted", mode: "mode changed", renamed: "renamed" };
const SIGN_NAMES = { "+": "added", "-": "removed", " ": "" };

interface DiffFileProps {
  file: ChangedFile;
  /** Shows every line at once, for a request whose end must be seen. */
  whole?: boolean;
  actions?: ComponentChildren;
  hunkAction?: (index: number) => ComponentChildren;
  /** What an action asks or says: below the head of the file, or of a hunk. */
  below?: ComponentChildren;
  belowHunk?: (index: number) => ComponentChildren;
}

export function DiffFile({ file, whole = false, actions, hunkAction, below, belowHunk }: DiffFileProps) {
  const added = countOf(file, "+");
  const removed = countOf(file, "-");
  return (
    <section class="diff-file">
      {file.path === "" ? null : (
        <header class="diff-head">
          <h3 class="diff-path code"><Raw text={file.path} /></h3>
          {KINDS[file.kind] ? <span class="tag">{KINDS[file.kind]}</span> : null}
          <span class="diff-counts">
            <span class="added">+{added}</span> <span class="removed">−{removed}</span>
          </span>
          {actions}
        </header>
      )}
      {below}
      {file.not_kept ? <p class="diff-note">Not kept in the journal: <Raw text={file.not_kept} /></p> : null}
      {file.binary ? <p class="diff-note">A binary file. Its content is not shown.</p> : null}
      {file.hunks.map((hunk, index) => <HunkView hunk={hunk} whole={whole} action={hunkAction?.(index)} below={belowHunk?.(index)} />)}
      {file.cut ? <p class="diff-note">The diff is cut here. toolcrib show prints all of it.</p> : null}
    </section>
  );
}

interface HunkViewProps {
  hunk: Hunk;
  whole: boolean;
  action: ComponentChildren;
  below: ComponentChildren;
}

function HunkView({ hunk, whole, action, below }: HunkViewProps) {
  const [limit, setLimit] = useState(LINES_AT_FIRST);
  const shown = whole ? hunk.lines : hunk.lines.slice(0, limit);
  const rest = hunk.lines.length - shown.length;
  return (
    <div class="hunk">
      {hunk.header === "" && !action ? null : (
        <div class="hunk-head">
          <span class="code"><LongRaw text={hunk.header} /></span>
          {action}
        </div>
      )}
      {below}
      <div class="hunk-lines code">{shown.map((line) => <LineView line={line} whole={whole} />)}</div>
      {rest > 0 ? (
        <button type="button" class="more" onClick={() => setLimit(limit + 4_000)}>Show {plural(rest, "more line")}</button>
      ) : null}
    </div>
  );
}

function LineView({ line, whole }: { line: DiffLine; whole: boolean }) {
  const kind = line.kind === "+" ? "line line-added" : line.kind === "-" ? "line line-removed" : "line";
  const Text = whole ? Raw : LongRaw;
  return (
    <div class={kind}>
      <span class="line-number" aria-hidden="true">{line.old ?? ""}</span>
      <span class="line-number" aria-hidden="true">{line.new ?? ""}</span>
      <span class="line-sign"><span aria-hidden="true">{line.kind === "-" ? "−" : line.kind}</span>
        {line.kind === " " ? null : <span class="hidden-text">{SIGN_NAMES[line.kind]}: </span>}
      </span>
      <span class="line-text"><Text text={line.text.replace(/\n$/, "")} layout /></span>
    </div>
  );
}

function countOf(file: ChangedFile, kind: DiffLine["kind"]): number {
  return file.hunks.reduce((sum, hunk) => sum + hunk.lines.filter((line) => line.kind === kind).length, 0);
}
