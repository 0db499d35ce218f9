// Search and filters of the timeline.

import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { listWorkspaces, type CallFilter } from "../../api";
import { useLoaded } from "../../parts/loading";
import { baseName } from "../../text/format";
import { visibleText } from "../../text/visible_text";

const TOOLS = [
  "Bash", "BashOutput", "Read", "Write", "Edit", "MultiEdit", "ApplyPatch", "NotebookEdit", "LS", "Glob", "Grep", "Undo", "History",
];
const OUTCOMES = ["done", "failed", "denied"];
const TYPING_MS = 250;

interface FilterBarProps {
  filter: CallFilter;
  /** Sets some filters; an empty text removes one. */
  onChange: (part: CallFilter) => void;
  search: RefObject<HTMLInputElement | null>;
}

export function FilterBar({ filter, onChange, search }: FilterBarProps) {
  const workspaces = useLoaded(listWorkspaces, []);
  const paths = (workspaces.value?.workspaces ?? []).map((one) => one.path);
  const set = (name: keyof CallFilter) => (value: string) => onChange({ [name]: value });
  return (
    <search class="filters">
      <Typed label="Search" placeholder="Search commands, paths, messages" value={filter.text ?? ""} onChange={set("text")} field={search} wide />
      <Typed label="Path" placeholder="Path" value={filter.path ?? ""} onChange={set("path")} />
      <Choice label="Tool" all="All tools" value={filter.tool ?? ""} values={TOOLS} onChange={set("tool")} />
      <Choice label="Outcome" all="All outcomes" value={filter.outcome ?? ""} values={OUTCOMES} onChange={set("outcome")} />
      <Choice label="Workspace" all="All workspaces" value={filter.workspace ?? ""} values={paths} show={baseName} onChange={set("workspace")} />
      {filter.session ? (
        <button type="button" class="chip" onClick={() => onChange({ session: "", server: "" })}>one session<span aria-hidden="true"> ✕</span><span class="hidden-text">: remove this filter</span></button>
      ) : null}
    </search>
  );
}

interface TypedProps {
  label: string;
  placeholder: string;
  value: string;
  onChange: (value: string) => void;
  field?: RefObject<HTMLInputElement | null>;
  wide?: boolean;
}

/** A text filter that is applied when the person pauses. */
function Typed({ label, placeholder, value, onChange, field, wide = false }: TypedProps) {
  const [text, setText] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => setText(value), [value]);
  const onInput = (typed: string) => {
    setText(typed);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => onChange(typed.trim()), TYPING_MS);
  };
  return (
    <input
      class={wide ? "field filter-wide" : "field"} type="search" aria-label={label} placeholder={placeholder} value={text}
      maxLength={500} autocomplete="off" spellcheck={false} {...(field ? { ref: field } : {})}
      onInput={(event) => onInput(event.currentTarget.value)}
    />
  );
}

interface ChoiceProps {
  label: string;
  all: string;
  value: string;
  values: string[];
  show?: (value: string) => string;
  onChange: (value: string) => void;
}

function Choice({ label, all, value, values, show = (one) => one, onChange }: ChoiceProps) {
  const options = value === "" || values.includes(value) ? values : [value, ...values];
  return (
    <select class="field" aria-label={label} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
      <option value="">{all}</option>
      {options.map((one) => <option value={one} title={visibleText(one)}>{visibleText(show(one))}</option>)}
    </select>
  );
}
