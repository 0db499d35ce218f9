/** Checks the names of options. */
import { inspect } from "node:util";

import { nearest } from "./nearest.js";

/**
 * Fails at an option with another name: without types, a wrong `timeout` would mean no limit. `names` has all options
 * of the type.
 */
export function checkOptions<Options extends object>(
  of: string,
  options: Options,
  names: Readonly<Record<keyof NoInfer<Options>, true>>,
): void {
  if (typeof options !== "object" || options === null) {
    throw new TypeError(`${of} takes an object with its options, not ${inspect(options)}`);
  }
  const known = Object.keys(names);
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) {
      const meant = nearest(name, known);
      const question = meant === undefined ? "" : `. Did you mean \`${meant}\`?`;
      throw new TypeError(`${of} has no option \`${name}\`; there are: ${known.join(", ")}${question}`);
    }
  }
}
