// One change: its diff, what Undo would do today, and Undo of all, one file or one hunk.

import { useRef, useState } from "preact/hooks";
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
  const [pending, setPending] = useState<Pending | null>(null);
  const [done, setDone] = useState<UndoResult | null>(null);
  const panel = useRef<HTMLDivElement>(null);

  const ask = (part: UndoPart, name: string) => action.run(async () => {
    setDone(null);
    setPending(null);
    setPending({ part, name, preview: await undoChange(id, part, true) });
    panel.current?.scrollIntoView({ block: "nearest" });
  });
  const finish = (result: UndoResult) => {
    setPending(null);
    setDone(result);
    announce("polite", result.text);
    reload();
  };
  const undo = (part: UndoPart) => action.run(async () => finish(await undoChange(id, part, false)));
  const redo = () => action.run(async () => finish(await redoChange(id)));
  useKeys({
    u: () => (change.undone ? undefined : ask({}, "all of this change")),
    ...(pending ? { Escape: () => setPending(null) } : {}),
  });
  return (
    <>
      <p class="change-summary"><Raw text={change.summary} layout /></p>
      <Relations text="Undoes" ids={change.undoes ?? []} />
      <Relations text="Undone by" ids={change.undone_by ?? []} />
      <section class="undo" aria-labelledby="undo-title" ref={panel}>
        <h2 id="undo-title">{change.undone ? "This change was undone" : change.undone_in_part ? "Undo the rest today" : "Undo today"}</h2>
        <Forecast change={change} />
        <div class="panel-buttons">
          {change.undone || change.undone_in_part ? <button type="button" class="button" disabled={action.busy} onClick={redo}>Redo</button> : null}
          {change.undone ? null : (
            <button type="button" class="button" disabled={action.busy || !change.undo.possible} onClick={() => ask({}, "all of this change")}>
              Undo all…<kbd aria-hidden="true">u</kbd>
            </button>
          )}
        </div>
        {pending ? <ConfirmUndo pending={pending} busy={action.busy} onUndo={() => undo(pending.part)} onCancel={() => setPending(null)} /> : null}
        <ErrorNote message={action.error} />
        {done ? <DoneNote done={done} /> : null}
      </section>
      <ChangedFiles change={change} busy={action.busy} onUndo={ask} />
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
  return (
    <div class="panel" role="group" aria-label="Confirm the undo">
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
  onUndo: (part: UndoPart, name: string) => void;
}

function ChangedFiles({ change, busy, onUndo }: ChangedFilesProps) {
  const [limit, setLimit] = useState(FILES_AT_FIRST);
  const fileAction = (file: ChangedFile) => {
    if (change.undone) {
      return null;
    }
    return file.undone
      ? <span class="tag">undone</span>
      : <button type="button" class="button small" disabled={busy} onClick={() => onUndo({ paths: [file.path] }, "this file")}>Undo file…</button>;
  };
  const hunkAction = (file: ChangedFile, index: number) => (change.undone || file.undone || file.hunks.length < 2 ? null : (
    <button type="button" class="button small" disabled={busy} onClick={() => onUndo({ hunk: { path: file.path, index } }, "this hunk")}>Undo hunk…</button>
  ));
  return (
    <section aria-labelledby="files-title">
      <h2 id="files-title" class="files-title">{plural(change.files.length, "file")}</h2>
      {change.files.slice(0, limit).map((file) => (
        <DiffFile key={file.path} file={file} actions={fileAction(file)} hunkAction={(index) => hunkAction(file, index)} />
      ))}
      {change.files.length > limit ? (
        <button type="button" class="button" onClick={() => setLimit(limit + 200)}>Show {plural(change.files.length - limit, "more file")}</button>
      ) : null}
    </section>
  );
}

function Relations({ text, ids }: { text: string; ids: string[] }) {
  return ids.length === 0 ? null : (
    <p class="quiet">{text} {ids.map((id) => <><a href={href("change", id)}>change <Raw text={id} /></a> </>)}</p>
  );
}

const RESULTS: Record<string, string> = {
  restored: "restored", merged: "merged with later edits", conflict: "conflict", unchanged: "unchanged", missing: "missing",
};

function Forecast({ change }: { change: Change }) {
  return (
    <>
      <p><Raw text={change.undo.text.replace(DRY_RUN, "")} layout /></p>
      <ul class="forecast">
        {change.undo.files.slice(0, 200).map((file) => (
          <li>
            <span class={`result result-${file.result}`}>{RESULTS[file.result] ?? file.result}</span>
            <span class="code"><Raw text={file.path} /></span>
            {file.text === "" ? null : <span class="quiet"><Raw text={file.text} /></span>}
          </li>
        ))}
      </ul>
    </>
  );
}
