/** Approval questions, and the function that answers them. */
import { inspect } from "node:util";

import type { Connection } from "./connection.js";

export type ApprovalAnswer = "yes" | "session" | "always" | "always_directory" | "no" | "never";

/** A path that a call reads or writes. */
export interface ApprovalPath {
  access: string;
  /** The real path; `null` stands for files that are not known before the call runs. */
  path: string | null;
}

/** A call that needs approval. Escape control characters before you display its texts. */
export interface ApprovalQuestion {
  id: string;
  /** The id of the call; an own number of this package. */
  call_id: unknown;
  session: number;
  tool: string;
  command?: string;
  cwd?: string;
  paths?: ApprovalPath[];
  reaches?: unknown;
  description?: string;
  diff?: string;
  /** The rule that requires approval. */
  rule: string;
  /** The reason. */
  why: string;
  /** The answers that this question takes. */
  answers: ApprovalAnswer[];
  [field: string]: unknown;
}

/** An answer; `message` is shown to the agent if the call is denied. */
export interface ApprovalDecision {
  answer: ApprovalAnswer;
  message?: string;
}

/** What an approver returns: an answer, one with a message, or whether this call is allowed. */
export type Decision = ApprovalAnswer | ApprovalDecision | boolean;

/** Decides on a question. A function that throws, or returns something else, denies the call. */
export type Approver = (question: ApprovalQuestion) => Decision | Promise<Decision>;

/** Asks the approver and sends its answer. */
export async function answerQuestion(
  approver: Approver | undefined,
  question: ApprovalQuestion,
  connection: Connection,
): Promise<void> {
  connection.notify({ approve: question.id, ...(await decide(approver, question)) });
}

async function decide(approver: Approver | undefined, question: ApprovalQuestion): Promise<ApprovalDecision> {
  if (!approver) {
    return { answer: "no", message: "There is no approver." };
  }
  try {
    return decisionOf(await approver(question), question.answers);
  } catch (error) {
    return { answer: "no", message: `The approver failed: ${error instanceof Error ? error.message : String(error)}` };
  }
}

/** The decision that is sent. The program does not go on with a call after an answer that it does not know. */
function decisionOf(returned: unknown, offered: readonly ApprovalAnswer[]): ApprovalDecision {
  if (typeof returned === "boolean") {
    return { answer: returned ? "yes" : "no" };
  }
  const { answer, message } = typeof returned === "string" ? { answer: returned } : fieldsOf(returned);
  if (typeof answer !== "string" || (message !== undefined && typeof message !== "string")) {
    return { answer: "no", message: `The approver returned ${inspect(returned)}, which is not an answer.` };
  }
  const known = offered.find((one) => one === answer);
  if (known === undefined) {
    return { answer: "no", message: `The approver answered '${answer}'; this question takes ${offered.join(", ")}.` };
  }
  return message === undefined ? { answer: known } : { answer: known, message };
}

function fieldsOf(returned: unknown): { answer?: unknown; message?: unknown } {
  return typeof returned === "object" && returned !== null ? returned : {};
}
