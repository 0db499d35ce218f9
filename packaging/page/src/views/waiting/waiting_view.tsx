// Requests for approval of all agents, oldest first.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Question, Settled } from "../../api_schema";
import { useKeys } from "../../keyboard";
import type { LiveState } from "../../live/live_state";
import { dropSettled, useStore } from "../../live/store";
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
  useKeys({ j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1) });

  return (
    <div class="view narrow">
      <div class="view-head">
        <h1>Waiting</h1>
        <p class="view-sub">{live.waiting.length === 0 ? "No agent waits for you" : `${plural(live.waiting.length, "request")}, oldest first`}</p>
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
          />
        ))}
      </div>
      {entries.length === 0 && known ? (
        <Empty title="Nothing to approve">
          <p>
            Requests appear here when a rule asks for approval. Leave this tab open: its title shows how many are waiting.
          </p>
        </Empty>
      ) : null}
    </div>
  );
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
