// Builds the app into crates/page/assets. With --check, only compares: the committed files must be current.

import { readFile, writeFile, mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";
import * as esbuild from "esbuild";

const SOURCE = new URL("src/", import.meta.url);
const TARGET = new URL("../../crates/page/assets/", import.meta.url);
const FIRST_LOAD_LIMIT = 60_000;

const settings = {
  absWorkingDir: fileURLToPath(new URL(".", import.meta.url)),
  bundle: true,
  minify: true,
  write: false,
  target: ["chrome123", "firefox128", "safari17.5"],
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
};

async function bundle(entry, options) {
  const result = await esbuild.build({ ...settings, ...options, entryPoints: [entry] });
  return result.outputFiles[0].contents;
}

async function files() {
  return {
    "index.html": await readFile(new URL("index.html", SOURCE)),
    "favicon.svg": await readFile(new URL("favicon.svg", SOURCE)),
    "app.css": await bundle("src/styles/page.css", {}),
    "app.js": await bundle("src/main.tsx", { format: "esm", jsx: "automatic", jsxImportSource: "preact" }),
    "worker.js": await bundle("src/worker/worker.ts", { format: "iife" }),
  };
}

const built = await files();
let firstLoad = 0;
for (const [name, content] of Object.entries(built)) {
  const gzip = gzipSync(content, { level: 9 }).length;
  firstLoad += gzip;
  console.log(`${name.padEnd(12)} ${String(content.length).padStart(7)} B, gzip ${gzip} B, brotli ${brotliCompressSync(content).length} B`);
}
if (firstLoad > FIRST_LOAD_LIMIT) {
  throw new Error(`the first load is ${firstLoad} B compressed, more than ${FIRST_LOAD_LIMIT} B`);
}

if (process.argv.includes("--check")) {
  for (const [name, content] of Object.entries(built)) {
    const committed = await readFile(new URL(name, TARGET)).catch(() => null);
    if (!committed?.equals(content)) {
      throw new Error(`crates/page/assets/${name} is not current: run \`npm run build\` in packaging/page`);
    }
  }
  console.log("crates/page/assets is current");
} else {
  await mkdir(TARGET, { recursive: true });
  for (const [name, content] of Object.entries(built)) {
    await writeFile(new URL(name, TARGET), content);
  }
}
