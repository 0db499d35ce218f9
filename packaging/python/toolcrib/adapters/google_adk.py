"""Google ADK: an environment for `EnvironmentToolset`, and a toolset of Toolcrib's tools."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolcrib import AsyncSession

from ._framework import from_package
from ._os_errors import os_errors
from ._run_command import async_run
from ._selection import selected

with from_package("google-adk"):
    from google.adk.environment import BaseEnvironment, ExecutionResult
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.base_toolset import BaseToolset
    from google.genai import types


class ToolcribEnvironment(BaseEnvironment):
    """Runs commands and changes files in a directory; use it in place of `LocalEnvironment`.

    Without `working_dir` it is a temporary directory, which `close` removes. `options` are the arguments of
    `AsyncSession`.
    """

    def __init__(self, working_dir: str | os.PathLike[str] | None = None, **options: Any) -> None:
        self._working_dir = None if working_dir is None else Path(working_dir).absolute()
        self._is_temporary = working_dir is None
        self._options = options
        self._session: AsyncSession | None = None

    @property
    def working_dir(self) -> Path:
        if self._working_dir is None:
            raise RuntimeError("the environment is not initialized")
        return self._working_dir

    @property
    def session(self) -> AsyncSession:
        """The session of this environment, for `call`, `snapshot`, `restore` and `undo`."""
        if self._session is None:
            raise RuntimeError("the environment is not initialized")
        return self._session

    async def initialize(self) -> None:
        if self._session is not None:
            return
        if self._working_dir is None:
            self._working_dir = Path(tempfile.mkdtemp(prefix="toolcrib-adk-"))
        os.makedirs(self._working_dir, exist_ok=True)
        self._session = await AsyncSession(self._working_dir, **self._options).__aenter__()
        self._is_initialized = True

    async def close(self) -> None:
        session, self._session = self._session, None
        self._is_initialized = False
        if session is not None:
            await session.close()
        if self._is_temporary and self._working_dir is not None:
            shutil.rmtree(self._working_dir, ignore_errors=True)
            self._working_dir = None

    async def execute(self, command: str, *, timeout: float | None = None) -> ExecutionResult:
        done = await async_run(self.session, command, timeout=timeout)
        stdout, stderr = done.texts()
        return ExecutionResult(exit_code=done.status, stdout=stdout, stderr=stderr, timed_out=done.timed_out)

    async def read_file(self, path: str | Path) -> bytes:
        with os_errors(path):
            return await self.session.read(path)

    async def write_file(self, path: str | Path, content: str | bytes) -> None:
        with os_errors(path):
            await self.session.write(path, content)


class ToolcribToolset(BaseToolset):
    """Toolcrib's tools, all or those in `names`. The caller opens and closes the session."""

    def __init__(self, session: AsyncSession, names: Sequence[str] | None = None) -> None:
        super().__init__()
        self._session = session
        self._names = names

    async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
        definitions = selected(await self._session.tools(format="mcp"), self._names)
        return [_Tool(self._session, definition) for definition in definitions]


class _Tool(BaseTool):
    def __init__(self, session: AsyncSession, definition: dict[str, Any]) -> None:
        super().__init__(name=definition["name"], description=definition["description"])
        self._session = session
        self._schema = definition["inputSchema"]

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._schema
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> dict[str, str]:
        reply = await self._session.call(self.name, args)
        return {"output": reply.output} if reply.success else {"error": reply.output}
