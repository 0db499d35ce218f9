"""The file methods of a session, for threads."""

from abc import ABC, abstractmethod
from typing import TypeVar

from . import _operations as operations
from ._operations import Operation, Path, Steps
from .results import Listing, Restored, Stat, Written

T = TypeVar("T")


class FileMethods(ABC):
    """Exact bytes and directories, with the policy and the journal of the tools.

    Paths are absolute or relative to the first root. The session's /tmp is `/tmp`.
    """

    @abstractmethod
    def _run(self, operation: Operation[T]) -> T: ...

    @abstractmethod
    def _run_steps(self, steps: Steps[T]) -> T: ...

    def read(self, path: Path, offset: int = 0, limit: int | None = None) -> bytes:
        """The bytes of a file from `offset`, all or at most `limit`."""
        return self._run_steps(operations.read(path, offset, limit))

    def write(
        self, path: Path, data: bytes | str, append: bool = False, executable: bool | None = None
    ) -> Written:
        """Writes a file, or appends to it. Missing directories are made. The mode is kept unless `executable` is given.

        Data of more than 32 MiB is appended in parts: several changes, of which `Written.change` is the first.
        """
        raw = operations.as_bytes(data, "data")
        return self._run_steps(operations.write(path, raw, append, executable))

    def stat(self, path: Path, follow: bool = True) -> Stat:
        """Kind, size, mode and modification time of a path; with `follow=False` of a symlink itself."""
        return self._run(operations.stat(path, follow))

    def list(self, path: Path = ".") -> Listing:
        """The entries of a directory, sorted by name."""
        return self._run(operations.list_directory(path))

    def mkdir(self, path: Path, parents: bool = True, exist_ok: bool = True) -> bool:
        """Makes a directory. Returns whether it was created."""
        return self._run(operations.mkdir(path, parents, exist_ok))

    def remove(self, path: Path, recursive: bool = False, missing_ok: bool = False) -> int:
        """Removes a file or a directory. Returns the number of removed files and directories."""
        return self._run(operations.remove(path, recursive, missing_ok))

    def move(self, source: Path, target: Path, overwrite: bool = False) -> int | None:
        """Moves a file or a directory. Returns the id of the change."""
        return self._run(operations.move(source, target, overwrite))

    def realpath(self, path: Path) -> str:
        """The absolute path without symlinks."""
        return self._run(operations.realpath(path))

    def snapshot(self) -> int:
        """The present point in the journal, for `restore`."""
        return self._run(operations.snapshot())

    def restore(self, snapshot: int) -> Restored:
        """Reverts all changes since a snapshot, by tools, commands and raw writes.

        Raises `Conflict` if later edits of others overlap; nothing is written then.
        """
        return self._run(operations.restore(snapshot))
