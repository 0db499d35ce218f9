// A scratch workspace and a session in it, for one test.
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

import { Session } from "../dist/index.js";

if (!process.env.TOOLCRIB_BINARY) {
  throw new Error("set TOOLCRIB_BINARY to the program that the tests run");
}

/** Options that keep a session away from the configuration and the journal of the user. */
export async function scratch(context, files = {}) {
  // Not in /tmp or /var/tmp, of which a session has its own.
  const top = await realpath(await mkdtemp(join(homedir(), ".toolcrib-npm-")));
  const sessions = [];
  // One hook, because a session must end before its directory is removed.
  context.after(async () => {
    await Promise.all(sessions.map((session) => session.close()));
    await rm(top, { recursive: true, force: true, maxRetries: 10 });
  });
  const root = join(top, "root");
  await mkdir(root);
  await mkdir(join(top, "home"));
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(root, name)), { recursive: true });
    await writeFile(join(root, name), content);
  }
  const home = { HOME: join(top, "home"), XDG_CONFIG_HOME: undefined, XDG_STATE_HOME: undefined };
  return { top, root, sessions, options: { root, env: home } };
}

/** A session that is closed when the test ends. */
export async function open(context, files, more = {}) {
  const { top, root, sessions, options } = await scratch(context, files);
  const session = await Session.open({ ...options, ...more, env: { ...options.env, ...more.env } });
  sessions.push(session);
  return { top, root, session };
}
