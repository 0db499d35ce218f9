// Installs each framework by name and runs the test of its adapter: node frameworks/run.mjs [NAME...]
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const packageRoot = fileURLToPath(new URL("..", import.meta.url));
const NEWER_NODE = "24";

function run(program, words, cwd) {
  const { status, error } = spawnSync(program, words, { cwd, stdio: "inherit" });
  if (error) {
    throw error;
  }
  return status === 0;
}

function mustRun(program, words, cwd) {
  if (!run(program, words, cwd)) {
    throw new Error(`${program} ${words.join(" ")} failed`);
  }
}

const install = ["install", "--no-audit", "--no-fund", "--silent"];

/** A Node that the framework accepts: this one, or a newer one from npm. */
function nodeFor(manifest) {
  const wanted = Number(/\d+/.exec(manifest.engines?.node ?? "0")[0]);
  if (Number(process.versions.node.split(".")[0]) >= wanted) {
    return process.execPath;
  }
  const name = `node-linux-${process.arch}`;
  const place = `${here}.node`;
  if (!existsSync(`${place}/node_modules/${name}/bin/node`)) {
    mkdirSync(place, { recursive: true });
    writeFileSync(`${place}/package.json`, "{}\n");
    mustRun("npm", [...install, `${name}@${NEWER_NODE}`], place);
  }
  return `${place}/node_modules/${name}/bin/node`;
}

/** Puts this package where npm would put it. A link would not find the framework. */
function installToolcrib(directory) {
  const target = `${directory}/node_modules/toolcrib`;
  rmSync(target, { recursive: true, force: true });
  for (const part of ["package.json", "bin", "dist"]) {
    cpSync(`${packageRoot}${part}`, `${target}/${part}`, { recursive: true });
  }
}

function checkTypes(directory) {
  const options = "--ignoreConfig --noEmit --strict --skipLibCheck --target es2023 --module nodenext --moduleResolution nodenext";
  const types = ["--types", "node", "--typeRoots", `${packageRoot}node_modules/@types`];
  return run(`${packageRoot}node_modules/.bin/tsc`, [...options.split(" "), ...types, "types.ts"], directory);
}

function test(name) {
  const directory = `${here}${name}`;
  const manifest = JSON.parse(readFileSync(`${directory}/package.json`, "utf8"));
  mustRun("npm", install, directory);
  installToolcrib(directory);
  const passed = run(nodeFor(manifest), ["--test", "test.mjs"], directory);
  return checkTypes(directory) && passed;
}

if (!process.env.TOOLCRIB_BINARY) {
  throw new Error("set TOOLCRIB_BINARY to the program that the tests run");
}
const all = readdirSync(here).filter((name) => existsSync(`${here}${name}/test.mjs`));
const names = process.argv.length > 2 ? process.argv.slice(2) : all;
const failed = names.filter((name) => {
  console.log(`== ${name}`);
  return !test(name);
});
console.log(failed.length === 0 ? `passed: ${names.join(", ")}` : `failed: ${failed.join(", ")}`);
process.exitCode = failed.length === 0 ? 0 : 1;
