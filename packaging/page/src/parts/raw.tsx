// Text from files, commands and models. It is always text, never markup.

import { visiblePieces } from "../text/visible_text";
import { useState } from "preact/hooks";

interface RawProps {
  text: string;
  /** Keeps line feeds and tabs as layout. */
  layout?: boolean;
}

/** Longer text is cut in lists and diffs until a person asks for it. */
const SHOWN_AT_FIRST = 2_000;

export function Raw({ text, layout = false }: RawProps) {
  const pieces = visiblePieces(text, layout);
  return (
    <>
      {pieces.map((piece) =>
        piece.escaped === undefined ? piece.text : <span class="escaped" title={piece.escaped}>{piece.text}</span>)}
    </>
  );
}

/** Raw text that may be a megabyte long on one line. */
export function LongRaw({ text, layout = false }: RawProps) {
  const [whole, setWhole] = useState(false);
  if (whole || text.length <= SHOWN_AT_FIRST + 200) {
    return <Raw text={text} layout={layout} />;
  }
  const end = endAtCharacter(text, SHOWN_AT_FIRST);
  return (
    <>
      <Raw text={text.slice(0, end)} layout={layout} />
      <button type="button" class="more" onClick={() => setWhole(true)}>
        … {(text.length - end).toLocaleString()} more characters
      </button>
    </>
  );
}

/** Does not end inside a surrogate pair. */
function endAtCharacter(text: string, end: number): number {
  const code = text.charCodeAt(end - 1);
  return code >= 0xd800 && code <= 0xdbff ? end - 1 : end;
}
