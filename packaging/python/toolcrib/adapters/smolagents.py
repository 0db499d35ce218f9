"""smolagents: Toolcrib's tools as native tools."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from toolcrib import Session

from ._framework import from_package
from ._selection import selected

with from_package("smolagents"):
    from smolagents import Tool


class ToolcribTool(Tool):
    """A tool of a session.

    Inputs are Python identifiers, so that a `CodeAgent` can name them: Grep's `-i` is `i`. A failure raises
    `RuntimeError`, which the agent shows to the model.
    """

    skip_forward_signature_validation = True
    output_type = "string"

    def __init__(self, session: Session, definition: dict[str, Any]) -> None:
        super().__init__()
        schema = definition["inputSchema"]
        required = schema.get("required", [])
        self.name = definition["name"]
        self.description = definition["description"]
        self._session = session
        self._names = {re.sub(r"\W", "", name): name for name in schema["properties"]}
        self.inputs = {
            given: _input(schema["properties"][name], name in required) for given, name in self._names.items()
        }

    def forward(self, *values: Any, **named: Any) -> str:
        given = {**dict(zip(self.inputs, values)), **named}
        arguments = {self._names[name]: value for name, value in given.items() if value is not None}
        reply = self._session.call(self.name, arguments)
        if not reply.success:
            raise RuntimeError(reply.output)
        return reply.output


def tools(session: Session, names: Sequence[str] | None = None) -> list[ToolcribTool]:
    """Toolcrib's tools, all or those in `names`."""
    return [ToolcribTool(session, each) for each in selected(session.tools(format="mcp"), names)]


def _input(schema: dict[str, Any], is_required: bool) -> dict[str, Any]:
    described = {"type": "any", "description": "", **schema}
    # smolagents treats an input as required unless it is nullable.
    return described if is_required else {**described, "nullable": True}
