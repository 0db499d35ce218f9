/** Finds the program that this package starts. */
import { createRequire } from "node:module";

const platform = `@toolcrib/${process.platform}-${process.arch}`;

/**
 * The path of the program: `TOOLCRIB_BINARY`, or the one in the package for this platform, which npm installs as an
 * optional dependency.
 */
export function findProgram(): string {
  const given = process.env["TOOLCRIB_BINARY"];
  if (given) {
    return given;
  }
  try {
    return createRequire(import.meta.url).resolve(`${platform}/bin/toolcrib`);
  } catch {
    throw new Error(
      `the package ${platform} is not installed. Toolcrib runs on Linux (x64, arm64). ` +
        "If optional dependencies were left out (--omit=optional), install it again with them.",
    );
  }
}
