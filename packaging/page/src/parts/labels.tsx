// Short labels: outcomes, decisions, who answered, places.

import type { Access, AnswerWord, Answerer, Call, Decision, Outcome, Settled } from "../api_schema";
import { baseName, plural } from "../text/format";
import { visibleText } from "../text/visible_text";
import { Raw } from "./raw";

const OUTCOMES: Record<Outcome, [string, string]> = {
  done: ["✓", "done"], failed: ["✕", "failed"], denied: ["⊘", "denied"], running: ["●", "running"],
};

export function OutcomeMark({ call, words = false }: { call: Pick<Call, "outcome" | "command_end">; words?: boolean }) {
  const [sign, known] = (call.outcome && OUTCOMES[call.outcome]) ?? ["·", "outcome not recorded"];
  const word = call.command_end?.status === "server_ended" ? "ended with its server" : known;
  return (
    <span class={`outcome outcome-${call.outcome ?? "unknown"}`} title={word}>
      <span aria-hidden="true">{sign}</span>
      <span class={words ? "outcome-word" : "hidden-text"}>{word}</span>
    </span>
  );
}

export function DecisionLabel({ decision }: { decision: Decision }) {
  return <span class={`decision decision-${decision}`}>{decision}</span>;
}

/** The title without the name of the tool, which is shown beside it. */
export function titleOf(call: Pick<Call, "tool" | "title">): string {
  if (call.title === call.tool) {
    return "";
  }
  return call.title.startsWith(`${call.tool} `) ? call.title.slice(call.tool.length + 1) : call.title;
}

/** The sandbox of an agent. What it does not enforce is one click away, unless it is `brief`. */
export function SandboxLine({ text, brief = false }: { text: string; brief?: boolean }) {
  const [enforced = "", ...rest] = text.split("; not enforced: ");
  return (
    <>
      <Raw text={enforced} />
      {rest.length === 0 || brief ? null : <details class="limits"><summary>Not enforced</summary><Raw text={rest.join("; not enforced: ")} /></details>}
    </>
  );
}

export function Place({ path }: { path: string }) {
  return <span class="place" title={visibleText(path)}><Raw text={baseName(path)} /></span>;
}

export function Tool({ name }: { name: string }) {
  return <span class="tool"><Raw text={name} /></span>;
}

/** A rule of the rules file without its prefix. */
export const ruleName = (name: string) => name.replace(/^rule:/, "");

const EFFECTS: Record<Access["effect"], string> = {
  read: "reads", write: "writes", command: "runs", connect: "connects to", reach: "reaches",
};

export function Accesses({ accesses }: { accesses: Access[] }) {
  return (
    <ul class="accesses">
      {accesses.map((access) => (
        <li>
          <span class={`effect effect-${access.effect}`}>{EFFECTS[access.effect] ?? access.effect}</span>
          <span class="code"><Raw text={access.text} /></span>
        </li>
      ))}
    </ul>
  );
}

const ANSWERS: Record<AnswerWord, string> = {
  once: "Approved once", session: "Approved for the session", minutes: "Approved for some minutes",
  always: "Always approved", always_directory: "Always approved in this directory", no: "Denied", never: "Always denied",
};

const ANSWERERS: Record<Answerer, string> = {
  terminal: "at the terminal", client: "in the client", program: "by the program", page: "on the page",
  watch: "in toolcrib watch", store: "in the store", timeout: "nobody answered in time", cancelled: "the request was withdrawn",
  withdrawn: "it needs no answer any more",
};

/** Whether nobody has answered. */
export function isUnanswered({ by }: Pick<Settled, "by">): boolean {
  return by === "timeout" || by === "cancelled" || by === "withdrawn";
}

/** A sentence without its full stop: who answered what. */
export function settledText(settled: Settled, mine: boolean): string {
  if (isUnanswered(settled)) {
    const text = ANSWERERS[settled.by];
    return text.charAt(0).toUpperCase() + text.slice(1);
  }
  const minutes = settled.answer === "minutes" && settled.minutes ? `Approved for ${plural(settled.minutes, "minute")}` : null;
  const answer = minutes ?? ANSWERS[settled.answer] ?? settled.answer;
  return `${answer} ${mine ? "by you" : ANSWERERS[settled.by] ?? settled.by}`;
}

/** The same for a logged call. */
export function answeredText(answered: NonNullable<Call["answered"]>): string {
  return answered.answer === "nobody" ? "Nobody could be asked" : settledText({ ...answered, answer: answered.answer, at: 0 }, false);
}
