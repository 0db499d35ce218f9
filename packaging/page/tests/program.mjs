// Real processes for the tests: `toolcrib page`, and agents that drive `toolcrib serve` with MCP messages.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

/** The program under test. */
export const PROGRAM = process.env.TOOLCRIB_BINARY ?? "toolcrib";

/** A home directory with its own state, rules and sockets, and everything that was started in it. */
export class Home {
  #children = [];

  static async create(rules = "", config = "", root = null) {
    const home = new Home();
    home.root = root === null ? await scratch() : await mkdir(root).then(() => root);
    home.runtime = join(home.root, "run");
    home.rules = join(home.root, "config/toolcrib/rules.toml");
    await mkdir(home.runtime, { mode: 0o700 });
    await mkdir(dirname(home.rules), { recursive: true });
    await writeFile(home.rules, rules);
    await writeFile(join(home.root, "config/toolcrib/config.toml"), config);
    home.env = {
      PATH: process.env.PATH,
      HOME: home.root,
      XDG_RUNTIME_DIR: home.runtime,
      XDG_CONFIG_HOME: join(home.root, "config"),
      XDG_STATE_HOME: join(home.root, "state"),
      XDG_CACHE_HOME: join(home.root, "cache"),
    };
    return home;
  }

  /** A directory for an agent, with files by path. */
  async workspace(name, files = {}) {
    const root = join(this.root, name);
    await mkdir(root, { recursive: true });
    for (const [path, content] of Object.entries(files)) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), content);
    }
    return root;
  }

  async page(...args) {
    const child = this.spawn(["page", "--print", ...args]);
    const address = await firstLine(child);
    return { child, address, origin: new URL(address).origin };
  }

  agent(root, { profile = "workspace", client = "test-agent", capabilities = {}, args = [] } = {}) {
    const child = this.spawn(["serve", "--root", root, "--profile", profile, ...args], root);
    return Agent.start(child, client, capabilities);
  }

  spawn(args, cwd = this.root) {
    const child = spawn(PROGRAM, args, { cwd, env: this.env, stdio: ["pipe", "pipe", "pipe"] });
    child.errors = "";
    child.stderr.on("data", (data) => {
      child.errors = (child.errors + data).slice(-10_000);
    });
    child.on("error", (error) => {
      child.errors = `${PROGRAM}: ${error.message}`;
    });
    child.stdin.on("error", () => undefined);
    this.#children.push(child);
    return child;
  }

  async remove() {
    for (const child of this.#children) {
      await end(child);
    }
    await rm(this.root, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** A new directory. Not in /tmp, which every session has for itself. */
async function scratch() {
  const parent = join(homedir(), ".cache", "toolcrib-page-tests");
  await mkdir(parent, { recursive: true });
  return mkdtemp(join(parent, "home-"));
}

/** Ends a process and waits for it. */
export async function end(child, signal = "SIGTERM") {
  if (child.exitCode === null && child.signalCode === null) {
    const exited = once(child, "exit");
    child.kill(signal);
    await exited;
  }
}

async function firstLine(child) {
  for await (const line of createInterface({ input: child.stdout })) {
    return line.trim();
  }
  throw new Error(`the program ended without a line: ${child.errors}`);
}

/** A small MCP client. */
export class Agent {
  #child;
  #next = 1;
  #pending = new Map();

  static async start(child, name, capabilities) {
    const agent = new Agent();
    agent.#child = child;
    createInterface({ input: child.stdout }).on("line", (line) => agent.#receive(JSON.parse(line)));
    child.on("exit", () => agent.#fail(new Error(`the server ended: ${child.errors}`)));
    const clientInfo = { name, version: "1.0" };
    await agent.request("initialize", { protocolVersion: "2025-06-18", capabilities, clientInfo });
    agent.#send({ method: "notifications/initialized" });
    return agent;
  }

  request(method, params) {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#send({ id, method, params });
    });
  }

  /** Calls a tool. Returns the text of the reply. */
  async call(name, args) {
    const result = await this.request("tools/call", { name, arguments: args });
    return result.content.map((part) => part.text ?? "").join("\n");
  }

  async end(signal = "SIGTERM") {
    await end(this.#child, signal);
  }

  #send(message) {
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  #receive(message) {
    const pending = this.#pending.get(message.id);
    if (!pending || message.method) {
      return;
    }
    this.#pending.delete(message.id);
    if (message.error) {
      pending.reject(new Error(message.error.message));
    } else {
      pending.resolve(message.result);
    }
  }

  #fail(error) {
    for (const pending of this.#pending.values()) {
      pending.reject(error);
    }
    this.#pending.clear();
  }
}
