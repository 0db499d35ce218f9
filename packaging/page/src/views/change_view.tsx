// One change: its diff, what Undo would do today, and Undo of all, one file or one hunk.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { getChange, redoChange, undoChange, type UndoPart } from "../api";
import type { Change, ChangedFile, UndoResult } from "../api_schema";
import { useKeys } from "../keyboard";
import { announce } from "../parts/announce";
import { DiffFile } from "../parts/diff_view";
import { Empty, ErrorNote, useAction, useLoaded } from "../parts/loading";
import { Raw } from "../parts/raw";
import { href } from "../router";
import { dateAndTime, plural } from "../text/format";

const FILES_AT_FIRST = 50;
/** The page says it in its own words. */
const DRY_RUN = /^Dry run, nothing written\.\s*/;

/** A part that was asked for, with the preview of the page process. */
interface Pending {
  part: UndoPart;
  name: string;
  preview: UndoResult;
}

/** Where an action was started, and where its preview, its error and its result are shown. */
const WHOLE = "";
const fileSpot = (path: string) => `file ${path}`;
const hunkSpot = (path: string, index: number) => `hunk ${index} ${path}`;

export function ChangeView({ id }: { id: string | null }) {
  if (id === null) {
    return <div class="view"><h1>Change</h1><Empty title="No change chosen"><p><a href={href("timeline")}>Choose one in the timeline.</a></p></Empty></div>;
  }
  return <LoadedChange key={id} id={id} />;
}

function LoadedChange({ id }: { id: string }) {
  const loaded = useLoaded(() => getChange(id), [id]);
  const change = loaded.value;
  return (
    <div class="view">
      <div class="view-head">
        <h1>Change <Raw text={id} /></h1>
        {change ? <p class="view-sub"><Raw text={change.tool} />, {dateAndTime(change.at)}, <span class="code"><Raw text={change.workspace} /></span></p> : null}
      </div>
      <ErrorNote message={loaded.error} />
      {change ? <ChangeBody change={change} reload={loaded.reload} /> : loaded.error === null ? <p class="quiet">Loading…</p> : null}
    </div>
  );
}

function ChangeBody({ change, reload }: { change: Change; reload: () => void }) {
  const id = String(change.id);
  const action = useAction();
  const [spot, setSpot] = useState(WHOLE);
  const [pending, setPending] = useState<Pending | null>(null);
  const [done, setDone] = useState<UndoResult | null>(null);

  const ask = (at: string, part: UndoPart, name: string) => action.run(async () => {
    setSpot(at);
    setDone(null);
    setPending(null);
    setPending({ part, name, preview: await undoChange(id, part, true) });
  });
  const finish = (result: UndoResult) => {
    setPending(null);
    setDone(result);
    announce("polite", result.text);
    reload();
  };
  const undo = (part: UndoPart) => action.run(async () => finish(await undoChange(id, part, false)));
  const redo = () => {
    setSpot(WHOLE);
    action.run(async () => finish(await redoChange(id)));
  };
  const canUndo = !change.undone && change.undo.possible;
  const undoAll = () => ask(WHOLE, {}, change.undone_in_part ? "the rest of this change" : "all of this change");
  useKeys({
    u: () => (canUndo ? undoAll() : undefined),
    ...(pending ? { Escape: () => setPending(null) } : {}),
  });
  const at = (place: string) => (place !== spot ? null : (
    <>
      {pending ? <ConfirmUndo pending={pending} busy={action.busy} onUndo={() => undo(pending.part)} onCancel={() => setPending(null)} /> : null}
      <ErrorNote message={action.error} />
      {done ? <DoneNote done={done} /> : null}
    </>
  ));
  return (
    <>
      <p class="change-summary"><Raw text={change.summary} layout /></p>
      <Relations text="Undoes" ids={change.undoes ?? []} />
      <Relations text={change.undone ? "Undone by" : "Partly undone by"} ids={change.undone_by ?? []} />
      <section class="undo" aria-labelledby="undo-title">
        <h2 id="undo-title">{change.undone ? "This change was undone" : change.undone_in_part ? "Undo the rest today" : "Undo today"}</h2>
        {change.undone ? null : <Forecast change={change} />}
        <div class="panel-buttons">
          {change.undone || change.undone_in_part ? <button type="button" class="button" disabled={action.busy} onClick={redo}>Redo</button> : null}
          {canUndo ? (
            <button type="button" class="button" disabled={action.busy} onClick={undoAll}>
              {change.undone_in_part ? "Undo the rest…" : "Undo all…"}<kbd aria-hidden="true">u</kbd>
            </button>
          ) : null}
        </div>
        {at(WHOLE)}
      </section>
      <ChangedFiles change={change} busy={action.busy} onUndo={ask} at={at} />
    </>
  );
}

