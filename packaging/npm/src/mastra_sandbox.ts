/** The commands of a session in the form of Mastra's WorkspaceSandbox. */
import { shellExitCode } from "./adapter_files.js";
import type { Exit } from "./command.js";
import { fromPackage } from "./framework.js";
import type { Process } from "./running_process.js";
import type { Session } from "./session.js";

interface CommandOptions {
  timeout?: number;
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  onStdout?: (text: string) => void;
  onStderr?: (text: string) => void;
  abortSignal?: AbortSignal;
  stdinMode?: "pipe" | "ignore";
}

interface CommandResult {
  success: boolean;
  exitCode: number;
  stdout: string;
  stderr: string;
  executionTimeMs: number;
  timedOut: boolean;
  killed: boolean;
}

type Workspace = typeof import("@mastra/core/workspace");

/** Makes the sandbox for `new Workspace({ sandbox })`. Its processes end with the session. */
// `any`: the class is made from Mastra's.
export async function sandbox(session: Session): Promise<any> {
  const workspace = await fromPackage("@mastra/core", () => import("@mastra/core/workspace"));
  const info = await session.info();
  const Processes = processManager(workspace, session);
  class ToolcribSandbox extends workspace.MastraSandbox {
    readonly id = "toolcrib";
    readonly name = "Toolcrib";
    readonly provider = "toolcrib";
    override status = "pending";

    constructor() {
      super({ name: "Toolcrib", processes: new Processes() });
    }

    async start(): Promise<void> {
      await session.info();
    }

    async executeCommand(command: string, args: string[] = [], options: CommandOptions = {}): Promise<CommandResult> {
      const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
      const pass = (name: "stdout" | "stderr", callback: ((text: string) => void) | undefined) =>
        callback && ((chunk: Uint8Array) => callback(decoders[name].decode(chunk, { stream: true })));
      const done = await session.exec([command, ...args.map(quoted)].join(" "), {
        ...commandOptions(options),
        onStdout: pass("stdout", options.onStdout),
        onStderr: pass("stderr", options.onStderr),
      });
      return resultOf(done, done.stdoutText, done.stderrText);
    }

    getInstructions(): string {
      const { name, level } = info.sandbox;
      return (
        `Commands run with bash in ${info.roots[0]} and can change files only below ${info.roots.join(", ")} ` +
        `and in /tmp. Confinement: ${name} (level ${level}).`
      );
    }

    getInfo(): unknown {
      const { id, name, provider, status } = this;
      return { id, name, provider, status, createdAt: new Date(), metadata: { ...info.sandbox, version: info.version } };
    }
  }
  return new ToolcribSandbox();
}

function processManager(workspace: Workspace, session: Session) {
  const Handle = processHandle(workspace);
  let last = 0;
  return class extends workspace.SandboxProcessManager {
    async spawn(command: string, options: CommandOptions = {}) {
      const stdin = options.stdinMode === "ignore" ? "none" : "open";
      const process = await session.spawn(command, { ...commandOptions(options), stdin });
      last += 1;
      const handle = new Handle(String(last), command, process, options);
      this._tracked.set(handle.pid, handle);
      return handle;
    }

    async list() {
      const handles = [...this._tracked.values()] as InstanceType<typeof Handle>[];
      return handles.map(({ pid, command, exitCode }) => ({
        pid,
        command,
        running: exitCode === undefined,
        ...(exitCode === undefined ? {} : { exitCode }),
      }));
    }
  };
}

function processHandle(workspace: Workspace) {
  return class extends workspace.ProcessHandle {
    readonly pid: string;
    readonly command: string;
    exitCode: number | undefined;
    readonly #process: Process;
    readonly #result: Promise<CommandResult>;

    constructor(pid: string, command: string, process: Process, options: CommandOptions) {
      super(options);
      this.pid = pid;
      this.command = command;
      this.#process = process;
      this.#result = this.#follow();
      // Whoever waits gets the error.
      this.#result.catch(() => {});
    }

    async kill(): Promise<boolean> {
      const { running } = this.#process;
      await this.#process.kill();
      return running;
    }

    sendStdin(data: string): Promise<void> {
      return this.#process.stdin.write(data);
    }

    closeStdin(): Promise<void> {
      return this.#process.stdin.close();
    }

    // The base class adds callbacks and the signal.
    async wait(): Promise<CommandResult> {
      return this.#result;
    }

    async #follow(): Promise<CommandResult> {
      const both = Promise.all([
        this.#pass(this.#process.stdout.textParts(), (text) => this.emitStdout(text)),
        this.#pass(this.#process.stderr.textParts(), (text) => this.emitStderr(text)),
      ]);
      try {
        const exit = await this.#process.wait();
        await both;
        this.exitCode = shellExitCode(exit);
        return resultOf(exit, this.stdout, this.stderr);
      } catch (error) {
        await both.catch(() => {});
        this.exitCode ??= 137;
        throw error;
      }
    }

    async #pass(texts: AsyncIterable<string>, emit: (text: string) => void): Promise<void> {
      for await (const text of texts) {
        emit(text);
      }
    }
  };
}

function commandOptions({ cwd, env, timeout, abortSignal }: CommandOptions) {
  const defined = Object.entries(env ?? {}).filter((pair): pair is [string, string] => pair[1] !== undefined);
  return { cwd, env: Object.fromEntries(defined), timeoutMs: timeout, signal: abortSignal };
}

function resultOf(exit: Exit, stdout: string, stderr: string): CommandResult {
  return {
    success: exit.exitCode === 0,
    exitCode: shellExitCode(exit),
    stdout,
    stderr,
    executionTimeMs: exit.durationMs,
    timedOut: exit.timedOut,
    killed: exit.signal !== null,
  };
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
