"""Checks the results of NotebookEdit with Jupyter's library and Python's JSON module.

Usage: notebooks.py PATH-OF-TOOLCRIB

Every edit is made in notebooks of every format in every layout, by `toolcrib call`. The result must be

- a notebook that `nbformat` accepts as valid in its own format,
- byte for byte the output of Python after the same edit of the parsed document and a dump in the same layout,
- with the bytes of all other cells unchanged, also in a layout that no program writes.

Stops at the first failure and exits with 1. Each of the three checks must also reject a planted fault, so that it is
known to detect faults.
"""

import copy
import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import nbformat

NAME = "a.ipynb"
OUTPUTS = [
    {"name": "stdout", "output_type": "stream", "text": ["1\n", "caf\u00e9\n"]},
    {
        "data": {"image/png": "iVBORw0KGgo=\n", "text/plain": ["<Figure>"]},
        "execution_count": 3,
        "metadata": {},
        "output_type": "execute_result",
    },
]
SOURCE = 'x = "\u00e9\\n"\n\nprint("\U0001f600\u007f\t")\n'


class Refused(Exception):
    """A failed check."""


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    count = 0
    try:
        plant_faults()
        for format_name, notebook in notebooks().items():
            for layout_name, layout in LAYOUTS.items():
                for edit_name, (arguments, edit) in EDITS.items():
                    try:
                        check(sys.argv[1], notebook, layout, arguments, edit)
                    except Refused as refused:
                        raise Refused(f"{format_name}, {layout_name}, {edit_name}: {refused}") from refused
                    count += 1
        check_own_layout(sys.argv[1])
    except Refused as refused:
        sys.exit(str(refused))
    print(f"{count} edits: valid for nbformat {nbformat.__version__}, and as Python would have written them")


# --- notebooks, layouts, edits -----------------------------------------------------------------------


def notebooks() -> dict:
    text = {"cell_type": "markdown", "metadata": {"tags": ["a"]}, "source": ["# One\n", "\u00e9"]}
    code = {
        "cell_type": "code",
        "execution_count": 3,
        "metadata": {},
        "outputs": OUTPUTS,
        "source": ["print(1)\n", "figure"],
    }
    raw = {"cell_type": "raw", "metadata": {}, "source": []}
    found = {}
    # The first minor version, the last without cell ids, and the first with them.
    for minor in (0, 4, 5):
        cells = copy.deepcopy([text, code, raw])
        if minor >= 1:
            cells[0]["attachments"] = {"a.png": {"image/png": "iVBORw0KGgo="}}
        if minor >= 5:
            for at, cell in enumerate(cells):
                cell["id"] = f"id-{at}"
        metadata = {"kernelspec": {"display_name": "Python", "name": "python3"}}
        found[f"format 4.{minor}"] = {
            "cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": minor,
        }
    old_code = {
        "cell_type": "code",
        "collapsed": False,
        "input": ["1"],
        "language": "python",
        "metadata": {},
        "outputs": [{"output_type": "pyout", "prompt_number": 1, "text": ["1"], "metadata": {}}],
        "prompt_number": 1,
    }
    heading = {"cell_type": "heading", "level": 2, "metadata": {}, "source": ["\u00e9"]}
    sheet = {"cells": [heading, old_code, raw], "metadata": {}}
    found["format 3"] = {
        "metadata": {"name": ""}, "nbformat": 3, "nbformat_minor": 0, "worksheets": [sheet],
    }
    return found


def dump(notebook, ending="\n", newline="\n", mark="", **options) -> bytes:
    text = json.dumps(notebook, sort_keys=True, **options)
    return (mark + text.replace("\n", newline) + ending).encode()


LAYOUTS = {
    "as Jupyter": {"indent": 1, "ensure_ascii": False},
    "escapes": {"indent": 1, "ensure_ascii": True},
    "four spaces, CRLF": {
        "indent": 4, "ensure_ascii": False, "newline": "\r\n", "ending": "\r\n", "mark": "\ufeff",
    },
    "tabs, no end": {"indent": "\t", "ensure_ascii": False, "ending": ""},
    "one line": {"ensure_ascii": True},
    "one tight line": {"ensure_ascii": False, "separators": (",", ":"), "ending": ""},
}


def lines(source: str) -> list:
    return source.splitlines(keepends=True) if "\n" in source else [source] if source else []


def replace(number, source, cell_type=None):
    def edit(notebook, cells, _):
        cell = cells[number - 1]
        cell_type_now = cell_type or cell["cell_type"]
        code, old = cell_type_now == "code", notebook["nbformat"] == 3
        kept = ["metadata", "id"] + ([] if code else ["attachments"])
        now = {key: cell[key] for key in kept if key in cell}
        if cell_type_now == cell["cell_type"]:
            now = dict(cell)
        now["cell_type"] = cell_type_now
        now["input" if code and old else "source"] = lines(source)
        if code:
            now["outputs"] = []
            count = "prompt_number" if old else "execution_count"
            if not old or count in now:
                now[count] = None
            if old:
                now.setdefault("language", "python")
        cells[number - 1] = now

    return {"cell_number": number, "new_source": source, "cell_type": cell_type}, edit


def insert(at, source, cell_type, **arguments):
    def edit(notebook, cells, reply):
        old = notebook["nbformat"] == 3
        now = {"cell_type": cell_type, "metadata": {}}
        now["input" if old and cell_type == "code" else "source"] = lines(source)
        if cell_type == "code":
            now["outputs"] = []
            now.update({"language": "python"} if old else {"execution_count": None})
        if (notebook["nbformat"], notebook["nbformat_minor"]) >= (4, 5):
            now["id"] = reply["metadata"]["cell_id"]
        cells.insert(at, now)

    arguments.update(edit_mode="insert", new_source=source, cell_type=cell_type)
    return arguments, edit


