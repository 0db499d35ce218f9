// Who answered a request. It takes the place of the buttons; the card keeps its size, so that nothing moves.

import { useLayoutEffect, useRef } from "preact/hooks";
import type { RefObject } from "preact";
import type { Settled } from "../../api_schema";
import { useStore } from "../../live/store";
import { isUnanswered, settledText } from "../../parts/labels";
import { Raw } from "../../parts/raw";

export function SettledNote({ id, settled }: { id: string; settled: Settled }) {
  const mine = useStore((state) => state.mine.has(id));
  const withdrawn = isUnanswered(settled);
  const allowed = settled.answer !== "no" && settled.answer !== "never";
  const mark = withdrawn ? "withdrawn" : allowed ? "approved" : "denied";
  return (
    <p class={`settled-note settled-${mark}`} role="status">
      <span aria-hidden="true">{withdrawn ? "–" : allowed ? "✓" : "✕"}</span>{" "}
      {settledText(settled, mine)}.
      {settled.message ? <> Message: “<Raw text={settled.message} />”</> : null}
    </p>
  );
}

/** Keeps the height and the focus of a card when its buttons give way to the note. */
export function useKeptPlace(card: RefObject<HTMLElement | null>, settled: boolean): void {
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
    if (settled && focused.current) {
      card.current?.focus({ preventScroll: true });
    }
  }, [settled]);
}
