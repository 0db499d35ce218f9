#!/usr/bin/env node
// Starts the program out of the package for this platform.
import { spawn } from "node:child_process";

import { findProgram } from "../dist/program.js";

function fail(message) {
  console.error(`toolcrib: ${message}`);
  process.exit(1);
}

function start() {
  try {
    return spawn(findProgram(), process.argv.slice(2), { stdio: "inherit" });
  } catch (error) {
    return fail(error.message);
  }
}

const program = start();

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
