"""Counts the calls and tokens of twenty questions about code, with and without the structure modes of Toolcrib.

Usage: localisation.py PATH-OF-TOOLCRIB DIRECTORY

DIRECTORY has the projects of definition_sources.json, as definitions.py leaves them. No model is involved: both ways
are fixed procedures. Each ends when the answer is visible in a reply. The answer is found in the files without
Toolcrib's parser, by indentation.

Without the modes, Grep finds the lines, and Read shows windows of lines until the answer is visible. This way is given an
advantage: among several hits it opens the right one at once, and the names of definitions in Grep's replies, which
it must not use, are not counted. A token is taken for four bytes, of arguments and replies.
"""

import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

# Lines that one Read shows, and lines above a hit that it begins with.
WINDOW = 60
ABOVE = 10
BYTES_PER_TOKEN = 4

HEADERS = {
    "rust": r"\b(fn|struct|enum|trait|type|const|static|mod|macro_rules!)\s+{name}\b",
    "python": r"^\s*(class|def|async def)\s+{name}\b",
}
FUNCTIONS = {"rust": r"\bfn\s+\w+", "python": r"^\s*(async )?def\s+\w+"}


@dataclass
class Question:
    """`what` is "where", "show" or "inside"; `subject` a name or a text; `file` the end of the answer's path."""

    what: str
    language: str
    subject: str
    file: str


QUESTIONS = [
    Question("where", "rust", "should_skip_entry", "src/walk.rs"),
    Question("where", "rust", "SummaryKind", "src/summary.rs"),
    Question("where", "rust", "default_decompression_commands", "src/decompress.rs"),
    Question("where", "rust", "onepass::Config", "dfa/onepass.rs"),
    Question("where", "rust", "Searcher::search_path", "searcher/mod.rs"),
    Question("where", "python", "Choice", "click/types.py"),
    Question("where", "python", "Option.prompt_for_value", "click/core.py"),
    Question("show", "rust", "GitignoreBuilder::add_line", "src/gitignore.rs"),
    Question("show", "rust", "WalkBuilder::build_parallel", "src/walk.rs"),
    Question("show", "rust", "IgnoreInner", "src/dir.rs"),
    Question("show", "python", "CliRunner.isolation", "click/testing.py"),
    Question("show", "python", "Parameter.type_cast_value", "click/core.py"),
    Question("show", "python", "style", "click/termui.py"),
    Question("inside", "rust", "trim_start_matches(UTF8_BOM)", "src/gitignore.rs"),
    Question("inside", "rust", 'strip_prefix("./")', "core/haystack.rs"),
    Question("inside", "rust", "memrchr(b'/', bytes)", "src/incremental.rs"),
    Question("inside", "rust", "should_skip_entry(ig, &dent)", "src/walk.rs"),
    Question("inside", "python", "webbrowser.open(", "click/_termui_impl.py"),
    Question("inside", "python", 'os.environ.get("LESS"', "click/_termui_impl.py"),
    Question("inside", "python", "types._NumberRangeBase", "click/core.py"),
]

ASKED = {"where": "which lines define {}", "show": "show {}", "inside": "which function has {}"}


class Unanswered(Exception):
    """A question without the right answer."""


@dataclass
class Answer:
    """A part of a file: the lines of a definition, or the line of the header of a function."""

    path: str
    first: int
    last: int
    # The line that the question is about.
    line: int
    name: str


