/** Errors of a session: a kind from a closed list, a sentence, and a hint about the next step. */
import type { Frame } from "./frame_decoder.js";

/** An error as the program writes it. */
export interface ErrorFields {
  kind: string;
  message: string;
  hint?: string;
}

/** The base class of all errors of this package. */
export class ToolcribError extends Error {
  /** What went wrong, such as `not_found` or `denied`. */
  readonly kind: string;
  /** What to do next; may be empty. */
  readonly hint: string;

  constructor(kind: string, message: string, hint = "", options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.kind = kind;
    this.hint = hint;
  }
}

/** The arguments are wrong. */
export class InvalidArgument extends ToolcribError {}
/** The path, the process or the snapshot does not exist. */
export class NotFound extends ToolcribError {}
/** The path or the name of the tool is taken. */
export class AlreadyExists extends ToolcribError {}
/** The path is a directory. */
export class IsDirectory extends ToolcribError {}
/** The path is not a directory. */
export class NotADirectory extends ToolcribError {}
/** The directory is not empty. */
export class NotEmpty extends ToolcribError {}
/** A rule, the profile, the sandbox or the operating system refuses the access. */
export class Denied extends ToolcribError {}
/** The file was changed by somebody else. */
export class Conflict extends ToolcribError {}
/** The command or the call took too long. */
export class Timeout extends ToolcribError {}
/** The caller cancelled the call. */
export class Cancelled extends ToolcribError {}
/** The program cannot do this, or the format is unknown. */
export class Unsupported extends ToolcribError {}
/** Something is larger or more than allowed. */
export class LimitExceeded extends ToolcribError {}
/** The session was closed, or its program ended. */
export class SessionClosed extends ToolcribError {
  constructor(message: string, hint = "", options?: ErrorOptions, kind = "closed") {
    super(kind, message, hint, options);
  }
}
/** The program could not be started, or ended before its first answer. */
export class StartFailed extends SessionClosed {
  constructor(message: string) {
    super(message, "Check the options of the session, and that `binary` is toolcrib.", undefined, "not_started");
  }
}

type ErrorClass = new (kind: string, message: string, hint?: string) => ToolcribError;

const classes: Readonly<Record<string, ErrorClass>> = {
  invalid: InvalidArgument,
  not_found: NotFound,
  already_exists: AlreadyExists,
  is_directory: IsDirectory,
  not_a_directory: NotADirectory,
  not_empty: NotEmpty,
  permission: Denied,
  denied: Denied,
  outside_workspace: Denied,
  protected: Denied,
  hidden: Denied,
  read_only: Denied,
  stale: Conflict,
  conflict: Conflict,
  timeout: Timeout,
  cancelled: Cancelled,
  limit: LimitExceeded,
  too_large: LimitExceeded,
  unsupported: Unsupported,
};

/** The error of a reply. */
export function errorOf(fields: ErrorFields): ToolcribError {
  const Class = Object.hasOwn(classes, fields.kind) ? classes[fields.kind] : undefined;
  return new (Class ?? ToolcribError)(fields.kind, fields.message, fields.hint);
}

/** Throws the error of a failed reply. */
export function succeeded(frame: Frame): Frame {
  if (frame.message["success"] !== true) {
    throw errorOf(frame.message["error"] as ErrorFields);
  }
  return frame;
}
