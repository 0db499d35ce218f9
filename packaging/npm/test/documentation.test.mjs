// Checks the types of the TypeScript examples of the documentation, and runs those that are complete programs.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { scratch } from "./workspace.mjs";

const run = promisify(execFile);
const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
const PAGES = ["README.md", "../../docs/python-and-typescript.md"];

/** What examples use that other parts of their page define. */
const SESSION = 'import { Session } from "toolcrib";\n';
const GIVEN = "declare const session: Session;\ndeclare function glossary(word: string, signal: AbortSignal): Promise<string>;\n";

async function examples() {
  const found = [];
  for (const page of PAGES) {
    const path = join(PACKAGE, page);
    const text = existsSync(path) ? await readFile(path, "utf8") : "";
    for (const [, block] of text.matchAll(/^```ts\n([^]*?)^```/gm)) {
      const imported = [...block.matchAll(/from "([^"]+)"/g)].map(([, name]) => name);
      // The frameworks are tested with their packages.
      if (imported.every((name) => name === "toolcrib")) {
        found.push({ page, block, isProgram: imported.length > 0 });
      }
    }
  }
  return found;
}

test("the examples of the documentation have no type errors, and programs run", async (t) => {
  const all = await examples();
  assert.ok(all.length >= 1);
  // Inside the package, so that its own name resolves.
  const directory = await mkdtemp(join(PACKAGE, "test", ".documentation-"));
  t.after(() => rm(directory, { recursive: true, force: true }));
  await Promise.all(
    all.map(({ block, isProgram }, number) => {
      const declares = /const session\b|using session\b/.test(block);
      const given = isProgram ? "" : SESSION + (declares ? GIVEN.replace(/^declare const session.*\n/, "") : GIVEN);
      return writeFile(join(directory, `example${number}.ts`), `${given}${block}\nexport {};\n`);
    }),
  );
  const options = { noEmit: false, outDir: "js", rootDir: ".", declaration: false, noUnusedLocals: false };
  const config = { extends: "../../tsconfig.json", compilerOptions: options, include: ["*.ts"] };
  await writeFile(join(directory, "tsconfig.json"), JSON.stringify(config));
  await run(join(PACKAGE, "node_modules/.bin/tsc"), ["-p", directory]).catch((error) => assert.fail(error.stdout));
  for (const [number, { page, block, isProgram }] of all.entries()) {
    if (isProgram) {
      const { top, options } = await scratch(t);
      await mkdir(join(top, "project"));
      await writeFile(join(top, "project/README.md"), "TODO: describe it\n");
      const env = { ...process.env, ...options.env };
      const ran = run(process.execPath, [join(directory, `js/example${number}.js`)], { cwd: top, env });
      await ran.catch((error) => assert.fail(`${page}\n${block}\n${error.stderr}`));
    }
  }
});