def delete(number):
    return {"cell_number": number, "edit_mode": "delete"}, lambda _, cells, __: cells.pop(number - 1)


EDITS = {
    "replace text": replace(1, SOURCE),
    "replace code": replace(2, SOURCE),
    "replace by nothing": replace(2, ""),
    "replace nothing": replace(3, SOURCE),
    "text becomes code": replace(1, SOURCE, "code"),
    "code becomes text": replace(2, SOURCE, "markdown"),
    "code becomes raw": replace(2, "figure", "raw"),
    "insert at the end": insert(3, SOURCE, "code"),
    "insert after": insert(1, "one line", "markdown", cell_number=1),
    "insert before": insert(0, "", "raw", cell_number=1, position="before"),
    "delete the first": delete(1),
    "delete one between": delete(2),
    "delete the last": delete(3),
}


# --- checks ------------------------------------------------------------------------------------------


def check(binary, notebook, layout, arguments, edit) -> None:
    was = dump(notebook, **layout)
    reply, now = call(binary, was, arguments)
    expected = copy.deepcopy(notebook)
    edit(expected, cells_of(expected), reply)
    valid(now)
    same(now, dump(expected, **layout))
    others_stay(was, now, reply["metadata"])


def check_own_layout(binary) -> None:
    """Checks a layout that no program writes, so Python's output is no reference."""
    was = (
        '{ "nbformat":4,"nbformat_minor" : 5, "metadata": {}, "cells":[\n'
        '{"source":"a" , "metadata":{},\t"cell_type":"markdown","id":"a" }  ,\n\n'
        '  {  "outputs" : [ ],"id":"b","source": [ "b" ],"cell_type":"code","metadata":{},"execution_count":1}\n,'
        '{"cell_type": "raw", "metadata": {}, "source": [], "id": "c"}]}'
    ).encode()
    for arguments, _ in EDITS.values():
        reply, now = call(binary, was, arguments)
        valid(now)
        others_stay(was, now, reply["metadata"])


def call(binary, was: bytes, arguments) -> tuple:
    with tempfile.TemporaryDirectory() as directory:
        root, state = Path(directory, "root"), Path(directory, "state")
        root.mkdir()
        (root / NAME).write_bytes(was)
        arguments = {"notebook_path": NAME, **arguments}
        command = [binary, "--root", root, "--state", state, "--json"]
        command += ["call", "NotebookEdit", json.dumps(arguments)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            raise Refused(f"{arguments}: {done.stdout.decode()}")
        return json.loads(done.stdout), (root / NAME).read_bytes()


def parse(text: bytes):
    return json.loads(text.decode("utf-8-sig"))


def cells_of(notebook) -> list:
    return notebook["cells"] if "cells" in notebook else notebook["worksheets"][0]["cells"]


def valid(text: bytes) -> None:
    try:
        # The library only warns about a duplicate id and replaces it.
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            nbformat.validate(parse(text))
    except (ValueError, nbformat.ValidationError, Warning) as error:
        raise Refused(f"nbformat refuses it: {error}") from error


def same(now: bytes, expected: bytes) -> None:
    if now != expected:
        raise Refused(f"it is\n{now.decode()}\nand Python would have written\n{expected.decode()}")


def others_stay(was: bytes, now: bytes, metadata) -> None:
    before, after = raw_cells(was.decode()), raw_cells(now.decode())
    at = metadata["cell_number"] - 1
    if metadata["edit_mode"] != "insert":
        before.pop(at)
    if metadata["edit_mode"] != "delete":
        after.pop(at)
    if before != after:
        raise Refused("the bytes of another cell have changed")


def raw_cells(text: str) -> list:
    """The text of each cell, located with Python's JSON decoder."""
    text = text.removeprefix("\ufeff")
    at = dict(members(text, skip(text, 0)))
    if "cells" not in at:
        sheet = next(iter(items(text, at["worksheets"])))
        at = dict(members(text, sheet[0]))
    return [text[start:end] for start, end in items(text, at["cells"])]


def skip(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


def members(text: str, at: int):
    at = skip(text, at + 1)
    while text[at] != "}":
        key, at = json.JSONDecoder().raw_decode(text, at)
        at = skip(text, skip(text, at) + 1)
        yield key, at
        _, at = json.JSONDecoder().raw_decode(text, at)
        at = skip(text, at)
        at = skip(text, at + 1) if text[at] == "," else at


def items(text: str, at: int):
    at = skip(text, at + 1)
    while text[at] != "]":
        start = at
        _, at = json.JSONDecoder().raw_decode(text, at)
        yield start, at
        at = skip(text, at)
        at = skip(text, at + 1) if text[at] == "," else at


def plant_faults() -> None:
    good = notebooks()["format 4.5"]
    no_outputs, twice, no_id = (copy.deepcopy(good) for _ in range(3))
    del cells_of(no_outputs)[1]["outputs"]
    cells_of(twice)[1]["id"] = cells_of(twice)[0]["id"]
    del cells_of(no_id)[0]["id"]
    text = dump(good)
    replaced = {"edit_mode": "replace", "cell_number": 2}
    for what, judge in {
        "a code cell without outputs": lambda: valid(dump(no_outputs)),
        "a duplicate id": lambda: valid(dump(twice)),
        "a cell without an id": lambda: valid(dump(no_id)),
        "another layout": lambda: same(text, dump(good, indent=1)),
        "another cell": lambda: others_stay(text, dump(no_id), replaced),
    }.items():
        try:
            judge()
        except Refused:
            continue
        raise Refused(f"the oracle is blind: it accepts {what}")
    valid(text)


if __name__ == "__main__":
    main()
