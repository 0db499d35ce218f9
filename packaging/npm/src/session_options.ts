/** The options of a session, and the command line that they stand for. */
import type { Approver } from "./approval.js";
import type { Launch } from "./connection.js";
import type { OwnTool } from "./own_tools.js";
import { checkOptions } from "./options.js";
import { findProgram } from "./program.js";

export interface SessionOptions {
  /** The directories that tools and commands may change. `DIR:ro` is read-only. Default: the working directory. */
  root?: string | readonly string[];
  /** Default `workspace`. */
  profile?: "read-only" | "cautious" | "workspace" | "open";
  /** Access of file tools to paths outside the roots. */
  outside?: "read" | "ask" | "deny";
  /** Network access of commands. Default: the configuration. */
  network?: "none" | "list" | "all";
  /** Names of the tools to offer. Default: all that the profile can allow. */
  tools?: readonly string[];
  /** Names of tools to exclude. */
  excludeTools?: readonly string[];
  /** Tools that this process runs. They are in `tools()`, and `call` and the policy treat them like the others. */
  ownTools?: readonly OwnTool[];
  /** The rules file. */
  rules?: string;
  /** The configuration file. */
  config?: string;
  /** The directory of the journal and the index. */
  state?: string;
  /** Answers approval questions. Without it, a call that needs approval is denied. */
  approver?: Approver;
  /** Variables that are added to the environment of the program; `undefined` removes one. */
  env?: Readonly<Record<string, string | undefined>>;
  /** The program. Default: `TOOLCRIB_BINARY`, or the one of this package. */
  binary?: string;
  /** More arguments for the program. */
  extraArgs?: readonly string[];
  /** Whether a request starts the program again after it has ended. Default true. */
  restart?: boolean;
  /** Is told that the program ended and was started again. Its jobs and its `/tmp` are lost. */
  onRestart?: () => void;
}

/** The names of all options. */
const NAMES: Readonly<Record<keyof SessionOptions, true>> = {
  root: true,
  profile: true,
  outside: true,
  network: true,
  tools: true,
  excludeTools: true,
  ownTools: true,
  rules: true,
  config: true,
  state: true,
  approver: true,
  env: true,
  binary: true,
  extraArgs: true,
  restart: true,
  onRestart: true,
};

export function launchOf(options: SessionOptions): Launch {
  checkOptions("Session.open", options, NAMES);
  return {
    roots: rootsOf(options),
    program: options.binary ?? findProgram(),
    args: programArguments(options),
    env: { ...process.env, ...options.env },
  };
}

function rootsOf({ root = ["."] }: SessionOptions): readonly string[] {
  return typeof root === "string" ? [root] : root;
}

function programArguments(options: SessionOptions): string[] {
  const single = [
    ["--profile", options.profile],
    ["--outside", options.outside],
    ["--network-access", options.network],
    ["--tools", options.tools?.join(",")],
    ["--no-tools", options.excludeTools?.join(",")],
    ["--rules", options.rules],
    ["--config", options.config],
    ["--state", options.state],
  ] as const;
  return [
    ...rootsOf(options).flatMap((root) => ["--root", root]),
    ...single.flatMap(([flag, value]) => (value === undefined ? [] : [flag, value])),
    ...(options.extraArgs ?? []),
    "run",
    ...(options.approver ? ["--approvals"] : []),
  ];
}
