"""Checks the errors in replies to edits with real language servers.

Usage: language_servers.py PATH-OF-TOOLCRIB PATH-OF-NODE-MODULES [SERVER...]

ruff and ty are installed with the interpreter that runs this, tsc in the directory of Node modules. They are copied to
a directory that the sandbox shows: a checkout may be in /tmp, which it replaces. The other servers are checked if they
are on the PATH and print a version; the output names those that do not. For each server, in a project of its own:

- an edit that introduces an error is told it, with its line, server and code;
- an edit that moves an error, or fixes one, is told nothing;
- after another program has changed a file of the project, a check sees that file as it is.

Stops at the first failure and exits with 1.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# For servers that load a project first, on a slow machine.
PATIENCE = 300
# Directories that root or an ordinary user can write, and that the sandbox shows.
VISIBLE = ("/var/cache", "/var/lib", "/srv", "~/.cache")
# Servers that the caller installs in any case.
INSTALLED = ("ruff", "tsc")
NOTES = ("[new error", "[no new errors", "[errors not known yet", "[check: ")


class Refused(Exception):
    """A failed check."""


class Session:
    """A session of `toolcrib run` in a new project."""

    def __init__(self, program: str, path: str, top: Path, files: dict[str, str]) -> None:
        self.root = top / "project"
        for name, content in files.items():
            self.put(name, content)
        config = top / "config.toml"
        config.write_text('check = "errors"\n')
        environment = {**os.environ, "PATH": path, "SHELL": "/bin/false"}
        arguments = ["run", "--config", config, "--state", top / "state", "--root", self.root]
        self.process = subprocess.Popen(
            [program, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.number = 0

    def put(self, name: str, content: str) -> None:
        """Writes a file as another program would."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    def call(self, tool: str, **args: object) -> dict:
        self.number += 1
        line = json.dumps({"id": self.number, "tool": tool, "args": args})
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        reply = json.loads(self.process.stdout.readline())
        if not reply["success"]:
            raise Refused(f"{tool}: {reply}")
        return reply

    def edit(self, name: str, old: str, new: str) -> list[str]:
        """The notes about errors after an edit, also those of later replies."""
        reply = self.call("Edit", file_path=name, old_string=old, new_string=new)
        found = self.notes(reply)
        until = time.monotonic() + PATIENCE
        while any(note.startswith("[errors not known yet") for note in found):
            if time.monotonic() > until:
                raise Refused(f"{name}: no answer in time: {found}")
            time.sleep(0.1)
            later = self.notes(self.call("Glob", pattern="*.none"))
            if later:
                found = [note for note in found if "not known yet" not in note] + later
                # Another server may still be at work.
                time.sleep(0.5)
                found += self.notes(self.call("Glob", pattern="*.none"))
        return [note for note in found if not note.startswith("[no new errors")]

    @staticmethod
    def notes(reply: dict) -> list[str]:
        lines = reply["output"].splitlines()
        return [line for line in lines if line.startswith(NOTES) and "changed since" not in line]

    def expect(self, what: str, found: list[str], *words: str) -> None:
        """Fails unless there is one note with all these words, or none without words."""
        if not words and not found:
            return
        if len(found) == 1 and words and all(word in found[0] for word in words):
            return
        raise Refused(f"{what}: expected {words or 'nothing'}, found {found}")

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(60)


def ruff_and_ty(session: Session) -> None:
    found = session.edit("app.py", "return 1", "return unknown")
    session.expect("an unknown name", found, "new error in app.py: line 5: ", "unknown", "(ruff F821)")
    session.expect("a moved error", session.edit("app.py", "import os", "import os\nimport sys"))
    session.expect("a fixed error", session.edit("app.py", "return unknown", "return 1"))
    found = session.edit("app.py", "x: int = 1", 'x: int = "one"')
    session.expect("a wrong type", found, "new error in app.py: line 9: ", "(ty invalid-assignment)")
    session.expect("the type is right", session.edit("app.py", 'x: int = "one"', "x: int = 1"))
    session.put("library.py", "def first() -> int:\n    return 1\n\n\ndef second() -> int:\n    return 2\n")
    found = session.edit("app.py", "from library import first", "from library import first, second")
    session.expect("a function that another program added", found)
    session.put("library.py", "def second() -> int:\n    return 2\n")
    found = session.edit("other.py", "pass", "from library import first")
    session.expect("a function that another program removed", found, "other.py: line 1: ", "`first`", "(ty ")
    session.put("package/__init__.py", "def run(name: str) -> None: ...\n")
    found = session.edit("app.py", "import os\n", "import os\nimport package\n")
    session.expect("a package that another program added", found)
    found = session.edit("app.py", "import package\n", "import package\n\npackage.run(1)\n")
    session.expect("a wrong argument", found, "new error in app.py", "(ty invalid-argument-type)")


def typescript(session: Session) -> None:
    found = session.edit("a.ts", "x: number = 1", 'x: number = "one"')
    session.expect("a wrong type", found, "new error in a.ts: line 2: ", "(tsc 2322)")
    session.expect("a moved error", session.edit("a.ts", "first();", "first();\nfirst();"))
    session.expect("a fixed error", session.edit("a.ts", 'x: number = "one"', "x: number = 1"))
    session.put("library.ts", "export function first() {}\nexport function second() {}\n")
    found = session.edit("a.ts", "import { first }", "import { first, second }")
    session.expect("a function that another program added", found)


