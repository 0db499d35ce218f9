"""Definitions as three programs see them, in one form: Toolcrib's parser, universal-ctags and language servers."""

import json
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from document_symbols import Server

# The kinds that are compared. "out" is what no definition of ours is: imports, packages, parameters.
KINDS = ("function", "type", "module", "impl", "value", "member")

OUR_CLASSES = {"Callable": "function", "Type": "type", "Block": "module", "Value": "value", "Member": "member"}
OUR_PROTOTYPES = {"type": "type", "mod": "module"}

CTAGS_KINDS = {
    "function": "function", "method": "function", "member": "member", "macro": "function", "generator": "function",
    "func": "function", "methodSpec": "function", "getter": "function", "setter": "function",
    "class": "type", "struct": "type", "enum": "type", "interface": "type", "typedef": "type", "alias": "type",
    "type": "type", "talias": "type", "trait": "type", "union": "type",
    "module": "module", "namespace": "module", "implementation": "impl",
    "variable": "value", "constant": "value", "const": "value", "var": "value", "static": "value",
    "enumerator": "member", "field": "member", "property": "member",
}  # fmt: skip
# Python's methods are "member", like Go's fields, and its modules are imports with another name.
CTAGS_EXCEPTIONS = {("Python", "member"): "function", ("Python", "module"): "out", ("Python", "namespace"): "out"}

SERVER_KINDS = {
    2: "module", 3: "module", 5: "type", 6: "function", 7: "member", 8: "member", 9: "function", 10: "type",
    11: "type", 12: "function", 13: "value", 14: "value", 19: "impl", 22: "member", 23: "type", 26: "type",
}  # fmt: skip


@dataclass(frozen=True)
class Symbol:
    """A definition: its file, the line of its name, its last line (0 if unknown), its kind, the names around it."""

    file: Path
    line: int
    name: str
    kind: str
    last: int
    inside: str = ""
    # Whether a function is around it, and whether it is in the value of a variable or property.
    is_local: bool = False
    in_value: bool = False

    def key(self) -> tuple:
        # The blocks of one type have one name, and programs spell it differently.
        return (self.file, self.line, "impl" if self.kind == "impl" else self.name)


def ours(program: str, files: list[Path]) -> list[Symbol]:
    """The output of the example `definitions` of crates/syntax."""
    names = "".join(f"{file}\n" for file in files)
    done = subprocess.run([program], input=names, capture_output=True, text=True, check=True)
    found = []
    for line in done.stdout.splitlines():
        parts = line.split("\t")
        if len(parts) < 9:
            continue
        file, name, word, of, name_line, _, _, last, path = parts[:9]
        kind = OUR_CLASSES.get(of) or OUR_PROTOTYPES.get(word, "function")
        kind = "impl" if word == "impl" else kind
        inside = path.rpartition(" › ")[0]
        found.append(Symbol(Path(file), int(name_line), name, kind, int(last), inside))
    return found


def unparsed(program: str, files: list[Path]) -> list[str]:
    """Files in which our parser finds a syntax error."""
    names = "".join(f"{file}\n" for file in files)
    done = subprocess.run([program], input=names, capture_output=True, text=True, check=True)
    return [line.split("\t")[0] for line in done.stdout.splitlines() if "\t!" in line]


def ctags(files: list[Path]) -> list[Symbol]:
    """The tags of universal-ctags."""
    command = ["ctags", "--output-format=json", "--fields=+neKlZ", "--sort=no", "-f", "-", "-L", "-"]
    names = "".join(f"{file}\n" for file in files)
    done = subprocess.run(command, input=names, capture_output=True, text=True, check=True)
    found = []
    for line in done.stdout.splitlines():
        tag = json.loads(line)
        if tag.get("_type") != "tag":
            continue
        kind = CTAGS_EXCEPTIONS.get((tag["language"], tag["kind"])) or CTAGS_KINDS.get(tag["kind"], "out")
        is_local = CTAGS_KINDS.get(tag.get("scopeKind", "")) == "function" and kind in ("value", "member", "out")
        last = tag.get("end", 0)
        found.append(Symbol(Path(tag["path"]), tag["line"], tag["name"], kind, last, tag.get("scope", ""), is_local))
    return found


def from_server(command: list[str], options: dict, top: Path, files: list[Path], language: str) -> list[Symbol]:
    """The symbols of a language server."""
    server = Server(command, top, options)
    found: list[Symbol] = []
    try:
        for file in files:
            add_symbols(found, file, server.symbols(file, language), [])
    finally:
        server.close()
    return found


def add_symbols(found: list[Symbol], file: Path, symbols: list[dict], around: list[Symbol]) -> None:
    for one in symbols:
        name, kind = name_and_kind(one)
        in_function = any(outer.kind in ("function", "nameless") for outer in around)
        is_local = in_function and kind in ("value", "member", "out", "nameless")
        in_value = bool(around) and around[-1].kind in ("value", "member")
        line = one["selectionRange"]["start"]["line"] + 1
        end = one["range"]["end"]
        # A range can end at the beginning of the next line.
        last = end["line"] + (0 if end["character"] == 0 else 1)
        inside = ".".join(outer.name for outer in around)
        symbol = Symbol(file, line, name, kind, last, inside, is_local, in_value)
        found.append(symbol if kind != "nameless" else replace(symbol, kind="out"))
        add_symbols(found, file, one.get("children") or [], [*around, symbol])


def name_and_kind(symbol: dict) -> tuple[str, str]:
    name, kind = symbol["name"], SERVER_KINDS.get(symbol["kind"], "out")
    # gopls: `(*Store).Add`.
    if name.startswith("(") and ")." in name:
        name = name.rpartition(".")[2]
    if kind == "impl":
        return name, kind if name.startswith("impl") else "out"
    # The TypeScript server: `test("a name") callback`, `<function>`, `new()`.
    if any(mark in name for mark in " <>()"):
        return name, "nameless" if kind == "function" else "out"
    return name.strip("\"'"), kind
