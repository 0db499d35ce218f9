"""Copies files and directories between this process and a session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from toolcrib import AsyncSession, Session


def _uploads(source: str | os.PathLike[str], target: str) -> Iterator[tuple[Path, str, bool]]:
    """The files below `source` with their paths below `target`, and whether they are executable."""
    if not os.path.isdir(source):
        yield Path(source), target, os.access(source, os.X_OK)
        return
    for directory, _, names in os.walk(source, followlinks=True):
        for name in names:
            path = Path(directory, name)
            if path.is_file():
                yield path, os.path.join(target, path.relative_to(source)), os.access(path, os.X_OK)


def upload(session: Session, source: str | os.PathLike[str], target: str) -> None:
    """Copies a file to the file `target`, or the content of a directory into the directory `target`."""
    uploads = list(_uploads(source, target))
    if not uploads:
        session.mkdir(target)
    for path, name, executable in uploads:
        session.write(name, path.read_bytes(), executable=executable)


async def async_upload(session: AsyncSession, source: str | os.PathLike[str], target: str) -> None:
    """The same for an `AsyncSession`."""
    uploads = list(_uploads(source, target))
    if not uploads:
        await session.mkdir(target)
    for path, name, executable in uploads:
        await session.write(name, path.read_bytes(), executable=executable)


async def async_download_directory(session: AsyncSession, source: str, target: str | os.PathLike[str]) -> None:
    """Copies the files below the directory `source` into the directory `target`. Symlinks are followed."""
    os.makedirs(target, exist_ok=True)
    for entry in await session.list(source):
        path, copy = f"{source}/{entry.name}", Path(target, entry.name)
        kind = (await session.stat(path)).kind if entry.kind == "symlink" else entry.kind
        if kind == "directory":
            await async_download_directory(session, path, copy)
        elif kind == "file":
            copy.write_bytes(await session.read(path))
