/** Approval questions, and the function that answers them. */
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

/** Decides on a question. A function that throws denies the call. */
export type Approver = (
  question: ApprovalQuestion,
) => ApprovalAnswer | ApprovalDecision | Promise<ApprovalAnswer | ApprovalDecision>;

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
    const decision = await approver(question);
    return typeof decision === "string" ? { answer: decision } : decision;
  } catch (error) {
    return { answer: "no", message: `The approver failed: ${error instanceof Error ? error.message : String(error)}` };
  }
}
