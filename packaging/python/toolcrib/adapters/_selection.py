"""The tools that an adapter offers."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from toolcrib import InvalidArgument


def selected(definitions: list[dict[str, Any]], names: Sequence[str] | None) -> list[dict[str, Any]]:
    """The definitions in `names`, or all. An agent without a tool that its program names would only seem to work."""
    if names is None:
        return definitions
    wanted = [names] if isinstance(names, str) else names
    known = [each["name"] for each in definitions]
    for name in wanted:
        if name not in known:
            close = difflib.get_close_matches(str(name), known, 1)
            question = f"Did you mean {close[0]}? " if close else ""
            raise InvalidArgument(f"the session has no tool {name}", f"{question}Its tools are: {', '.join(known)}.")
    return [each for each in definitions if each["name"] in wanted]