interface ConfirmUndoProps {
  pending: Pending;
  busy: boolean;
  onUndo: () => void;
  onCancel: () => void;
}

function ConfirmUndo({ pending, busy, onUndo, onCancel }: ConfirmUndoProps) {
  const panel = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    panel.current?.focus({ preventScroll: true });
    panel.current?.scrollIntoView({ block: "nearest" });
  }, []);
  return (
    <div class="panel" role="group" aria-label="Confirm the undo" tabIndex={-1} ref={panel}>
      <p><b>Undo {pending.name}:</b></p>
      <pre class="undo-preview code"><Raw text={pending.preview.text.replace(DRY_RUN, "")} layout /></pre>
      <div class="panel-buttons">
        <button type="button" class="button answer-approve" disabled={busy} onClick={onUndo}>Undo now</button>
        <button type="button" class="button" onClick={onCancel}>Cancel</button>
      </div>
    </div>
  );
}

function DoneNote({ done }: { done: UndoResult }) {
  return (
    <p class="note note-good" role="status">
      <Raw text={done.text} layout />
      {done.change !== undefined && done.change !== null ? <> <a href={href("change", done.change)}>Change <Raw text={String(done.change)} /></a></> : null}
    </p>
  );
}

interface ChangedFilesProps {
  change: Change;
  busy: boolean;
  onUndo: (spot: string, part: UndoPart, name: string) => void;
  at: (spot: string) => ComponentChildren;
}

function ChangedFiles({ change, busy, onUndo, at }: ChangedFilesProps) {
  const [limit, setLimit] = useState(FILES_AT_FIRST);
  const conflicts = new Set(change.undo.files.filter((file) => file.result === "conflict").map((file) => file.path));
  const fileAction = (file: ChangedFile) => {
    if (change.undone || file.not_kept) {
      return null;
    }
    if (file.undone || conflicts.has(file.path)) {
      return <span class="tag">{file.undone ? "undone" : "conflict"}</span>;
    }
    const undo = () => onUndo(fileSpot(file.path), { paths: [file.path] }, "this file");
    return <button type="button" class="button small" disabled={busy} onClick={undo}>Undo file…</button>;
  };
  const hunkAction = (file: ChangedFile, index: number) => {
    if (change.undone || file.undone || file.hunks.length < 2) {
      return null;
    }
    if (file.undone_hunks?.includes(index)) {
      return <span class="tag">undone</span>;
    }
    const undo = () => onUndo(hunkSpot(file.path, index), { hunk: { path: file.path, index } }, "this hunk");
    return <button type="button" class="button small" disabled={busy} onClick={undo}>Undo hunk…</button>;
  };
  return (
    <section aria-labelledby="files-title">
      <h2 id="files-title" class="files-title">{plural(change.files.length, "file")}</h2>
      {change.files.slice(0, limit).map((file) => (
        <DiffFile
          key={file.path} file={file} actions={fileAction(file)} hunkAction={(index) => hunkAction(file, index)}
          below={at(fileSpot(file.path))} belowHunk={(index) => at(hunkSpot(file.path, index))}
        />
      ))}
      {change.files.length > limit ? (
        <button type="button" class="button" onClick={() => setLimit(limit + 200)}>Show {plural(change.files.length - limit, "more file")}</button>
      ) : null}
    </section>
  );
}

function Relations({ text, ids }: { text: string; ids: string[] }) {
  return ids.length === 0 ? null : (
    <p class="quiet relations">{text} {ids.map((id) => <><a href={href("change", id)}>change <Raw text={id} /></a> </>)}</p>
  );
}

const RESULTS: Record<string, string> = {
  restored: "restored", deleted: "deleted", merged: "merged with later edits", conflict: "conflict", unchanged: "unchanged",
};

function Forecast({ change }: { change: Change }) {
  return (
    <>
      {change.undo.possible && change.undo.files.length > 0 ? null : <p><Raw text={change.undo.text.replace(DRY_RUN, "")} layout /></p>}
      <ul class="forecast">
        {change.undo.files.slice(0, 200).map((file) => (
          <li>
            <span class={`result result-${file.result}`}>{RESULTS[file.result] ?? file.result}</span>
            <span class="code"><Raw text={file.path} /></span>
            {file.text === "" ? null : <span class="quiet"><Raw text={file.text} /></span>}
            {(file.later ?? []).length === 0 ? null : <Relations text="In the way:" ids={file.later ?? []} />}
          </li>
        ))}
      </ul>
    </>
  );
}
