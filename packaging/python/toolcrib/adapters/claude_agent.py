"""Claude Agent SDK: options with Toolcrib's tools instead of the built-in ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from toolcrib import AsyncSession
from toolcrib.program import locate_program

from ._framework import from_package

with from_package("claude-agent-sdk"):
    from claude_agent_sdk import ClaudeAgentOptions, SdkMcpTool, create_sdk_mcp_server

_NAME = "toolcrib"


def options(
    root: str | os.PathLike[str] = ".",
    *,
    arguments: Sequence[str] = (),
    binary: str | os.PathLike[str] | None = None,
    **others: Any,
) -> ClaudeAgentOptions:
    """Options whose agent has the tools of `toolcrib serve` in `root`, and no built-in tools.

    `arguments` are more arguments of the command line, such as `["--profile", "read-only"]`. `others` are other options
    of the agent.
    """
    command = ["serve", "--root", os.path.abspath(root), *arguments]
    return _options({"type": "stdio", "command": locate_program(binary), "args": command}, others)


async def session_options(session: AsyncSession, **others: Any) -> ClaudeAgentOptions:
    """The same with the tools of a session, which the caller keeps open, and which it can `restore`."""

    def tool(definition: dict[str, Any]) -> SdkMcpTool[Any]:
        async def call(arguments: dict[str, Any]) -> dict[str, Any]:
            reply = await session.call(definition["name"], arguments)
            content = [{"type": "text", "text": reply.output}, *reply.content]
            return {"content": content, "is_error": not reply.success}

        return SdkMcpTool(definition["name"], definition["description"], definition["inputSchema"], call)

    server = create_sdk_mcp_server(_NAME, tools=[tool(each) for each in await session.tools(format="mcp")])
    return _options(server, others)


def _options(server: Any, others: dict[str, Any]) -> ClaudeAgentOptions:
    servers = {_NAME: server, **others.pop("mcp_servers", {})}
    allowed = [f"mcp__{_NAME}__*", *others.pop("allowed_tools", [])]
    # Settings of the user and of the project can add tools and servers.
    fixed: dict[str, Any] = {"tools": [], "setting_sources": [], "strict_mcp_config": True}
    fixed["permission_mode"] = "dontAsk"
    return ClaudeAgentOptions(mcp_servers=servers, allowed_tools=allowed, **{**fixed, **others})
