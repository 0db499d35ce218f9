// A command in running order, one simple command per line, with marks for programs, paths and writes; then as written.

import type { ComponentChildren } from "preact";
import type { Question, Span, Step } from "../api_schema";
import { Raw } from "./raw";

const MEANINGS: Record<Span["kind"], string> = {
  program: "program", path: "path", write: "writes", redirect: "redirection", operator: "operator",
};

export function CommandSteps({ command }: { command: NonNullable<Question["command"]> }) {
  if (command.steps.length === 0) {
    return (
      <div class="command code">
        {command.unparsed ? <p class="command-note">Not split into steps: <Raw text={command.unparsed} /></p> : null}
        <pre class="command-text"><Raw text={command.text} layout /></pre>
      </div>
    );
  }
  // The steps alone do not show which commands belong to a loop or run in the background.
  const isWhole = command.steps.length === 1 && command.steps[0]?.text === command.text.trim();
  return (
    <>
      <ol class="command code">
        {command.steps.map((step) => (
          <li class={step.writes ? "step step-writes" : "step"}>
            <span class="step-text">{markedText(step)}</span>
            {step.writes ? <span class="step-mark">writes</span> : null}
          </li>
        ))}
      </ol>
      {isWhole ? null : (
        <div class="command command-written">
          <p class="command-written-label">As written</p>
          <pre class="command-text code"><Raw text={command.text} layout /></pre>
        </div>
      )}
    </>
  );
}

function markedText(step: Step): ComponentChildren {
  const parts: ComponentChildren[] = [];
  let at = 0;
  for (const span of step.spans.toSorted((a, b) => a.start - b.start)) {
    if (span.start < at || span.end <= span.start || span.end > step.text.length) {
      continue;
    }
    parts.push(<Raw text={step.text.slice(at, span.start)} layout />);
    parts.push(
      <span class={`span-${span.kind}`} title={MEANINGS[span.kind]}>
        <Raw text={step.text.slice(span.start, span.end)} layout />
      </span>,
    );
    at = span.end;
  }
  parts.push(<Raw text={step.text.slice(at)} layout />);
  return parts;
}
