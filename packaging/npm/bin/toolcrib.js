#!/usr/bin/env node
// Starts the program out of the package for this platform, which npm installs as an optional dependency.
"use strict";

const { spawn } = require("node:child_process");

const platform = `@toolcrib/${process.platform}-${process.arch}`;

function fail(message) {
  console.error(`toolcrib: ${message}`);
  process.exit(1);
}

function findProgram() {
  try {
    return require.resolve(`${platform}/bin/toolcrib`);
  } catch {
    return fail(
      `the package ${platform} is not installed. Toolcrib runs on Linux (x64, arm64). ` +
        "If optional dependencies were left out (--omit=optional), install it again with them.",
    );
  }
}

const program = spawn(findProgram(), process.argv.slice(2), { stdio: "inherit" });

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    // A terminal sends Ctrl-C to both of us.
    if (signal !== "SIGINT" || !process.stdin.isTTY) {
      program.kill(signal);
    }
  });
}

program.on("error", (error) => fail(error.message));
program.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exitCode = code;
  }
});
