/** The reply to a tool call. */
import { errorOf, type ErrorFields, type ToolcribError } from "./errors.js";
import type { Message } from "./frame_decoder.js";

/** An image in a reply, in MCP's form. */
export interface Picture {
  type: "image";
  mimeType: string;
  /** Base64. */
  data: string;
}

/** The reply to a tool call. A call that fails has a reply too: its output is the text for the model. */
export class Reply {
  readonly success: boolean;
  /** The text for the model: the reply, or the error with its hint. */
  readonly output: string;
  /** Facts for programs. */
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Images for the model. */
  readonly pictures: readonly Picture[];
  /** The error, if the call failed. */
  readonly error: ToolcribError | undefined;

  constructor(message: Message) {
    this.success = message["success"] === true;
    this.output = typeof message["output"] === "string" ? message["output"] : "";
    this.metadata = (message["metadata"] as Record<string, unknown> | undefined) ?? {};
    this.pictures = (message["content"] as Picture[] | undefined) ?? [];
    this.error = this.success ? undefined : errorOf(message["error"] as ErrorFields);
  }

  /** Throws the error of a failed call. */
  orThrow(): this {
    if (this.error) {
      throw this.error;
    }
    return this;
  }
}
