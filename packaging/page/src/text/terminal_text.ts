// Output of a command as lines: carriage returns and backspaces applied, colours kept, all other escapes dropped.
//
// Memory is bounded: old lines and the ends of very long lines are dropped and counted.

export interface Run {
  text: string;
  /** A class of the colour, or empty. */
  style: string;
}

export interface Line {
  number: number;
  runs: Run[];
  /** Characters of the line that are not kept. */
  cut: number;
}

const LINE_LIMIT = 2_000;
const LINE_LENGTH = 4_000;
const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/** ESC and what follows: CSI, OSC and other strings, two-character sequences. */
const ESCAPE = /^\x1b(?:\[([0-9:;<=>?]*)[ -/]*([@-~])|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])/;
const UNFINISHED = /^\x1b(?:\[[0-9:;<=>? -/]{0,64}|[\]PX^_][^\x07\x1b]{0,4096}\x1b?|[ -/]{0,8})?$/;

export class TerminalText {
  #lines: Line[] = [];
  #number = 1;
  #cells: string[] = [];
  #styles: string[] = [];
  #column = 0;
  #overflow = 0;
  #style = "";
  #bold = false;
  #colour = "";
  #rest = "";

  push(text: string): void {
    const input = this.#rest + text;
    this.#rest = "";
    let at = 0;
    while (at < input.length) {
      const special = nextSpecial(input, at);
      this.#write(input.slice(at, special));
      at = special;
      if (at < input.length) {
        const length = this.#control(input, at);
        if (length === 0) {
          this.#rest = input.slice(at);
          return;
        }
        at += length;
      }
    }
  }

  /** Counts the lines of a text that is not kept. */
  skip(text: string): void {
    if (text !== "") {
      this.#lines = [];
      this.#rest = "";
      this.#newLine();
      this.#lines = [];
      this.#number += text.split("\n").length - 2;
    }
  }

  /** All kept lines, the unfinished one included. */
  lines(): Line[] {
    return this.#cells.length > 0 || this.#overflow > 0 ? [...this.#lines, this.#line()] : this.#lines.slice();
  }

  #control(input: string, at: number): number {
    switch (input[at]) {
      case "\n":
        this.#newLine();
        return 1;
      case "\r":
        this.#column = 0;
        return 1;
      case "\b":
        this.#column = Math.max(0, this.#column - 1);
        return 1;
      default:
        return this.#escape(input.slice(at, at + 4_200));
    }
  }

  /** Handles an escape sequence. Returns its length, or 0 if its end has not arrived. */
  #escape(text: string): number {
    const match = ESCAPE.exec(text);
    if (!match) {
      if (UNFINISHED.test(text)) {
        return 0;
      }
      this.#write("\x1b");
      return 1;
    }
    if (match[2] === "m") {
      this.#select(match[1] ?? "");
    } else if (match[2] === "K") {
      this.#cells.length = Math.min(this.#cells.length, this.#column);
      this.#styles.length = this.#cells.length;
    }
    return match[0].length;
  }

  #select(parameters: string): void {
    const codes = parameters.split(/[;:]/).map(Number);
    for (let at = 0; at < codes.length; at += 1) {
      const code = codes[at] ?? 0;
      if (code === 0) {
        this.#bold = false;
        this.#colour = "";
      } else if (code === 1 || code === 22) {
        this.#bold = code === 1;
      } else if (code === 38 || code === 48) {
        at += codes[at + 1] === 5 ? 2 : 4;
      } else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) {
        this.#colour = `ansi-${COLOURS[code % 10]}`;
      } else if (code === 39) {
        this.#colour = "";
      }
    }
    this.#style = [this.#colour, this.#bold ? "ansi-bold" : ""].filter(Boolean).join(" ");
  }

  #write(text: string): void {
    for (const char of text) {
      if (this.#column >= LINE_LENGTH) {
        this.#overflow += 1;
        continue;
      }
      this.#cells[this.#column] = char;
      this.#styles[this.#column] = this.#style;
      this.#column += 1;
    }
  }

  #newLine(): void {
    this.#lines.push(this.#line());
    this.#number += 1;
    this.#cells = [];
    this.#styles = [];
    this.#column = 0;
    this.#overflow = 0;
    // Half at a time, so that the lines are not moved for every new one.
    if (this.#lines.length > 2 * LINE_LIMIT) {
      this.#lines = this.#lines.slice(-LINE_LIMIT);
    }
  }

  #line(): Line {
    const runs: Run[] = [];
    let run: Run | null = null;
    for (let at = 0; at < this.#cells.length; at += 1) {
      const style = this.#styles[at] ?? "";
      const char = this.#cells[at] ?? " ";
      if (run && run.style === style) {
        run.text += char;
      } else {
        run = { text: char, style };
        runs.push(run);
      }
    }
    return { number: this.#number, runs, cut: this.#overflow };
  }
}

function nextSpecial(text: string, from: number): number {
  for (let at = from; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x0a || code === 0x0d || code === 0x08 || code === 0x1b) {
      return at;
    }
  }
  return text.length;
}
