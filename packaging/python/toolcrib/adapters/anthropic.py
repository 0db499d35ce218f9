"""Anthropic SDK: Toolcrib's tools for the tool runners, and the agent toolset for `EnvironmentWorker`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from toolcrib import AsyncSession, Reply, Session, ToolcribError

from ._framework import from_package
from ._selection import selected

with from_package("anthropic"):
    from anthropic import beta_async_tool, beta_tool
    from anthropic.lib.tools import BetaAsyncFunctionTool, BetaFunctionTool, ToolError
    from anthropic.lib.tools.agent_toolset import AgentToolContext
    from anthropic.types.beta import (
        BetaManagedAgentsAgentToolset20260401BashInput,
        BetaManagedAgentsAgentToolset20260401EditInput,
        BetaManagedAgentsAgentToolset20260401GlobInput,
        BetaManagedAgentsAgentToolset20260401GrepInput,
        BetaManagedAgentsAgentToolset20260401ReadInput,
        BetaManagedAgentsAgentToolset20260401WriteInput,
    )


def tools(session: Session, names: Sequence[str] | None = None) -> list[BetaFunctionTool[Any]]:
    """Toolcrib's tools, all or those in `names`, for `Anthropic().beta.messages.tool_runner`."""

    def tool(definition: dict[str, Any]) -> BetaFunctionTool[Any]:
        def call(**arguments: Any) -> Any:
            return _content(session.call(definition["name"], arguments))

        return beta_tool(call, **_described(definition))

    return [tool(each) for each in selected(session.tools(format="anthropic"), names)]


async def async_tools(session: AsyncSession, names: Sequence[str] | None = None) -> list[BetaAsyncFunctionTool[Any]]:
    """The same for `AsyncAnthropic().beta.messages.tool_runner`."""

    def tool(definition: dict[str, Any]) -> BetaAsyncFunctionTool[Any]:
        async def call(**arguments: Any) -> Any:
            return _content(await session.call(definition["name"], arguments))

        return beta_async_tool(call, **_described(definition))

    return [tool(each) for each in selected(await session.tools(format="anthropic"), names)]


def agent_toolset(**options: Any) -> Callable[[AgentToolContext], list[BetaAsyncFunctionTool[Any]]]:
    """The value of `EnvironmentWorker(tools=...)`. `options` are the arguments of `AsyncSession`."""
    return lambda context: _AgentToolset(context, options).tools()


class _AgentToolset:
    """The tools of `agent_toolset_20260401` in one session, which the first call starts."""

    def __init__(self, context: AgentToolContext, options: dict[str, Any]) -> None:
        read_only = {str(root) for root in context.read_only_roots}
        others = [str(root) for root in context.allowed_roots if str(root) not in read_only]
        self._roots = [str(context.workdir), *others, *(f"{root}:ro" for root in sorted(read_only))]
        self._options = options
        self._session: AsyncSession | None = None
        self._opening = asyncio.Lock()

    def tools(self) -> list[BetaAsyncFunctionTool[Any]]:
        rows: list[tuple[Any, type[Any]]] = [
            (self.bash, BetaManagedAgentsAgentToolset20260401BashInput),
            (self.read, BetaManagedAgentsAgentToolset20260401ReadInput),
            (self.write, BetaManagedAgentsAgentToolset20260401WriteInput),
            (self.edit, BetaManagedAgentsAgentToolset20260401EditInput),
            (self.glob, BetaManagedAgentsAgentToolset20260401GlobInput),
            (self.grep, BetaManagedAgentsAgentToolset20260401GrepInput),
        ]
        made = [beta_async_tool(function, name=function.__name__, input_schema=schema) for function, schema in rows]
        made[0].close = self.close
        return made

    async def session(self) -> AsyncSession:
        async with self._opening:
            if self._session is None:
                self._session = await AsyncSession(self._roots, **self._options).__aenter__()
            return self._session

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _call(self, tool: str, **arguments: Any) -> Any:
        given = {name: value for name, value in arguments.items() if value is not None}
        return _content(await (await self.session()).call(tool, given))

    async def bash(
        self, command: str | None = None, restart: bool | None = None, timeout_ms: int | None = None
    ) -> Any:
        """Runs a command in bash. The working directory and exports carry over."""
        if restart:
            await self.close()
            return "bash session restarted"
        return await self._call("Bash", command=command or "", timeout=timeout_ms or None, on_timeout="kill")

    async def read(self, file_path: str, view_range: list[int] | None = None) -> Any:
        """Reads a file: text with line numbers, or an image."""
        if view_range is None:
            return await self._call("Read", file_path=file_path)
        if len(view_range) != 2:
            raise ToolError("read: view_range must be [start_line, end_line]")
        first, last = max(1, view_range[0]), view_range[1]
        if last > 0 and last < first:
            raise ToolError("read: view_range ends before it starts")
        return await self._call("Read", file_path=file_path, offset=first, limit=last - first + 1 if last > 0 else None)

    async def write(self, file_path: str, content: str) -> Any:
        """Writes a file; replaces its content."""
        try:
            await (await self.session()).write(file_path, content.encode())
        except ToolcribError as error:
            raise ToolError(f"write: {error}") from error
        return f"wrote {file_path}"

    async def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool | None = None) -> Any:
        """Replaces text in a file."""
        change = {"old_string": old_string, "new_string": new_string, "replace_all": replace_all}
        return await self._call("Edit", file_path=file_path, **change)

    async def glob(self, pattern: str, path: str | None = None) -> Any:
        """Finds files by glob, newest first."""
        return await self._call("Glob", pattern=pattern, path=path)

    async def grep(self, pattern: str, path: str | None = None) -> Any:
        """Searches files for a regular expression; returns the lines that match."""
        return await self._call("Grep", pattern=pattern, path=path, output_mode="content")


def _described(definition: dict[str, Any]) -> dict[str, Any]:
    return {key: definition[key] for key in ("name", "description", "input_schema")}


def _content(reply: Reply) -> Any:
    if not reply.success:
        raise ToolError(reply.output)
    images = [
        {"type": "image", "source": {"type": "base64", "media_type": block["mimeType"], "data": block["data"]}}
        for block in reply.content
        if block.get("type") == "image"
    ]
    return [{"type": "text", "text": reply.output}, *images] if images else reply.output
