/** Finds the program that this package starts. */
import { accessSync, constants, existsSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";

const platform = `@toolcrib/${process.platform}-${process.arch}`;

/**
 * The path of the program: `TOOLCRIB_BINARY`, the one in the package for this platform, which npm installs as an
 * optional dependency, or the one in `PATH`.
 */
export function findProgram(): string {
  const given = process.env["TOOLCRIB_BINARY"];
  if (given) {
    if (!existsSync(given)) {
      throw new Error(`TOOLCRIB_BINARY names no file: ${given}`);
    }
    return given;
  }
  try {
    return createRequire(import.meta.url).resolve(`${platform}/bin/toolcrib`);
  } catch {
    const found = programInPath();
    if (found !== undefined) {
      return found;
    }
    throw new Error(
      `the package ${platform} is not installed, and there is no toolcrib in PATH. Toolcrib runs on Linux (x64, arm64). ` +
        "If optional dependencies were left out (--omit=optional), install it again with them, " +
        "or name the program with TOOLCRIB_BINARY or the option binary.",
    );
  }
}

/** The program in `PATH`. The script of this package, which npm puts there too, would start itself. */
function programInPath(): string | undefined {
  for (const directory of (process.env["PATH"] ?? "").split(delimiter)) {
    if (!directory) {
      continue;
    }
    const path = join(directory, "toolcrib");
    try {
      accessSync(path, constants.X_OK);
      if (!realpathSync(path).endsWith(".js")) {
        return path;
      }
    } catch {
      // Not there.
    }
  }
  return undefined;
}
