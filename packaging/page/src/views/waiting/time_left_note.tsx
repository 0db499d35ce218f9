// How long a request can be answered, and what happens then.

import type { TimeLeft } from "../../api_schema";
import { useNow } from "../../parts/loading";
import { elapsed, plural } from "../../text/format";

export function TimeLeftNote({ question }: { question: TimeLeft }) {
  const now = useNow();
  const text = timeLeftText(question, now);
  return text === null ? null : <p class={question.call_ended ? "time-left time-left-ended" : "time-left"}>{text}</p>;
}

/** Null if the call waits as long as its agent does. */
function timeLeftText({ call_waits_until: until, call_ended: ended, expires }: TimeLeft, now: number): string | null {
  const left = (end: number) => elapsed(Math.max(end - now, 0));
  if (ended) {
    const within = expires ? ` within ${left(expires)}` : "";
    return `The call has ended without an answer. Your answer counts if the agent makes the same call again${within}.`;
  }
  if (!until) {
    return null;
  }
  const then = expires && expires > until
    ? `the call is denied. After that, your answer counts if the agent makes the same call again within ${plural(Math.round((expires - until) / 60_000), "minute")}`
    : "the call is denied";
  return `${left(until)} left. Then ${then}.`;
}
