"""Obtains the projects of definition_sources.json by their names in the registries, once, into a directory."""

import io
import json
import re
import shutil
import subprocess
import tarfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).with_name("definition_sources.json")
SUFFIXES = {"rust": (".rs",), "python": (".py",), "typescript": (".ts",), "go": (".go",)}
# No package of the list is nearly as large.
MAX_BYTES = 50_000_000
PATIENCE = 120


class Unreachable(Exception):
    """A project that no registry gives."""


@dataclass
class Project:
    language: str
    name: str
    version: str
    directory: Path
    # First compared when the errors found in the first set were fixed.
    in_second_set: bool

    def files(self) -> list[Path]:
        """The source files, without those of a declaration only."""
        suffixes = SUFFIXES[self.language]
        found = (path for path in self.directory.rglob("*") if path.suffix in suffixes and path.is_file())
        return sorted(path for path in found if not path.name.endswith(".d.ts"))

    def label(self) -> str:
        return f"{self.name} {self.version}"


def obtain(top: Path, smoke: bool) -> tuple[list[Project], list[str]]:
    """The projects, or those of a smoke run, and why others are missing."""
    projects, missing = [], []
    for entry in json.loads(LIST.read_text())["projects"]:
        if smoke and not entry.get("smoke"):
            continue
        name = entry["name"].rpartition("/")[2]
        directory = top / entry["language"] / f"{name}-{entry['version'].removeprefix('v')}"
        if not directory.is_dir():
            try:
                unpack(entry, directory)
            except (Unreachable, OSError, tarfile.TarError, zipfile.BadZipFile) as error:
                missing.append(f"{entry['name']} {entry['version']}: {error}")
                continue
        in_second_set = entry.get("second_set", False)
        projects.append(Project(entry["language"], entry["name"], entry["version"], directory, in_second_set))
    return projects, missing


def unpack(entry: dict, directory: Path) -> None:
    """Unpacks a project beside its directory first, so that a directory is complete."""
    aside = directory.with_name(directory.name + ".part")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    {"crates.io": crate, "pypi": sdist, "npm": npm_package, "go": go_module}[entry["registry"]](entry, aside)
    aside.rename(directory)


def crate(entry: dict, into: Path) -> None:
    name, version = entry["name"], entry["version"]
    untar(download(f"https://static.crates.io/crates/{name}/{name}-{version}.crate"), into)


def npm_package(entry: dict, into: Path) -> None:
    name, version = entry["name"], entry["version"]
    untar(download(f"https://registry.npmjs.org/{name}/-/{name}-{version}.tgz"), into)


def sdist(entry: dict, into: Path) -> None:
    index = f"https://pypi.org/simple/{entry['name']}/"
    file = re.escape(f"{entry['name']}-{entry['version']}.tar.gz")
    link = re.search(rf'href="([^"#]*{file})[^"]*"', download(index).decode())
    if link is None:
        raise Unreachable(f"{index} has no such version")
    untar(download(urllib.parse.urljoin(index, link[1])), into)


def go_module(entry: dict, into: Path) -> None:
    """A module of the proxy, or the same version of it in Debian."""
    try:
        archive = download(f"https://proxy.golang.org/{entry['name']}/@v/{entry['version']}.zip")
    except Unreachable as why:
        debian_package(entry, into, why)
        return
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        opened.extractall(into)


def debian_package(entry: dict, into: Path, why: Unreachable) -> None:
    package = entry["debian"]
    try:
        subprocess.run(
            ["apt-get", "download", "--quiet", package], cwd=into, check=True, capture_output=True, timeout=PATIENCE
        )
        (archive,) = into.glob("*.deb")
        if f"_{entry['version'].removeprefix('v')}-" not in archive.name:
            raise Unreachable(f"{why}; {archive.name} is another version")
        subprocess.run(["dpkg-deb", "-x", archive, into], check=True, capture_output=True, timeout=PATIENCE)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise Unreachable(f"{why}; {package}: {error}") from error
    archive.unlink()


def download(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=PATIENCE) as reply:
            content = reply.read(MAX_BYTES + 1)
    except urllib.error.URLError as error:
        raise Unreachable(f"{address}: {error.reason}") from error
    if len(content) > MAX_BYTES:
        raise Unreachable(f"{address}: too large")
    return content


def untar(archive: bytes, into: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        opened.extractall(into, filter="data")
