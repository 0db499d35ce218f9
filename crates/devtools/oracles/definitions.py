"""Compares Toolcrib's definitions with those of universal-ctags and of language servers, on real projects.

Usage: definitions.py PROGRAM DIRECTORY TYPESCRIPT-SERVER [--smoke]

PROGRAM is the example `definitions` of crates/syntax. The projects of definition_sources.json are kept in DIRECTORY,
and so are the results: `report.md` and `disagreements.txt`. ty is installed with the interpreter that runs this.
ctags, rust-analyzer and gopls are used if they are on the PATH; the output names those that are not.

A definition has the same file, name and line in both programs. What Toolcrib leaves out on purpose does not count: see
`LeftOut`. With --smoke, two projects are compared with their servers only, whose versions are pinned, and each
disagreement must be in `accepted_disagreements.txt`.
"""

import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import definition_readers as readers
from definition_readers import KINDS, Symbol
from definition_sources import Project, obtain

ACCEPTED = Path(__file__).with_name("accepted_disagreements.txt")
LANGUAGES = ("rust", "python", "typescript", "go")

# Statements of TypeScript that name definitions of other files.
NAME_LISTS = re.compile(r"^(?:import|export)\s+(?:type\s+)?[\w*{][^;=()]*?(?:from\s*['\"]|\})", re.MULTILINE)


def main() -> None:
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    program, top, typescript = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    smoke = "--smoke" in sys.argv[4:]
    projects, missing = obtain(top / "sources", smoke)
    if smoke and missing:
        sys.exit("\n".join(missing))
    comparisons = []
    for language in LANGUAGES:
        for second in (False, True):
            own = [one for one in projects if one.language == language and one.in_second_set == second]
            if own:
                comparisons.append(compare(program, top / "sources" / language, language, own, typescript, smoke))
    if smoke:
        check_accepted(comparisons, top)
        return
    report = "\n".join(one.report() for one in comparisons)
    report += "".join(f"\nNot compared: {why}.\n" for why in missing)
    (top / "report.md").write_text(report)
    lists = "".join(one.list_disagreements(top / "sources") for one in comparisons)
    (top / "disagreements.txt").write_text(lists)
    print(report)
    print(f"{len(lists.splitlines())} disagreements: {top / 'disagreements.txt'}")


def compare(
    program: str, top: Path, language: str, projects: list[Project], typescript: str, smoke: bool
) -> "Comparison":
    files = [file for project in projects for file in project.files()]
    peers = {}
    ctags = shutil.which("ctags")
    if not smoke and ctags and "Universal Ctags" in version([ctags, "--version"]):
        peers["ctags"] = readers.ctags(files)
    server = server_of(language, typescript)
    if shutil.which(server[0]):
        peers[Path(server[0]).name] = readers.from_server(server, {}, top, files, language)
    absent = [name for name in ("ctags", Path(server[0]).name) if name not in peers]
    return Comparison(language, projects, files, readers.ours(program, files), peers, absent)


def server_of(language: str, typescript: str) -> list[str]:
    return {
        "rust": ["rust-analyzer"],
        "python": [str(Path(sys.executable).with_name("ty")), "server"],
        "typescript": [typescript, "--lsp", "--stdio"],
        "go": ["gopls"],
    }[language]


