// The answers to a request. No button is the default, and a wide answer asks again before it is given.

import { useState } from "preact/hooks";
import type { Answer } from "../../api";
import type { Question } from "../../api_schema";
import { useKeys } from "../../keyboard";
import { announce } from "../../parts/announce";
import { DenyPanel, MinutesPanel, RulePanel } from "./answer_panels";

type Panel = "minutes" | "always" | "no" | "never" | null;

interface AnswerBarProps {
  question: Question;
  selected: boolean;
  /** Why approving is not possible yet. */
  blocked: string | null;
  disabled: boolean;
  onAnswer: (answer: Answer) => void;
  onUnseen: () => void;
}

export function AnswerBar({ question, selected, blocked, disabled, onAnswer, onUnseen }: AnswerBarProps) {
  const [panel, setPanel] = useState<Panel>(null);
  const close = () => setPanel(null);
  const approve = (act: () => void) => () => {
    if (blocked === null) {
      act();
    } else {
      announce("polite", blocked);
      onUnseen();
    }
  };
  const toggle = (wanted: Panel) => () => setPanel(panel === wanted ? null : wanted);
  // An approval to write outside the workspace opens the path that the reason names.
  const once = question.rule === "outside:write" ? "Approve, open for session" : "Approve once";
  const canAlways = Boolean(question.always ?? question.always_directory);
  const acts = {
    y: approve(() => onAnswer({ answer: "once" })),
    s: approve(() => onAnswer({ answer: "session" })),
    t: approve(toggle("minutes")),
    a: approve(canAlways ? toggle("always") : () => undefined),
    n: toggle("no"),
    N: question.never ? toggle("never") : () => undefined,
  };
  return (
    <div class="answers">
      {selected ? <CardKeys keys={panel === null ? acts : { Escape: close }} /> : null}
      <div class="answer-bar" role="group" aria-label="Answers">
        <div class="answer-group">
          <AnswerButton name={once} keys="y" kind="approve" disabled={disabled || blocked !== null} onClick={acts.y} />
          <AnswerButton name="This session" keys="s" kind="approve" disabled={disabled || blocked !== null} onClick={acts.s} />
          <AnswerButton name="For minutes…" keys="t" kind="approve" disabled={disabled || blocked !== null} open={panel === "minutes"} onClick={acts.t} />
          {canAlways ? <AnswerButton name="Always…" keys="a" kind="approve" disabled={disabled || blocked !== null} open={panel === "always"} onClick={acts.a} /> : null}
        </div>
        <div class="answer-group">
          <AnswerButton name="Deny…" keys="n" kind="deny" disabled={disabled} open={panel === "no"} onClick={acts.n} />
          {question.never ? <AnswerButton name="Never…" keys="N" kind="deny" disabled={disabled} open={panel === "never"} onClick={acts.N} /> : null}
        </div>
        {blocked === null ? null : <button type="button" class="link blocked" onClick={onUnseen}>{blocked}</button>}
      </div>
      {panel === "minutes" ? <MinutesPanel disabled={disabled} onAnswer={onAnswer} onClose={close} /> : null}
      {panel === "no" ? <DenyPanel disabled={disabled} onAnswer={onAnswer} onClose={close} /> : null}
      {panel === "always" || panel === "never"
        ? <RulePanel key={panel} question={question} kind={panel} disabled={disabled} onAnswer={onAnswer} onClose={close} />
        : null}
    </div>
  );
}

/** While a panel is open, no key answers. */
function CardKeys({ keys }: { keys: Record<string, () => void> }) {
  useKeys(keys);
  return null;
}

interface AnswerButtonProps {
  name: string;
  keys: string;
  kind: "approve" | "deny";
  disabled: boolean;
  open?: boolean;
  onClick: () => void;
}

function AnswerButton({ name, keys, kind, disabled, open, onClick }: AnswerButtonProps) {
  return (
    <button
      type="button"
      class={`button answer answer-${kind}`}
      disabled={disabled}
      aria-keyshortcuts={keys}
      {...(open === undefined ? {} : { "aria-expanded": open })}
      onClick={onClick}
    >
      {name}<kbd aria-hidden="true">{keys}</kbd>
    </button>
  );
}
