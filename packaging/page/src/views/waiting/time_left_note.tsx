// How long a request can be answered, and what happens then.

import type { Settled, TimeLeft } from "../../api_schema";
import { useNow } from "../../parts/loading";
import { elapsed, plural } from "../../text/format";

export function TimeLeftNote({ question }: { question: TimeLeft }) {
  const now = useNow();
  const text = question.call_ended ? endedText(question, now) : waitingText(question, now);
  return text === null ? null : <p class={question.call_ended ? "time-left time-left-ended" : "time-left"}>{text}</p>;
}

/** What a late answer is good for. Null if it counts at once. */
export function lateText(question: TimeLeft, settled: Settled, now: number): string | null {
  if (!question.call_ended) {
    return null;
  }
  switch (settled.answer) {
    case "always":
    case "always_directory":
    case "never":
      return `${toldText(question)} The rule is in your rules file.`;
    case "no":
      return `${toldText(question)} It gets your answer if it tries again${within(question, now)}.`;
    default:
      return endedText(question, now);
  }
}

function endedText(question: TimeLeft, now: number): string {
  return `${toldText(question)} Your answer counts if it tries again${within(question, now)}.`;
}

function toldText({ denied_after: after }: TimeLeft): string {
  return after ? `The agent was told no after ${elapsed(after)}.` : "The client of the agent asks this too.";
}

function within({ expires }: TimeLeft, now: number): string {
  return expires ? ` within ${elapsed(Math.max(expires - now, 0))}` : "";
}

/** Null if the call waits as long as its agent does. */
function waitingText({ call_waits_until: until, expires }: TimeLeft, now: number): string | null {
  if (!until) {
    return null;
  }
  const later = expires && expires > until
    ? ` Your answer still counts if it tries again within ${plural(Math.round((expires - until) / 60_000), "minute")}.`
    : "";
  return `${elapsed(Math.max(until - now, 0))} left. Then the agent is told no.${later}`;
}
