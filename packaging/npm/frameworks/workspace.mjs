// A scratch workspace with one file, and a session in it.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export async function open(context, Session, more = {}) {
  const top = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-framework-")));
  const root = join(top, "root");
  mkdirSync(root);
  mkdirSync(join(top, "home"));
  writeFileSync(join(root, "a.txt"), "one\ntwo\n");
  const session = await Session.open({ root, env: { HOME: join(top, "home"), XDG_STATE_HOME: undefined }, ...more });
  context.after(async () => {
    await session.close();
    rmSync(top, { recursive: true, force: true });
  });
  return { session, root };
}
