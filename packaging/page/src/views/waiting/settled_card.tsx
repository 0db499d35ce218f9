// A request that was answered a moment ago: who answered what. It keeps its height, so that nothing moves.

import { useLayoutEffect, useRef } from "preact/hooks";
import type { Question, Settled } from "../../api_schema";
import { useStore } from "../../live/store";
import { settledText, Tool } from "../../parts/labels";
import { Raw } from "../../parts/raw";
import { heightOf, takeFocus } from "./card_heights";

export function SettledCard({ question, settled }: { question: Question; settled: Settled }) {
  const mine = useStore((state) => state.mine.has(question.id));
  const card = useRef<HTMLElement>(null);
  const allowed = settled.answer !== "no" && settled.answer !== "never";
  const withdrawn = settled.by === "timeout" || settled.by === "cancelled";
  useLayoutEffect(() => {
    const height = heightOf(question.id);
    if (card.current && height !== undefined) {
      card.current.style.minHeight = `${height}px`;
    }
    if (takeFocus(question.id)) {
      card.current?.focus({ preventScroll: true });
    }
  }, []);
  const what = question.command?.text ?? question.accesses[0]?.text ?? "";
  const mark = withdrawn ? "withdrawn" : allowed ? "approved" : "denied";
  return (
    <article class={`card settled settled-${mark}`} data-question={question.id} ref={card} tabIndex={-1} aria-label="Answered request">
      <p class="settled-text">
        <span aria-hidden="true" class="settled-sign">{withdrawn ? "–" : allowed ? "✓" : "✕"}</span>
        {settledText(settled, mine)}.
        {settled.message ? <> Message: “<Raw text={settled.message} />”</> : null}
      </p>
      <p class="settled-what code"><Tool name={question.tool} /> <Raw text={what.slice(0, 300)} /></p>
    </article>
  );
}
