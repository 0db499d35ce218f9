"""Tools that are functions of this process."""

import dataclasses
import enum
import inspect
import json
import re
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ._frames import JsonObject
from ._json_schema import object_schema, schema_of
from .errors import InvalidArgument

_ARGUMENTS = re.compile(r"^(Args|Arguments|Parameters):\s*$")
_SECTION = re.compile(r"^(Returns|Return|Raises|Yields|Examples?|Notes?):\s*$")
_ARGUMENT = re.compile(r"^(\s+)\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")


@dataclass(frozen=True)
class OwnTool:
    """A function with its name, its description for the model and the schema of its arguments."""

    name: str
    description: str
    schema: JsonObject
    read_only: bool
    reaches: str | None
    is_async: bool
    function: Callable[..., Any]

    @staticmethod
    def from_function(
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        schema: JsonObject | None = None,
        read_only: bool = False,
        reaches: str | None = None,
    ) -> "OwnTool":
        """The tool of a function: the description is its docstring, the schema comes from its annotations."""
        summary, arguments = _parse_docstring(inspect.getdoc(function) or "")
        given = name or getattr(function, "__name__", "")
        if not given or given == "<lambda>":
            raise InvalidArgument("the tool has no name", "Pass `name=`.")
        described = description or summary
        if not described:
            raise InvalidArgument(
                f"the tool {given} has no description", "Write a docstring, or pass `description=`."
            )
        return OwnTool(
            name=given,
            description=described,
            schema=schema if schema is not None else _schema(function, arguments),
            read_only=read_only,
            reaches=reaches,
            is_async=inspect.iscoroutinefunction(function),
            function=function,
        )

    def call(self, args: JsonObject) -> Any:
        """Calls the function. The result may be an awaitable."""
        return self.function(**args)

    def text(self, value: Any) -> str:
        """The text of a result for the model."""
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return str(value)


def _schema(function: Callable[..., Any], descriptions: dict[str, str]) -> JsonObject:
    hints = typing.get_type_hints(function, include_extras=True)
    properties: JsonObject = {}
    required: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise InvalidArgument(
                f"the parameter {parameter} of a tool cannot be passed by name", "Give it a name, or remove it."
            )
        one = schema_of(hints.get(parameter.name, Any))
        if parameter.name in descriptions and "description" not in one:
            one["description"] = descriptions[parameter.name]
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        elif isinstance(parameter.default, (str, int, float, bool)) and not isinstance(parameter.default, enum.Enum):
            one["default"] = parameter.default
        properties[parameter.name] = one
    return object_schema(properties, required)


def _parse_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description in a docstring, and the descriptions in its section `Args:`."""
    summary: list[str] = []
    arguments: dict[str, str] = {}
    in_arguments, in_other, indent, last = False, False, 0, ""
    for line in text.splitlines():
        if _ARGUMENTS.match(line):
            in_arguments, in_other = True, False
        elif _SECTION.match(line):
            in_arguments, in_other = False, True
        elif line and not line[0].isspace() and (in_arguments or in_other):
            in_arguments, in_other = False, False
            summary.append(line)
        elif in_arguments:
            match = _ARGUMENT.match(line)
            if match and (not indent or len(match[1]) == indent):
                indent, last = len(match[1]), match[2]
                arguments[last] = match[3].strip()
            elif last and line.strip():
                arguments[last] = f"{arguments[last]} {line.strip()}".strip()
        elif not in_other:
            summary.append(line)
    return "\n".join(summary).strip(), arguments
