"""Runs the Python examples of the documentation as they are written, each alone and those of a page in their order."""

import contextlib
import io
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

from support import toolcrib

ROOT = Path(__file__).resolve().parents[3]
PAGES = ["README.md", "docs/python-and-typescript.md", "packaging/python/README.md"]

# Examples without these use a framework, a terminal, or the package of another page.
USES = re.compile(r'toolcrib\.(Session|AsyncSession)\(|\["toolcrib", ')
LEFT_OUT = re.compile(r"^(from|import) (?!toolcrib\b|json\b|asyncio\b|subprocess\b)|input\(", re.MULTILINE)

# The first word of the commands in the examples.
PROGRAMS = re.compile(r'exec\(\["([\w-]+)"|command="([\w-]+)')


def examples() -> list[tuple[str, str]]:
    """The examples that this package can run, each with its page."""
    found = []
    for page in PAGES:
        path = ROOT / page
        if not path.exists():
            continue
        for block in re.findall(r"^```python\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL):
            if USES.search(block) and not LEFT_OUT.search(block):
                found.append((page, block))
    return found


class Documentation(unittest.TestCase):
    def setUp(self) -> None:
        # Not in /tmp, of which a session has its own.
        self.top = Path(tempfile.mkdtemp(prefix=".toolcrib-docs-", dir=Path.home()))
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)
        home = self.top / "home"
        home.mkdir()
        program = toolcrib.program.locate_program(None)
        path = f"{self.top / 'bin'}{os.pathsep}{os.environ['PATH']}"
        (self.top / "bin").mkdir()
        (self.top / "bin" / "toolcrib").symlink_to(program)
        changed = {"HOME": str(home), "PATH": path}
        kept = {name: os.environ.get(name) for name in changed}
        os.environ.update(changed)
        self.addCleanup(lambda: os.environ.update({name: value for name, value in kept.items() if value}))
        before = os.getcwd()
        os.chdir(self.top)
        self.addCleanup(os.chdir, before)

    def test_examples_run(self) -> None:
        found = examples()
        if not (ROOT / "docs").is_dir():
            self.skipTest("the documentation is not here")
        self.assertGreaterEqual(len(found), 4)
        for page, block in found:
            needed = {one or other for one, other in PROGRAMS.findall(block)}
            missing = [program for program in needed if shutil.which(program) is None]
            with self.subTest(page=page, example=block):
                if missing:
                    self.skipTest(f"{missing[0]} is not installed")
                self.make_project()
                self.run_example(page, block, {})
        for page in PAGES:
            self.make_project()
            names: dict[str, Any] = {}
            for block in [block for of, block in found if of == page]:
                with self.subTest(page=page, example=block, after="those before it"):
                    self.run_example(page, block, names)

    def make_project(self) -> None:
        shutil.rmtree(self.top / "project", ignore_errors=True)
        (self.top / "project").mkdir()
        (self.top / "project" / "README.md").write_text("TODO: describe it\n")

    def run_example(self, page: str, block: str, names: dict[str, Any]) -> None:
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(block, page, "exec"), names)
        self.assertNotIn("has not read it", output.getvalue())
        for value in names.values():
            if isinstance(value, toolcrib.Session):
                value.close()
            if isinstance(value, subprocess.Popen):
                for stream in (value.stdin, value.stdout):
                    if stream is not None:
                        stream.close()
                value.wait()


if __name__ == "__main__":
    unittest.main()
