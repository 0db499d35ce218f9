/** Toolcrib for Node: tools, commands and files of a workspace, confined and undoable. */
export type { ApprovalAnswer, ApprovalDecision, ApprovalPath, ApprovalQuestion, Approver, Decision } from "./approval.js";
export type { BackgroundJob } from "./background_job.js";
export type { ByteStream } from "./byte_stream.js";
export type { Command, CommandOptions, Completed, ExecOptions, Exit, SpawnOptions } from "./command.js";
export {
  AlreadyExists,
  Cancelled,
  Conflict,
  Denied,
  InvalidArgument,
  IsDirectory,
  LimitExceeded,
  NotADirectory,
  NotEmpty,
  NotFound,
  SessionClosed,
  StartFailed,
  Timeout,
  ToolcribError,
  Unsupported,
} from "./errors.js";
export type { Changed, Entry, FileKind, Listing, ReadOptions, Stat, WriteOptions } from "./files.js";
export { FrameDecoder, FrameError, type Frame, type Message } from "./frame_decoder.js";
export type * from "./generated/tool_arguments.js";
export type { JsonSchema, OwnTool } from "./own_tools.js";
export { findProgram } from "./program.js";
export type { Picture, Reply } from "./reply.js";
export type { Process, ProcessInput, SignalName } from "./running_process.js";
export { Session, type CallOptions, type CallParameters, type Change, type Info, type Progress, type Snapshot } from "./session.js";
export type { SessionOptions } from "./session_options.js";
export type { AnthropicTool, GeminiTool, McpTool, OpenAiTool, ToolDefinitions } from "./tool_definitions.js";
