// Makes control, bidirectional and invisible characters visible.

export interface Piece {
  text: string;
  /** The name of an escaped character; absent for plain text. */
  escaped?: string;
}

/**
 * Other (control, format, surrogate, private, unassigned), separators except the space, and characters that are drawn
 * as nothing. A tab and a line feed are left to the caller.
 */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}\p{DI}\u2800]|(?! )\p{Zs}/gu;
const LAYOUT = new Set(["\n", "\t"]);

const NAMES: Record<number, string> = {
  0x00: "null", 0x07: "bell", 0x08: "backspace", 0x09: "tab", 0x0a: "line feed", 0x0d: "carriage return",
  0x1b: "escape", 0x7f: "delete", 0xa0: "no-break space", 0xad: "soft hyphen", 0x61c: "Arabic letter mark",
  0x200b: "zero width space", 0x200c: "zero width non-joiner", 0x200d: "zero width joiner",
  0x200e: "left-to-right mark", 0x200f: "right-to-left mark", 0x2028: "line separator", 0x2029: "paragraph separator",
  0x202a: "left-to-right embedding", 0x202b: "right-to-left embedding", 0x202c: "pop directional formatting",
  0x202d: "left-to-right override", 0x202e: "right-to-left override", 0x2060: "word joiner",
  0x2066: "left-to-right isolate", 0x2067: "right-to-left isolate", 0x2068: "first strong isolate",
  0x2069: "pop directional isolate", 0x3164: "Hangul filler", 0xfeff: "byte order mark",
};

/** The text in pieces. `keepLayout` leaves tabs and line feeds in plain text. */
export function visiblePieces(text: string, keepLayout: boolean): Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(INVISIBLE)) {
    const char = match[0];
    if (keepLayout && LAYOUT.has(char)) {
      continue;
    }
    if (match.index > from) {
      pieces.push({ text: text.slice(from, match.index) });
    }
    pieces.push(escapedPiece(char));
    from = match.index + char.length;
  }
  if (from < text.length) {
    pieces.push({ text: text.slice(from) });
  }
  return pieces;
}

/** The text on one line with all such characters escaped, for attributes and notifications. */
export function visibleText(text: string): string {
  return visiblePieces(text, false).map((piece) => piece.text).join("");
}

function escapedPiece(char: string): Piece {
  const code = char.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  const short: Record<string, string> = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0" };
  const text = short[char] ?? (code < 0x100 ? `\\x${hex.padStart(2, "0")}` : `\\u{${hex}}`);
  return { text, escaped: NAMES[code] ?? `U+${hex.toUpperCase().padStart(4, "0")}` };
}