def rust(session: Session) -> None:
    found = session.edit("src/main.rs", "let x: u32 = 1", 'let x: u32 = "one"')
    session.expect("a wrong type", found, "new error in src/main.rs: line 4: ", "(rust-analyzer E0308)")
    session.expect("a fixed error", session.edit("src/main.rs", 'let x: u32 = "one"', "let x: u32 = 1"))
    session.put("src/library.rs", "pub fn first() {}\npub fn second() {}\n")
    found = session.edit("src/main.rs", "library::first();", "library::first();\n    library::second();")
    session.expect("a function that another program added", found)


def clang(session: Session) -> None:
    found = session.edit("a.c", "return 0", "return unknown")
    session.expect("an unknown name", found, "new error in a.c: line 2: ", "unknown", "(clangd undeclared_var_use)")
    session.expect("a moved error", session.edit("a.c", "#include", "\n#include"))
    session.expect("a fixed error", session.edit("a.c", "return unknown", "return 0"))
    session.put("library.h", "void first(void);\nvoid second(void);\n")
    session.expect("a new function", session.edit("a.c", "first();", "first(); second();"))


def go(session: Session) -> None:
    found = session.edit("main.go", "x := 1", 'var x int = "one"')
    session.expect("a wrong type", found, "new error in main.go: line 4: ", "(gopls ")


PROJECTS = {
    ("ruff", "ty"): (
        ruff_and_ty,
        {
            "app.py": "import os\nfrom library import first\n\ndef main() -> int:\n    return 1\n\n\nx: int = 1\n"
            "print(os, first)\n",
            "library.py": "def first() -> int:\n    return 1\n",
            "other.py": "pass\n",
        },
    ),
    ("tsc",): (
        typescript,
        {
            "tsconfig.json": '{"compilerOptions": {"strict": true, "module": "nodenext"}}\n',
            "a.ts": 'import { first } from "./library.js";\nexport const x: number = 1;\nfirst();\n',
            "library.ts": "export function first() {}\n",
        },
    ),
    ("rust-analyzer",): (
        rust,
        {
            "Cargo.toml": '[package]\nname = "p"\nversion = "0.1.0"\nedition = "2024"\n',
            "Cargo.lock": 'version = 4\n\n[[package]]\nname = "p"\nversion = "0.1.0"\n',
            "src/main.rs": "mod library;\n\nfn main() {\n    let x: u32 = 1;\n    library::first();\n    drop(x);\n}\n",
            "src/library.rs": "pub fn first() {}\n",
        },
    ),
    ("clangd",): (
        clang,
        {
            "compile_flags.txt": "-std=c11\n",
            "a.c": '#include "library.h"\nint main(void) { first(); return 0; }\n',
            "library.h": "void first(void);\n",
        },
    ),
    ("gopls", "go"): (
        go,
        {
            "go.mod": "module example.org/p\n\ngo 1.19\n",
            "main.go": "package main\n\nfunc main() {\n\tx := 1\n\tprintln(x)\n}\n",
        },
    ),
}


def visible_directory() -> Path:
    for name in VISIBLE:
        directory = Path(name).expanduser()
        if directory.is_dir() and os.access(directory, os.W_OK | os.X_OK):
            return directory
    sys.exit(f"none of {', '.join(VISIBLE)} can be written")


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    modules = Path(sys.argv[2])
    with tempfile.TemporaryDirectory(dir=visible_directory()) as tools:
        for server in ("ruff", "ty"):
            shutil.copy(Path(sys.executable).with_name(server), tools)
        shutil.copytree(modules, f"{tools}/node_modules", symlinks=True)
        check_all(f"{tools}:{tools}/node_modules/.bin:{os.environ['PATH']}", sys.argv[3:])


def why_missing(program: str, path: str) -> str | None:
    """Why a program cannot be used. rustup installs a rust-analyzer that needs a component."""
    found = shutil.which(program, path=path)
    if found is None:
        return f"{program} is not on the PATH"
    word = "version" if program in ("go", "gopls") else "--version"
    probe = subprocess.run([found, word], capture_output=True, text=True)
    return None if probe.returncode == 0 else f"{program} {word} fails: {probe.stderr.strip().partition(chr(10))[0]}"


def check_all(path: str, wanted: list[str]) -> None:
    for servers, (check, files) in PROJECTS.items():
        if wanted and servers[0] not in wanted:
            continue
        missing = [why for why in (why_missing(server, path) for server in servers) if why]
        if missing and servers[0] in INSTALLED:
            sys.exit("; ".join(missing))
        if missing:
            print(f"{', '.join(servers)}: not checked: {'; '.join(missing)}")
            continue
        with tempfile.TemporaryDirectory() as top:
            session = Session(sys.argv[1], path, Path(top), files)
            try:
                check(session)
            except Refused as refused:
                sys.exit(f"{', '.join(servers)}: {refused}")
            finally:
                session.close()
        print(f"{', '.join(servers)}: errors are told, once, for the current text")


main()
