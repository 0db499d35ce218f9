// Who answered a request. It takes the place of the buttons; the card keeps its size, so that nothing moves.

import { useLayoutEffect, useRef } from "preact/hooks";
import type { RefObject } from "preact";
import type { Question, Settled } from "../../api_schema";
import { useStore } from "../../live/store";
import { isUnanswered, settledText } from "../../parts/labels";
import { useNow } from "../../parts/loading";
import { Raw } from "../../parts/raw";
import { lateText } from "./time_left_note";

export function SettledNote({ question, settled }: { question: Question; settled: Settled }) {
  const now = useNow();
  const mine = useStore((state) => state.mine.has(question.id));
  const withdrawn = isUnanswered(settled);
  const late = withdrawn ? null : lateText(question, settled, now);
  const allowed = settled.answer !== "no" && settled.answer !== "never";
  const mark = withdrawn ? "withdrawn" : allowed ? "approved" : "denied";
  return (
    <p class={`settled-note settled-${mark}`} role="status">
      <span aria-hidden="true">{withdrawn ? "–" : allowed ? "✓" : "✕"}</span>{" "}
      {settledText(settled, mine)}.{late === null ? "" : ` ${late}`}
      {settled.message ? <> Message: “<Raw text={settled.message} />”</> : null}
    </p>
  );
}

/** Keeps the height of a card when its buttons give way to the note. `onLost` moves the focus, which they had. */
export function useKeptPlace(card: RefObject<HTMLElement | null>, settled: boolean, mine: boolean, onLost: () => void): void {
  const height = useRef(0);
  const focused = useRef(false);
  if (!settled) {
    focused.current = card.current?.contains(document.activeElement) ?? false;
  }
  useLayoutEffect(() => {
    const element = card.current;
    if (!element) {
      return;
    }
    if (!settled) {
      height.current = element.offsetHeight;
    } else if (height.current > 0) {
      element.style.minHeight = `${height.current}px`;
    }
  });
  useLayoutEffect(() => {
    // A button that was pressed is disabled at once, and then has no focus any more.
    if (settled && (focused.current || mine)) {
      onLost();
    }
  }, [settled]);
}
