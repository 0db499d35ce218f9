// Requests for approval of all agents, oldest first.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Question, Settled } from "../../api_schema";
import { useKeys } from "../../keyboard";
import { waitingCount, type LiveState } from "../../live/live_state";
import { dropSettled, tabState, useStore } from "../../live/store";
import { Empty } from "../../parts/loading";
import { plural } from "../../text/format";
import { useMovement } from "./movement";
import { QuestionCard } from "./question_card";

export function WaitingView() {
  const live = useStore((state) => state.live);
  const known = useStore((state) => state.known);
  const movement = useMovement();
  const entries = entriesOf(live);
  const ids = entries.map((entry) => entry.question.id);
  const [chosen, setChosen] = useState<string | null>(null);
  const selected = chosen !== null && ids.includes(chosen) ? chosen : null;
  const selectedRef = useRef(selected);
  selectedRef.current = selected;

  useEffect(() => {
    const timer = setInterval(dropSettled, 500);
    return () => clearInterval(timer);
  }, []);
  const move = (step: number) => {
    const at = selectedRef.current === null ? -1 : ids.indexOf(selectedRef.current);
    const next = ids[Math.min(Math.max(at < 0 ? 0 : at + step, 0), ids.length - 1)];
    if (next !== undefined) {
      setChosen(next);
      const card = movement.list.current?.querySelector<HTMLElement>(`[data-question="${CSS.escape(next)}"]`);
      card?.focus({ preventScroll: true });
      card?.scrollIntoView({ block: "start" });
    }
  };
  const heading = useRef<HTMLHeadingElement>(null);
  const cardOf = (id: string) => movement.list.current?.querySelector<HTMLElement>(`[data-question="${CSS.escape(id)}"]`);
  /** After an answer of this tab: the next request that waits, or else the heading. */
  const focusNext = (answered: string) => {
    if (!tabState().mine.has(answered)) {
      cardOf(answered)?.focus({ preventScroll: true });
      return;
    }
    const active = document.activeElement;
    if (active !== null && active !== document.body && !cardOf(answered)?.contains(active)) {
      return;
    }
    const at = ids.indexOf(answered);
    const open = [...entries.slice(at + 1), ...entries.slice(0, Math.max(at, 0))].find((entry) => entry.settled === null);
    const next = open ? cardOf(open.question.id) : null;
    // A second press of the same key must not answer the next request.
    movement.block();
    const target = next ?? heading.current;
    target?.focus({ preventScroll: true });
    target?.scrollIntoView({ block: "nearest" });
  };
  // The note of an answered request goes away after some seconds, and may have the focus.
  const hadFocus = movement.list.current?.contains(document.activeElement) ?? false;
  useLayoutEffect(() => {
    if (hadFocus && document.activeElement === document.body) {
      heading.current?.focus();
    }
  });
  useKeys({ j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1) });

  return (
    <div class="view narrow">
      <div class="view-head">
        <h1 tabIndex={-1} ref={heading}>Waiting</h1>
        <p class="view-sub">{subtitle(live)}</p>
      </div>
      <div class="cards" ref={movement.list}>
        {entries.map((entry) => (
          <QuestionCard
            key={entry.question.id}
            question={entry.question}
            settled={entry.settled}
            selected={selected === entry.question.id || (selected === null && ids.length === 1)}
            onSelect={() => setChosen(entry.question.id)}
            movement={movement}
            onFocusLost={() => focusNext(entry.question.id)}
          />
        ))}
      </div>
      {entries.length === 0 && known ? (
        <Empty title="Nothing to approve">
          <p>
            Requests for approval appear here. Leave this tab open: its title shows how many wait.
          </p>
        </Empty>
      ) : null}
    </div>
  );
}

function subtitle(live: LiveState): string {
  const waiting = waitingCount(live);
  const late = live.waiting.length - waiting;
  const first = waiting === 0 ? "No agent waits for you" : `${plural(waiting, "request")}, oldest first`;
  return late === 0 ? first : `${first}; ${late === 1 ? "1 more can" : `${late} more can`} still be answered for the next try`;
}

interface Entry {
  question: Question;
  settled: Settled | null;
}

/** Open and just settled requests in one order, so that an answer does not move the others. */
function entriesOf(live: LiveState): Entry[] {
  const open = live.waiting.map((question) => ({ question, settled: null }));
  const entries: Entry[] = [...open, ...live.settled];
  return entries.sort(({ question: a }, { question: b }) => a.opened - b.opened || (a.id < b.id ? -1 : 1));
}
