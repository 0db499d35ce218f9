/** Suggestions for names that do not exist. */

/** The known name that was probably meant: the closest of those that differ in few letters or only in their ends. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const word = plain(name);
  const ranked = known
    .map((one) => ({ one, distance: distance(word, plain(one)) }))
    .filter(({ one, distance }) => distance <= word.length / 3 || extendsOther(word, plain(one)))
    .sort((left, right) => left.distance - right.distance);
  return ranked[0]?.one;
}

function plain(name: string): string {
  return name.toLowerCase().replace(/[_-]/g, "");
}

function extendsOther(left: string, right: string): boolean {
  return Math.min(left.length, right.length) >= 3 && (left.startsWith(right) || right.startsWith(left));
}

/** The number of letters to insert, remove or replace. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [done, letter] of [...from].entries()) {
    const above = row;
    row = [done + 1];
    for (let at = 0; at < to.length; at += 1) {
      const replaced = above[at]! + (letter === to[at] ? 0 : 1);
      row.push(Math.min(replaced, above[at + 1]! + 1, row[at]! + 1));
    }
  }
  return row[to.length]!;
}
