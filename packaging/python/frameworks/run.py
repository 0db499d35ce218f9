#!/usr/bin/env python3
"""Tests the adapters with the real frameworks, each in its own virtual environment.

    python3 run.py --cache DIR [--binary toolcrib] [NAME...]

The environments are made in DIR, from the `requirements.txt` of each framework, and are used again by the next run. The
tests use scripted models and connect to loopback only. One line is printed for each framework. The logs are in DIR.
OpenHands and Harbor need Python 3.12; Harbor also needs bubblewrap.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> int:
    names = sorted(path.parent.name for path in HERE.glob("*/requirements.txt"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="frameworks; default: all")
    parser.add_argument("--cache", type=Path, required=True, help="directory of the environments, outside /tmp")
    parser.add_argument("--binary", type=Path, help="the toolcrib program; default: the one on PATH")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the environments")
    given = parser.parse_args()
    unknown = sorted(set(given.names) - set(names))
    if unknown:
        parser.error(f"unknown frameworks: {', '.join(unknown)}; known: {', '.join(names)}")
    binary = given.binary or shutil.which("toolcrib")
    if binary is None:
        parser.error("there is no toolcrib on PATH: name it with --binary")
    cache = given.cache.resolve()
    results = [run(name, cache, Path(binary).resolve(), given.python) for name in given.names or names]
    return 0 if all(results) else 1


def run(name: str, cache: Path, binary: Path, python: str) -> bool:
    requirements = HERE / name / "requirements.txt"
    package = re.split(r"[=\[]", requirements.read_text(), maxsplit=1)[0].strip()
    log = cache / f"{name}.log"
    cache.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        environment = make_environment(name, requirements, cache, python, output)
        if environment is None:
            return report(name, package, "-", f"NOT INSTALLED, see {log}", False)
        interpreter = str(environment / "bin" / "python")
        show = f"from importlib.metadata import version; print(version({package!r}))"
        version = subprocess.run([interpreter, "-c", show], capture_output=True, text=True, check=True).stdout.strip()
        passed = test(name, interpreter, cache, binary, output)
    return report(name, package, version, summary(log, passed), passed)


def make_environment(name: str, requirements: Path, cache: Path, python: str, output) -> Path | None:
    """The environment of a framework. Its name has the hash of what it was made from."""
    tag = subprocess.run([python, "-c", "import sys; print(sys.version)"], capture_output=True, check=True).stdout
    digest = hashlib.sha256(tag + requirements.read_bytes()).hexdigest()[:12]
    environment = cache / f"{name}-{digest}"
    complete = environment / "complete"
    if complete.exists():
        return environment
    subprocess.run([python, "-m", "venv", "--clear", str(environment)], check=True)
    install = [environment / "bin" / "python", "-m", "pip", "install", "--quiet", "--requirement", requirements]
    if subprocess.run(install, stdout=output, stderr=subprocess.STDOUT).returncode != 0:
        return None
    complete.touch()
    return environment


def test(name: str, interpreter: str, cache: Path, binary: Path, output) -> bool:
    runner = ["pytest", "-q", "-p", "no:cacheprovider"] if (HERE / name / "pytest.ini").exists() else ["unittest"]
    # Each session has its own /tmp, so that the workspaces of the tests are elsewhere.
    temporary = cache / "tmp"
    temporary.mkdir(exist_ok=True)
    env = {
        **os.environ,
        "PYTHONPATH": str(HERE.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": str(temporary),
        "TOOLCRIB_BINARY": str(binary),
    }
    command = [interpreter, "-m", *runner]
    done = subprocess.run(command, cwd=HERE / name, env=env, stdout=output, stderr=subprocess.STDOUT, timeout=1800)
    return done.returncode == 0


def summary(log: Path, passed: bool) -> str:
    """The last line of the test runner, with the number of tests."""
    text = log.read_text(errors="replace")
    pytest = re.findall(r"^(\d+ (?:passed|failed|error).*?) in [\d.]+s", text, re.MULTILINE)
    unittest = re.findall(r"^Ran (\d+) tests?", text, re.MULTILINE)
    counted = pytest[-1] if pytest else f"{unittest[-1]} tests" if unittest else "no tests"
    return counted.replace("tests", "passed") if passed else f"FAILED: {counted}, see {log}"


def report(name: str, package: str, version: str, result: str, passed: bool) -> bool:
    print(f"{name:<15} {package:<18} {version:<10} {result}", flush=True)
    return passed


if __name__ == "__main__":
    sys.exit(main())