def version(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


class Comparison:
    """The definitions of one language."""

    def __init__(
        self,
        language: str,
        projects: list[Project],
        files: list[Path],
        ours: list[Symbol],
        peers: dict[str, list[Symbol]],
        absent: list[str],
    ) -> None:
        self.language, self.projects, self.files, self.ours, self.absent = language, projects, files, ours, absent
        self.all_of_peers = peers
        left_out = LeftOut(language, files, peers)
        reasons = {name: [(one, left_out.why(one)) for one in found] for name, found in peers.items()}
        self.excluded = {name: Counter(why for _, why in found if why) for name, found in reasons.items()}
        self.peers = {
            # One name can be defined twice on a line, and a program can repeat itself.
            name: list({one.key(): one for one, why in found if not why}.values())
            for name, found in reasons.items()
        }
        # Also what is left out confirms a definition of ours: a peer may see it as local.
        self.confirmed = {name: {one.key() for one in found} for name, found in peers.items()}
        self.our_keys = {one.key(): one for one in ours}
        self.unlisted = Counter(filter(None, (self.why_unlisted(one) for one in ours)))

    def report(self) -> str:
        lines = sum(file.read_bytes().count(b"\n") for file in self.files)
        names = ", ".join(project.label() for project in self.projects)
        second = ", second set" if self.projects[0].in_second_set else ""
        text = f"### {self.language}{second}: {names}\n\n{len(self.files)} files, {lines:,} lines."
        text += "".join(f" {name} is not installed." for name in self.absent) + "\n\n"
        peers = list(self.peers)
        text += "| kind | ours | " + " | ".join(f"in {name}" for name in peers) + " | precision | "
        text += " | ".join(f"{name} | of these ours | recall" for name in peers) + " |\n"
        text += "| --- |" + " --: |" * (2 + 4 * len(peers)) + "\n"
        for kind in (*KINDS, "all"):
            text += self.row(kind)
        for reason, count in self.unlisted.items():
            text += f"\nOnly ours, of a kind that no peer lists: {count:,} {reason}.\n"
        for name, counts in self.excluded.items():
            what = ", ".join(f"{count:,} {reason}" for reason, count in counts.most_common())
            text += f"\nLeft out of {name}: {what or 'nothing'}.\n"
        return text + self.lines_and_kinds()

    def row(self, kind: str) -> str:
        ours = [one for one in self.ours if kind in (one.kind, "all")]
        theirs = {name: [one for one in found if kind in (one.kind, "all")] for name, found in self.peers.items()}
        if not ours and not any(theirs.values()):
            return ""
        cells = [kind, f"{len(ours):,}"]
        cells += [f"{sum(one.key() in keys for one in ours):,}" for keys in self.confirmed.values()]
        cells.append(percent(sum(self.is_confirmed(one) for one in ours), len(ours)))
        for found in theirs.values():
            shared = sum(one.key() in self.our_keys for one in found)
            cells += [f"{len(found):,}", f"{shared:,}", percent(shared, len(found))]
        return "| " + " | ".join(cells) + " |\n"

    def is_confirmed(self, one: Symbol) -> bool:
        return any(one.key() in keys for keys in self.confirmed.values())

    def why_unlisted(self, one: Symbol) -> str | None:
        """Why no peer has a definition of ours, if it is one that they do not list."""
        if self.is_confirmed(one):
            return None
        if self.language == "typescript" and (one.kind == "member" or "type " in one.inside):
            return "members of object types"
        if self.language == "python" and "def " in one.inside and one.kind == "member":
            return "attributes of classes in functions"
        if self.language == "go" and "func " in one.inside and one.kind in ("type", "member"):
            return "types in functions"
        return None

    def lines_and_kinds(self) -> str:
        text = ""
        for name, found in self.peers.items():
            pairs = [(self.our_keys[one.key()], one) for one in found if one.key() in self.our_keys]
            with_end = [(ours, one) for ours, one in pairs if one.last]
            same_end = sum(ours.last == one.last for ours, one in with_end)
            same_kind = sum(ours.kind == one.kind for ours, one in pairs)
            text += f"\nLike {name}: the kind of {percent(same_kind, len(pairs))}"
            text += f", the last line of {percent(same_end, len(with_end))}.\n" if with_end else ".\n"
        return text

    def disagreements(self) -> list[tuple[str, Symbol]]:
        unconfirmed = (one for one in self.ours if not self.is_confirmed(one))
        found = [("only ours", one) for one in unconfirmed if self.why_unlisted(one) is None]
        for name, theirs in self.peers.items():
            found += [(f"only {name}", one) for one in theirs if one.key() not in self.our_keys]
        return found

    def list_disagreements(self, top: Path) -> str:
        text = ""
        for who, one in self.disagreements():
            line = one.file.read_text(errors="replace").split("\n")[one.line - 1].strip()
            text += f"{who}\t{one.kind}\t{one.name}\t{one.file.relative_to(top)}:{one.line}\t{line[:120]}\n"
        return text


def percent(part: int, whole: int) -> str:
    if not whole:
        return ""
    # Rounded down: 100 % means all.
    return f"{int(1000 * part / whole) / 10:g} %"


class LeftOut:
    """Why a symbol of a peer is not one that Toolcrib intends to find."""

    def __init__(self, language: str, files: list[Path], peers: dict[str, list[Symbol]]) -> None:
        self.language = language
        self.name_lists = {file: lines_of_name_lists(file) for file in files} if language == "typescript" else {}
        # Constants and types of Rust are items, also in functions. ctags does not see every function of TypeScript.
        local = (one.key() for found in peers.values() for one in found if one.is_local)
        self.local = set() if language == "rust" else set(local)

    def why(self, one: Symbol) -> str | None:
        if one.line in self.name_lists.get(one.file, ()):
            return "imports and re-exports"
        if one.key() in self.local:
            return "local variables and what is in them"
        if one.kind == "out":
            return "nameless functions, packages and imports"
        if one.in_value and self.language == "typescript" and one.kind in ("member", "value"):
            return "properties of object values"
        return None


def lines_of_name_lists(file: Path) -> set[int]:
    text = file.read_text()
    lines: set[int] = set()
    for match in NAME_LISTS.finditer(text):
        first = text.count("\n", 0, match.start()) + 1
        lines.update(range(first, first + match[0].count("\n") + 1))
    return lines


def check_accepted(comparisons: list[Comparison], top: Path) -> None:
    """Fails if there is a disagreement that nobody has judged."""
    accepted = {line for line in ACCEPTED.read_text().splitlines() if not line.startswith("#")}
    found = {
        # Without the text of the line, which is for the reader.
        "\t".join(line.split("\t")[:4])
        for one in comparisons
        for line in one.list_disagreements(top / "sources").splitlines()
    }
    if found != accepted:
        new, gone = sorted(found - accepted), sorted(accepted - found)
        sys.exit("\n".join(["not in accepted_disagreements.txt:", *new, "only there:", *gone]))
    for one in comparisons:
        plant_faults(one)
    compared = sum(len(one.ours) for one in comparisons)
    print(f"{compared:,} definitions agree with the language servers, except for {len(found)} that were judged")


def plant_faults(one: Comparison) -> None:
    """The comparison must detect a missing function, and one at a wrong line."""
    at = next(at for at, symbol in enumerate(one.ours) if symbol.kind == "function" and one.is_confirmed(symbol))
    missing = one.ours[:at] + one.ours[at + 1 :]
    moved = [*missing, replace(one.ours[at], line=one.ours[at].line + 1)]
    for faulty, who in ((missing, "only " + next(iter(one.peers))), (moved, "only ours")):
        planted = Comparison(one.language, one.projects, one.files, faulty, one.all_of_peers, [])
        new = set(planted.disagreements()) - set(one.disagreements())
        if not any(found == who for found, _ in new):
            sys.exit(f"the comparison is blind: it finds nothing {who} in {one.language}")


if __name__ == "__main__":
    main()
