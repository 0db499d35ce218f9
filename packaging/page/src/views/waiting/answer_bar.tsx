// The answers to a request. No button is the default, and a wide answer asks again before it is given.

import { useState } from "preact/hooks";
import type { Answer } from "../../api";
import type { Question } from "../../api_schema";
import { useKeys } from "../../keyboard";
import { useStore } from "../../live/store";
import { announce } from "../../parts/announce";
import { visibleText } from "../../text/visible_text";
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
  const covers = (question.session_covers ?? []).map(visibleText).join("; ");
  const sessionTitle = `Allows ${covers === "" ? "the same" : covers}, until the session of the agent ends`;
  const canAlways = Boolean(question.always ?? question.always_directory);
  const rulesFile = useStore((state) => state.live.servers.find((one) => one.server === question.server)?.rules_file);
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
          <AnswerButton name="Approve once" title="Allows this call only" keys="y" kind="approve" disabled={disabled || blocked !== null} onClick={acts.y} />
          <AnswerButton name={sessionName(question)} title={sessionTitle} keys="s" kind="approve" disabled={disabled || blocked !== null} onClick={acts.s} />
          <AnswerButton name="For minutes…" keys="t" kind="approve" disabled={disabled || blocked !== null} open={panel === "minutes"} onClick={acts.t} />
          {canAlways ? <AnswerButton name="Always…" keys="a" kind="approve" disabled={disabled || blocked !== null} open={panel === "always"} onClick={acts.a} /> : null}
        </div>
        <div class="answer-group">
          <AnswerButton name="Deny…" keys="n" kind="deny" disabled={disabled} open={panel === "no"} onClick={acts.n} />
          {question.never ? <AnswerButton name="Never…" keys="N" kind="deny" disabled={disabled} open={panel === "never"} onClick={acts.N} /> : null}
        </div>
        {canAlways ? null : <p class="answer-reason">{noAlways(question, Boolean(rulesFile))}</p>}
        {blocked === null ? null : <button type="button" class="link blocked" onClick={onUnseen}>{blocked}</button>}
      </div>
      {panel === "minutes" ? <MinutesPanel question={question} disabled={disabled} onAnswer={onAnswer} onClose={close} /> : null}
      {panel === "no" ? <DenyPanel disabled={disabled} onAnswer={onAnswer} onClose={close} /> : null}
      {panel === "always" || panel === "never"
        ? <RulePanel key={panel} question={question} kind={panel} disabled={disabled} onAnswer={onAnswer} onClose={close} />
        : null}
    </div>
  );
}

/** `All edits this session`: what the answer allows. */
function sessionName({ session_scope: scope }: Question): string {
  return scope ? `${scope.charAt(0).toUpperCase()}${scope.slice(1)} this session` : "This session";
}

/** Why there is no button for a rule that allows. */
function noAlways(question: Question, hasRulesFile: boolean): string {
  if (!hasRulesFile) {
    return "No “Always”: this agent has no rules file to add to.";
  }
  if (question.rule.startsWith("rule:")) {
    return "No “Always”: your own rule asks. Change it in Rules.";
  }
  return question.command?.unparsed
    ? "No “Always”: a rule cannot match a command that was not split."
    : "No “Always”: no rule can allow exactly this.";
}

/** While a panel is open, no key answers. */
function CardKeys({ keys }: { keys: Record<string, () => void> }) {
  useKeys(keys);
  return null;
}

interface AnswerButtonProps {
  name: string;
  title?: string;
  keys: string;
  kind: "approve" | "deny";
  disabled: boolean;
  open?: boolean;
  onClick: () => void;
}

function AnswerButton({ name, title, keys, kind, disabled, open, onClick }: AnswerButtonProps) {
  return (
    <button
      type="button"
      class={`button answer answer-${kind}`}
      disabled={disabled}
      {...(title === undefined ? {} : { title })}
      aria-keyshortcuts={keys}
      {...(open === undefined ? {} : { "aria-expanded": open })}
      onClick={onClick}
    >
      {name}<kbd aria-hidden="true">{keys}</kbd>
    </button>
  );
}
