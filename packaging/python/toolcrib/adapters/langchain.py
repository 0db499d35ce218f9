"""LangChain and LangGraph: Toolcrib's tools as structured tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolcrib import AsyncSession, Reply, Session

from ._framework import from_package
from ._selection import selected

with from_package("langchain"):
    from langchain_core.tools import StructuredTool, ToolException


def tools(session: Session, names: Sequence[str] | None = None) -> list[StructuredTool]:
    """Toolcrib's tools, all or those in `names`."""

    def caller(name: str) -> dict[str, Any]:
        return {"func": lambda **arguments: _text(session.call(name, arguments))}

    return [_tool(each, caller(each["name"])) for each in selected(session.tools(format="mcp"), names)]


async def async_tools(session: AsyncSession, names: Sequence[str] | None = None) -> list[StructuredTool]:
    """The same for an `AsyncSession`. These tools have no synchronous form."""

    def caller(name: str) -> dict[str, Any]:
        async def call(**arguments: Any) -> str:
            return _text(await session.call(name, arguments))

        return {"coroutine": call}

    return [_tool(each, caller(each["name"])) for each in selected(await session.tools(format="mcp"), names)]


def _tool(definition: dict[str, Any], caller: dict[str, Any]) -> StructuredTool:
    return StructuredTool(
        name=definition["name"],
        description=definition["description"],
        args_schema=definition["inputSchema"],
        handle_tool_error=True,
        **caller,
    )


def _text(reply: Reply) -> str:
    if not reply.success:
        raise ToolException(reply.output)
    return reply.output
