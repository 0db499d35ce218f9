// One request for approval: everything that will happen, why it asks, and the answers.

import { useMemo, useRef, useState } from "preact/hooks";
import { answerQuestion, ApiError, type Answer } from "../../api";
import type { Question, Settled } from "../../api_schema";
import { settle, useStore } from "../../live/store";
import { AgentName } from "../../parts/agent_name";
import { CommandSteps } from "../../parts/command_steps";
import { DiffFile } from "../../parts/diff_view";
import { Accesses, ruleName, SandboxLine, Tool } from "../../parts/labels";
import { ErrorNote, useAction, useNow } from "../../parts/loading";
import { Raw } from "../../parts/raw";
import { elapsed } from "../../text/format";
import { parseUnifiedDiff } from "../../text/unified_diff";
import { visibleText } from "../../text/visible_text";
import { AnswerBar } from "./answer_bar";
import type { Movement } from "./movement";
import { useSeenEnd } from "./seen_end";
import { SettledNote, useKeptPlace } from "./settled_note";
import { TimeLeftNote } from "./time_left_note";

interface QuestionCardProps {
  question: Question;
  /** Set for some seconds after an answer. */
  settled: Settled | null;
  selected: boolean;
  onSelect: () => void;
  movement: Movement;
  /** The card has lost its buttons, and one of them had the focus. */
  onFocusLost: () => void;
}

export function QuestionCard({ question, settled, selected, onSelect, movement, onFocusLost }: QuestionCardProps) {
  const online = useStore((state) => state.link === "live");
  const action = useAction();
  const card = useRef<HTMLElement>(null);
  const [commandEnd, commandSeen] = useSeenEnd<HTMLSpanElement>();
  const [diffEnd, diffSeen] = useSeenEnd<HTMLSpanElement>();
  const hasCommand = Boolean(question.command);
  const hasDiff = Boolean(question.diff);
  const seen = (!hasCommand || commandSeen) && (!hasDiff || diffSeen);
  const cut = (question.cut ?? []).filter((field) => /command|diff|access|steps/.test(field));
  const [cutAccepted, setCutAccepted] = useState(false);

  const mine = useStore((state) => state.mine.has(question.id));
  useKeptPlace(card, settled !== null, mine, onFocusLost);
  // Made once: it can have thousands of lines, and events render the card again.
  const diff = useMemo(() => parseUnifiedDiff(question.diff ?? "").map((file) => <DiffFile file={file} whole />), [question.diff]);
  const answer = (given: Answer) => {
    if (movement.isDead() || !online) {
      return;
    }
    action.run(() => send(question, given));
  };
  const scrollToUnseen = () => {
    const target = hasCommand && !commandSeen ? commandEnd.current : diffEnd.current;
    target?.scrollIntoView({ block: "end" });
  };
  const title = `${question.tool} asks for approval: ${visibleText(question.command?.text ?? question.accesses[0]?.text ?? "")}`;
  return (
    <article
      class={`card question${selected ? " selected" : ""}${settled ? " settled" : ""}${question.call_ended ? " late" : ""}`}
      data-question={question.id}
      tabIndex={-1}
      ref={card}
      aria-label={title.slice(0, 160)}
      aria-current={selected}
      onFocusCapture={onSelect}
      onPointerDown={onSelect}
    >
      <CardHead question={question} open={settled === null} />
      {question.description ? <p class="card-words">“<Raw text={question.description} />”</p> : null}
      {question.command ? (
        <ScrollBox label="Command">
          <CommandSteps command={question.command} />
          <span class="end-mark" ref={commandEnd} />
        </ScrollBox>
      ) : null}
      <CardAccesses question={question} />
      {question.diff ? (
        <ScrollBox label="Changes">
          {diff}
          <span class="end-mark" ref={diffEnd} />
        </ScrollBox>
      ) : null}
      <CardReasons question={question} />
      {cut.length > 0 && settled === null ? <CutNotice fields={cut} accepted={cutAccepted} onChange={setCutAccepted} /> : null}
      <ErrorNote message={action.error} />
      {settled ? null : <TimeLeftNote question={question} />}
      {settled ? <SettledNote question={question} settled={settled} /> : (
        <AnswerBar
          question={question}
          selected={selected}
          blocked={blockedBecause(seen, cut.length > 0 && !cutAccepted)}
          disabled={!online || action.busy || movement.settling}
          onAnswer={answer}
          onUnseen={scrollToUnseen}
        />
      )}
    </article>
  );
}

function blockedBecause(seen: boolean, cut: boolean): string | null {
  if (!seen) {
    return "Scroll to the end first";
  }
  return cut ? "Tick the box first" : null;
}

async function send(question: Question, given: Answer): Promise<void> {
  try {
    settle(question.id, await answerQuestion(question.id, question.digest, given), true);
  } catch (error) {
    if (error instanceof ApiError && error.status === 409 && error.settled) {
      settle(question.id, error.settled, false);
    } else {
      throw error;
    }
  }
}

function CutNotice({ fields, accepted, onChange }: { fields: string[]; accepted: boolean; onChange: (accepted: boolean) => void }) {
  return (
    <label class="note note-warn check">
      <input type="checkbox" checked={accepted} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span>
        The {fields.join(" and ")} {fields.length === 1 ? "is" : "are"} too long for this page and cut above.
        I accept that I do not see all of it.
      </span>
    </label>
  );
}

function CardHead({ question, open }: { question: Question; open: boolean }) {
  const now = useNow();
  const directory = question.directory !== "" && question.directory !== question.workspace ? question.directory : null;
  return (
    <>
      <header class="card-head">
        <h2><Tool name={question.tool} /></h2>
        <AgentName server={question.server} client={question.client} workspace={question.workspace} session={question.session} />
        {open ? (
          <span class="card-wait">{question.call_ended ? "the agent does not wait" : `waiting ${elapsed(now - question.opened)}`}</span>
        ) : null}
      </header>
      {directory ? <p class="card-place code"><span class="quiet">in </span><Raw text={directory} /></p> : null}
    </>
  );
}

/** Accesses that the command does not already show. */
function CardAccesses({ question }: { question: Question }) {
  const shown = question.accesses.filter((access) => access.effect !== "command");
  return shown.length === 0 ? null : <Accesses accesses={shown} />;
}

function CardReasons({ question }: { question: Question }) {
  return (
    <dl class="reasons">
      <dt>Asks</dt>
      <dd>
        {question.rule === "" ? null : <><span class="code rule-name"><Raw text={ruleName(question.rule)} /></span> </>}
        <Raw text={question.why} />
      </dd>
      {question.sandbox === "" ? null : <><dt>Sandbox</dt><dd><SandboxLine text={question.sandbox} /></dd></>}
    </dl>
  );
}

function ScrollBox({ label, children }: { label: string; children: preact.ComponentChildren }) {
  return <div class="scroll-box" tabIndex={0} role="group" aria-label={label}>{children}</div>;
}