class Session:
    """A session of `toolcrib run` that counts calls and bytes."""

    def __init__(self, program: str, root: Path, top: str) -> None:
        self.root = root
        Path(top, "config.toml").write_text("")
        command = [program, "run", "--config", f"{top}/config.toml", "--state", f"{top}/state", f"--root={root}:ro"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.calls = self.bytes = 0

    def call(self, tool: str, without_names: bool = False, **args: object) -> str:
        self.calls += 1
        self.process.stdin.write(json.dumps({"id": self.calls, "tool": tool, "args": args}) + "\n")
        self.process.stdin.flush()
        reply = json.loads(self.process.stdout.readline())
        if not reply["success"]:
            raise Unanswered(f"{tool} {args}: {reply['error']}")
        text = reply["output"]
        if without_names:
            lines = text.splitlines(keepends=True)
            text = "".join(line for line in lines if not line.startswith(("[in ", "[top level]")))
        self.bytes += len(json.dumps(args).encode()) + len(text.encode())
        return text

    def take(self) -> tuple[int, int]:
        """The calls and tokens since the last time."""
        taken = (self.calls, round(self.bytes / BYTES_PER_TOKEN))
        self.calls = self.bytes = 0
        return taken

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(60)


# --- answers without a parser ---------------------------------------------------------------------


def indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def last_line(lines: list[str], header: int, language: str) -> int:
    """The last line of a definition, from 1, by its indentation."""
    depth = indentation(lines[header])
    last = header
    for at in range(header + 1, len(lines)):
        line = lines[at]
        if not line.strip():
            continue
        # The end of the header of a function, or of its parameters.
        is_header = re.match(r"\s*(\)|where\b|\{$)", line) and indentation(line) == depth
        if indentation(line) <= depth and not is_header:
            closes = language == "rust" and line.strip().startswith("}")
            return at + 1 if closes else last + 1
        last = at
    return last + 1


def true_answer(root: Path, question: Question) -> Answer:
    tree = root / question.language
    files = [path for path in tree.rglob("*") if path.is_file() and str(path).endswith(f"/{question.file}")]
    found = []
    for path in files:
        lines = path.read_text().split("\n")
        shown = str(path.relative_to(root))
        if question.what == "inside":
            for at, line in enumerate(lines):
                if question.subject in line:
                    header = function_around(lines, at, question.language)
                    name = re.search(r"(?:fn|def)\s+(\w+)", lines[header])[1]
                    found.append(Answer(shown, header + 1, header + 1, at + 1, name))
            continue
        name = re.split(r"::|\.", question.subject)[-1]
        pattern = re.compile(HEADERS[question.language].format(name=name))
        for at, line in enumerate(lines):
            # Overloads of Python have no body.
            if pattern.search(line) and not lines[at - 1].strip().startswith("@t.overload"):
                found.append(Answer(shown, at + 1, last_line(lines, at, question.language), at + 1, name))
    if len(found) != 1:
        raise Unanswered(f"{question}: {len(found)} answers in the files: {found}")
    return found[0]


def function_around(lines: list[str], at: int, language: str) -> int:
    depth = indentation(lines[at])
    while at > 0:
        at -= 1
        # The end of a list of parameters has the indentation of its function.
        is_end = re.match(r"\s*(\)|where\b|\{$)", lines[at])
        if lines[at].strip() and not is_end and indentation(lines[at]) < depth:
            depth = indentation(lines[at])
            if re.search(FUNCTIONS[language], lines[at]):
                return at
    raise Unanswered("no function around it")


# --- the two ways ---------------------------------------------------------------------------------


def without_structure(session: Session, question: Question, answer: Answer) -> None:
    pattern = {"pattern": question.subject, "literal": True}
    if question.what != "inside":
        pattern = {"pattern": HEADERS[question.language].format(name=answer.name)}
    text = session.call("Grep", without_names=True, path=question.language, output_mode="content", **pattern)
    if f"{answer.line}:" not in text or answer.path not in text:
        raise Unanswered(f"{question}: not in {text}")
    if question.what == "inside":
        # Upwards, until the header is visible.
        end = answer.line
        while end >= answer.first:
            start = max(1, end - WINDOW + 1)
            read(session, answer.path, start, end - start + 1)
            end = start - 1
        return
    start = max(1, answer.line - ABOVE)
    while start <= answer.last:
        read(session, answer.path, start, WINDOW)
        start += WINDOW


def read(session: Session, path: str, offset: int, limit: int) -> None:
    session.call("Read", file_path=path, offset=offset, limit=limit)


def with_structure(session: Session, question: Question, answer: Answer) -> None:
    where = {"path": question.language}
    if question.what == "inside":
        text = session.call("Grep", pattern=question.subject, literal=True, output_mode="content", **where)
        headings = re.findall(rf"^\[in (.*)\]\n(?:.*\n)*?{answer.line}:", text, re.MULTILINE)
        if not headings or not headings[-1].endswith(f" {answer.name}"):
            raise Unanswered(f"{question}: {answer.name} is not in {text}")
        return
    text = session.call("Grep", pattern=question.subject, output_mode="definitions", **where)
    lines = f"{answer.first}-{answer.last}: "
    if answer.path not in text or not has_lines(text, answer):
        raise Unanswered(f"{question}: {answer.path} {lines} is not in {text}")
    if question.what == "show":
        text = session.call("Read", file_path=answer.path, symbol=question.subject)
        if not re.search(rf"^\s*{answer.last}\t", text, re.MULTILINE):
            raise Unanswered(f"{question}: line {answer.last} is not in {text}")


def has_lines(text: str, answer: Answer) -> bool:
    """Whether a list of definitions has the answer. Decorators and attributes come before the line of the name."""
    ranges = re.findall(r"^(\d+)(?:-(\d+))?: ", text, re.MULTILINE)
    return any(int(first) <= answer.first and int(last or first) == answer.last for first, last in ranges)


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    root = Path(sys.argv[2], "sources").resolve()
    rows, sums = [], [0, 0, 0, 0]
    with tempfile.TemporaryDirectory() as top:
        session = Session(sys.argv[1], root, top)
        try:
            for question in QUESTIONS:
                answer = true_answer(root, question)
                without_structure(session, question, answer)
                plain = session.take()
                with_structure(session, question, answer)
                structured = session.take()
                figures = [*plain, *structured]
                sums = [before + one for before, one in zip(sums, figures)]
                rows.append((ASKED[question.what].format(f"`{question.subject}`"), figures))
        except Unanswered as why:
            sys.exit(str(why))
        finally:
            session.close()
    rows.append(("all", sums))
    table = "| question | calls without | tokens | calls with | tokens |\n| --- | --: | --: | --: | --: |\n"
    for asked, figures in rows:
        table += f"| {asked} | " + " | ".join(f"{figure:,}" for figure in figures) + " |\n"
    Path(sys.argv[2], "localisation.md").write_text(table)
    print(table)


if __name__ == "__main__":
    main()
