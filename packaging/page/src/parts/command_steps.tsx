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
      <div class="command">
        <p class="command-note">
          This command could not be split into simple commands{command.unparsed ? <>: <Raw text={command.unparsed} /></> : null}.
          It is shown as written.
        </p>
        <ol class="command-lines code">
          {command.text.split("\n").map((line) => <li class="command-line"><span class="step-text"><Raw text={line} layout /></span></li>)}
        </ol>
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
            {step.writes ? <span class="step-mark" title="It is not known to be read-only">may write</span> : null}
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
