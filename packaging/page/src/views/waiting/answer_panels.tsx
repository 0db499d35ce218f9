// The second step of an answer: minutes, the message of a denial, or the exact rule with its preview.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { previewAnswer, type Answer } from "../../api";
import type { AnswerWord, Proposal, Question } from "../../api_schema";
import { ErrorNote, useLoaded } from "../../parts/loading";
import { Raw } from "../../parts/raw";
import { RulePreviewView } from "../../parts/rule_preview";

interface PanelProps {
  disabled: boolean;
  onAnswer: (answer: Answer) => void;
  onClose: () => void;
}

export function MinutesPanel({ question, disabled, onAnswer, onClose }: PanelProps & { question: Question }) {
  const [minutes, setMinutes] = useState("15");
  const value = Number(minutes);
  const valid = Number.isInteger(value) && value >= 1 && value <= 480;
  const field = useFocus<HTMLInputElement>();
  return (
    <form class="panel" onSubmit={(event) => event.preventDefault()}>
      <label>
        Approve {question.session_scope && question.session_scope !== "the same" ? question.session_scope : "the same request"} for
        <input
          class="field minutes" type="number" min="1" max="480" step="1" required value={minutes} ref={field}
          onInput={(event) => setMinutes(event.currentTarget.value)}
        />
        minutes
      </label>
      <div class="panel-buttons">
        <button type="button" class="button answer-approve" disabled={disabled || !valid} onClick={() => onAnswer({ answer: "minutes", minutes: value })}>
          Approve for {valid ? value : "…"} {value === 1 ? "minute" : "minutes"}
        </button>
        <button type="button" class="button" onClick={onClose}>Cancel</button>
      </div>
    </form>
  );
}

export function DenyPanel({ disabled, onAnswer, onClose }: PanelProps) {
  const [message, setMessage] = useState("");
  const field = useFocus<HTMLTextAreaElement>();
  const deny = () => onAnswer(message.trim() === "" ? { answer: "no" } : { answer: "no", message: message.trim() });
  return (
    <form class="panel" onSubmit={(event) => event.preventDefault()}>
      <label class="stacked">
        Message to the agent (optional)
        <textarea
          class="field" rows={2} maxLength={2_000} value={message} ref={field}
          placeholder="For example: use the staging database instead"
          onInput={(event) => setMessage(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !disabled) {
              event.preventDefault();
              deny();
            }
          }}
        />
      </label>
      <div class="panel-buttons">
        <button type="button" class="button answer-deny" disabled={disabled} onClick={deny}>Deny<kbd aria-hidden="true">Ctrl ↵</kbd></button>
        <button type="button" class="button" onClick={onClose}>Cancel</button>
      </div>
    </form>
  );
}

interface RulePanelProps extends PanelProps {
  question: Question;
  kind: "always" | "never";
}

export function RulePanel({ question, kind, disabled, onAnswer, onClose }: RulePanelProps) {
  const choices = choicesOf(question, kind);
  const [word, setWord] = useState<AnswerWord>(choices[0]?.[0] ?? kind);
  const proposal = choices.find(([one]) => one === word)?.[1];
  const preview = useLoaded(() => previewAnswer(question.id, word), [question.id, word]);
  const heading = useFocus<HTMLHeadingElement>();
  if (!proposal) {
    return null;
  }
  return (
    <section class="panel" aria-label="Rule">
      <h3 tabIndex={-1} ref={heading}>This rule will be added to your rules file</h3>
      {choices.length > 1 ? (
        <div class="choices" role="radiogroup" aria-label="What the rule covers">
          {choices.map(([one]) => (
            <label class="check">
              <input type="radio" name={`rule-${question.id}`} checked={one === word} onChange={() => setWord(one)} />
              <Raw text={scopeOf(question, one)} />
            </label>
          ))}
        </div>
      ) : null}
      <pre class="toml code" tabIndex={0} role="group" aria-label="The rule as TOML"><Raw text={proposal.toml} layout /></pre>
      {proposal.covers.length > 0 ? (
        <ul class="covers">{proposal.covers.map((line) => <li><Raw text={line} /></li>)}</ul>
      ) : null}
      <ErrorNote message={preview.error} />
      {preview.value ? <RulePreviewView preview={preview.value} /> : preview.error === null ? <p class="quiet">Checking earlier calls…</p> : null}
      <div class="panel-buttons">
        <button
          type="button" class={`button answer-${kind === "always" ? "approve" : "deny"}`}
          disabled={disabled || (preview.value === null && preview.error === null)}
          onClick={() => onAnswer({ answer: word })}
        >
          {kind === "always" ? "Add the rule and approve" : "Add the rule and deny"}
        </button>
        <button type="button" class="button" onClick={onClose}>Cancel</button>
      </div>
    </section>
  );
}

/** What a rule covers: the files of the call, or everything in their directories. */
function scopeOf(question: Question, word: AnswerWord): string {
  const files = question.accesses.filter((access) => access.effect === "write" || access.effect === "read").map((access) => access.text);
  if (word !== "always_directory") {
    return files.length === 1 ? "only this file" : "only these files";
  }
  const root = `${question.workspace}/`;
  const directories = files.map((file) => file.slice(0, file.lastIndexOf("/") + 1));
  const shown = [...new Set(directories)].map((path) => (path.startsWith(root) ? path.slice(root.length) : path));
  return `all files in ${shown.join(", ")}`;
}

function choicesOf(question: Question, kind: "always" | "never"): [AnswerWord, Proposal][] {
  const words: AnswerWord[] = kind === "never" ? ["never"] : ["always", "always_directory"];
  return words.flatMap((word) => {
    const proposal = question[word as "always" | "always_directory" | "never"];
    return proposal ? [[word, proposal] as [AnswerWord, Proposal]] : [];
  });
}

/** Moves the focus to an element of a panel that the person just opened. */
function useFocus<T extends HTMLElement>() {
  const element = useRef<T>(null);
  // Before the next key is handled: what a person types at once belongs to the field.
  useLayoutEffect(() => element.current?.focus({ preventScroll: false }), []);
  return element;
}
