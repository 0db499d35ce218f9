// Live output of a command. It is pulled a few times a second, so a fast command cannot flood the tab.

import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, getOutput } from "../api";
import { TerminalText, type Line } from "../text/terminal_text";
import { bytes, plural } from "../text/format";
import { Raw } from "./raw";

const PULL_MS = 250;
const RETRY_MS = 2_000;
const PARTS_PER_PULL = 16;
/** If even so many parts do not reach the end, only this much of them is drawn. */
const DRAWN_PER_PULL = 256 * 1024;
const PART_BYTES = 32 * 1024;
const SHOWN_LINES = 1_500;
const BLOCK = 100;

interface Shown {
  lines: Line[];
  omittedLines: number;
  droppedBytes: number;
  ended: boolean;
  gone: boolean;
}

export function LiveOutput({ call, running }: { call: string; running: boolean }) {
  const [shown, setShown] = useState<Shown | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const follows = useRef(true);

  useEffect(() => pull(call, running, setShown), [call, running]);
  useEffect(() => {
    if (follows.current && box.current) {
      box.current.scrollTop = box.current.scrollHeight;
    }
  }, [shown]);

  const onScroll = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current ?? document.body;
    follows.current = scrollHeight - scrollTop - clientHeight < 24;
  };
  if (shown?.gone && shown.lines.length === 0) {
    return <p class="quiet">The output is not kept any more.</p>;
  }
  const dropped = shown?.droppedBytes ?? 0;
  return (
    <div class="output">
      <div class="output-box code" ref={box} onScroll={onScroll} tabIndex={0} role="group" aria-label="Output">
        {dropped > 0 ? <p class="output-note">{bytes(dropped)} of output were dropped</p> : null}
        {(shown?.omittedLines ?? 0) > 0 ? <p class="output-note">{plural(shown?.omittedLines ?? 0, "earlier line")} not shown</p> : null}
        {blocks(shown?.lines ?? []).map((block) => <Block key={block[0]?.number} lines={block} />)}
        {shown && shown.lines.length === 0 ? <p class="output-note">{shown.ended ? "No output" : "No output yet"}</p> : null}
      </div>
    </div>
  );
}

function Block({ lines }: { lines: Line[] }) {
  return (
    <div class="output-block">
      {lines.map((line) => (
        <div class="output-line">
          {line.runs.map((run) => run.style === "" ? <Raw text={run.text} layout /> : <span class={run.style}><Raw text={run.text} layout /></span>)}
          {line.cut > 0 ? <span class="output-note">… {line.cut.toLocaleString()} more characters</span> : null}
        </div>
      ))}
    </div>
  );
}

/** Whole blocks of line numbers, so that only the last block changes. */
function blocks(lines: Line[]): Line[][] {
  const result: Line[][] = [];
  let last = -1;
  for (const line of lines) {
    const block = Math.floor(line.number / BLOCK);
    if (block !== last) {
      result.push([]);
      last = block;
    }
    result.at(-1)?.push(line);
  }
  return result;
}

/** Pulls until the command has ended. Returns a function that stops. */
function pull(call: string, running: boolean, show: (shown: Shown) => void): () => void {
  const text = new TerminalText();
  let from = 0;
  let dropped = 0;
  let stopped = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const publish = (ended: boolean, gone: boolean) => {
    const all = text.lines();
    const lines = all.slice(-SHOWN_LINES);
    show({ lines, omittedLines: (lines[0]?.number ?? 1) - 1, droppedBytes: dropped, ended, gone });
  };
  const turn = async (): Promise<boolean> => {
    let backlog = "";
    let ended = false;
    let behind = true;
    for (let part = 0; part < PARTS_PER_PULL && !ended; part += 1) {
      const reply = await getOutput(call, from);
      if (stopped) {
        return true;
      }
      dropped += reply.dropped;
      const size = reply.next - from;
      from = reply.next;
      backlog += reply.text;
      ended = reply.ended && reply.text === "";
      if (!reply.ended && size < PART_BYTES) {
        behind = false;
        break;
      }
    }
    const end = behind && backlog.length > DRAWN_PER_PULL ? backlog.indexOf("\n", backlog.length - DRAWN_PER_PULL) + 1 : 0;
    text.skip(backlog.slice(0, end));
    text.push(backlog.slice(end));
    return ended;
  };
  const loop = async () => {
    try {
      const ended = document.hidden ? false : await turn();
      if (stopped) {
        return;
      }
      publish(ended, false);
      if (!ended) {
        timer = setTimeout(() => void loop(), PULL_MS);
      }
    } catch (error) {
      const missing = error instanceof ApiError && error.status === 404;
      // The command of a running call may not have started yet.
      if (!stopped && missing && !running) {
        publish(true, true);
      } else if (!stopped) {
        timer = setTimeout(() => void loop(), missing ? PULL_MS : RETRY_MS);
      }
    }
  };
  void loop();
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}
