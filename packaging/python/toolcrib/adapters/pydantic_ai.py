"""Pydantic AI: a workspace backend, a capability that supplies it, and Toolcrib's tools as a toolset."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from toolcrib import AsyncSession, NotFound, SessionClosed, ToolcribError

from ._framework import from_package
from ._os_errors import os_errors
from ._run_command import async_run
from ._selection import selected

with from_package("pydantic-ai-slim"):
    from pydantic_ai import FunctionToolset, RunContext, Tool
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.workspaces import (
        CommandResult,
        FileEntry,
        SupportsCommands,
        SupportsFilesystem,
        SupportsRealpath,
        WorkspaceBackend,
        WorkspaceCommand,
        WorkspaceRef,
        WorkspaceTimeoutError,
        WorkspaceUnavailableError,
    )

PROVIDER = "toolcrib"


class ToolcribBackend(WorkspaceBackend, SupportsCommands, SupportsFilesystem, SupportsRealpath):
    """A directory in which Toolcrib runs commands and changes files.

    The first operation starts a session. `close` ends it, and a later operation starts another one.
    `options` are the arguments of `AsyncSession`.
    """

    def __init__(self, root: str | os.PathLike[str], **options: Any) -> None:
        self._root = os.path.abspath(os.path.expanduser(os.fspath(root)))
        self._options = options
        self._ref: WorkspaceRef | None = None
        self._session: AsyncSession | None = None
        self._opening = asyncio.Lock()

    @property
    def ref(self) -> WorkspaceRef | None:
        return self._ref

    async def session(self) -> AsyncSession:
        """The session of this workspace, for `call`, `snapshot`, `restore` and `undo`."""
        async with self._opening:
            self._check_alive()
            if self._session is None:
                session = AsyncSession(self._root, **self._options)
                self._session = await session.__aenter__()
                self._ref = WorkspaceRef(provider=PROVIDER, id=os.path.realpath(self._root))
            return self._session

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _check_alive(self) -> None:
        if not os.path.isdir(self._root):
            raise WorkspaceUnavailableError(f"the workspace directory {self._root} does not exist")

    async def working_dir(self) -> str:
        await self.session()
        return os.path.realpath(self._root)

    async def run(
        self,
        command: WorkspaceCommand,
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> CommandResult:
        if isinstance(command, str) != shell:
            raise TypeError("a string needs shell=True, and an argv sequence needs shell=False")
        session = await self.session()
        try:
            argv = command if isinstance(command, str) else list(command)
            done = await async_run(session, argv, env=dict(env or {}), timeout=timeout)
        except ToolcribError as error:
            self._check_alive()
            if isinstance(error, SessionClosed):
                raise WorkspaceUnavailableError(str(error)) from error
            raise
        self._check_alive()
        stdout, stderr = done.texts()
        if done.timed_out:
            message = f"the command was ended after {timeout:g} s"
            raise WorkspaceTimeoutError(message, stdout=stdout, stderr=stderr)
        return CommandResult(exit_code=done.status, stdout=stdout, stderr=stderr)

    async def read_bytes(self, path: str) -> bytes:
        session = await self.session()
        with os_errors(path):
            return await session.read(path)

    async def write_bytes(self, path: str, data: bytes) -> None:
        session = await self.session()
        with os_errors(path), _parents_are_made(path):
            await session.write(path, data)

    async def stat(self, path: str) -> FileEntry:
        session = await self.session()
        with os_errors(path):
            found = await session.stat(path)
        is_dir = found.kind == "directory"
        return FileEntry(name=os.path.basename(path), path=path, is_dir=is_dir, size=None if is_dir else found.size)

    async def list_dir(self, path: str) -> Sequence[FileEntry]:
        session = await self.session()
        with os_errors(path):
            entries = await session.list(path)
        return [await self._entry(os.path.join(path, entry.name), entry.kind, entry.size) for entry in entries]

    async def _entry(self, path: str, kind: str, size: int | None) -> FileEntry:
        if kind == "symlink":
            try:
                return await self.stat(path)
            except OSError:  # The link is broken, is a loop, or leads to a path that is not accessible.
                size = None
        is_dir = kind == "directory"
        return FileEntry(name=os.path.basename(path), path=path, is_dir=is_dir, size=None if is_dir else size)

    async def make_dir(self, path: str) -> None:
        session = await self.session()
        with os_errors(path), _parents_are_made(path):
            await session.mkdir(path)

    async def remove(self, path: str) -> None:
        session = await self.session()
        root = os.path.realpath(self._root)
        parent = await self.realpath(os.path.dirname(path))
        target = os.path.normpath(os.path.join(parent, os.path.basename(path)))
        if os.path.commonpath([root, target]) == target:
            raise ValueError("the workspace directory and its ancestors cannot be removed")
        with os_errors(path):
            try:
                await session.remove(path, recursive=True)
            except ToolcribError as error:
                # Files that Toolcrib does not read, such as a FIFO or a file of mode 000, are removed by a command.
                if error.kind not in ("not_regular", "permission"):
                    raise
                if not (await session.exec(["rm", "-rf", "--", path])).success:
                    raise

    async def exists(self, path: str) -> bool:
        try:
            await self.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    async def realpath(self, path: str) -> str:
        session = await self.session()
        with os_errors(path):
            try:
                return await session.realpath(path)
            except NotFound:
                # Here the missing part of a path is kept.
                done = (await session.exec(["readlink", "-mz", "--", path])).check()
                return os.fsdecode(done.stdout.rstrip(b"\0"))


@contextmanager
def _parents_are_made(path: str) -> Iterator[None]:
    """Missing parents are made, so that only a parent that is a file is reported as missing."""
    try:
        yield
    except NotFound as error:
        raise NotADirectoryError(errno.ENOTDIR, error.message, path) from error


@dataclass
class ToolcribWorkspace(AbstractCapability[Any]):
    """Gives the runs of an agent a confined, journaled workspace in `root`; use it in place of `LocalWorkspace`."""

    root: str | os.PathLike[str]
    _: KW_ONLY
    options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `AsyncSession`."""
    id: str | None = "toolcrib_workspace"

    def get_workspace(self, ctx: RunContext[Any], *, ref: WorkspaceRef | None) -> WorkspaceBackend | None:
        own = WorkspaceRef(provider=PROVIDER, id=os.path.realpath(os.path.expanduser(os.fspath(self.root))))
        if ref is not None and ref != own:
            return None
        return ToolcribBackend(self.root, **self.options)

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> Any:
        """Ends the session of the run with the run."""
        try:
            return await handler()
        finally:
            backend = ctx.workspace.backend
            if isinstance(backend, ToolcribBackend):
                await backend.close()


async def toolset(session: AsyncSession, names: Sequence[str] | None = None) -> FunctionToolset[Any]:
    """Toolcrib's tools, all or those in `names`."""

    def tool(definition: dict[str, Any]) -> Tool[Any]:
        async def call(**arguments: Any) -> str:
            return (await session.call(definition["name"], arguments)).output

        return Tool.from_schema(call, definition["name"], definition["description"], definition["inputSchema"])

    return FunctionToolset([tool(each) for each in selected(await session.tools(format="mcp"), names)])
