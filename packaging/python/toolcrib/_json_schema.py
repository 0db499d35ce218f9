"""JSON Schema of Python types."""

import dataclasses
import enum
import inspect
import types
import typing
from typing import Annotated, Any, Literal, Union, get_args, get_origin, is_typeddict

from ._frames import JsonObject
from .errors import InvalidArgument

_SIMPLE: dict[Any, JsonObject] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
    inspect.Parameter.empty: {},
    list: {"type": "array"},
    tuple: {"type": "array"},
    dict: {"type": "object"},
}


def schema_of(annotation: Any) -> JsonObject:
    """The schema of a type. A text in `Annotated` is its description."""
    try:
        if annotation in _SIMPLE:
            return dict(_SIMPLE[annotation])
    except TypeError:
        # Not hashable, so not a simple type.
        pass
    if isinstance(annotation, type):
        named = _named(annotation)
        if named is not None:
            return named
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        texts = [one for one in args[1:] if isinstance(one, str)]
        schema = schema_of(args[0])
        return {**schema, "description": texts[0]} if texts else schema
    if origin is Literal:
        return {"enum": list(args)}
    if origin is Union or origin is types.UnionType:
        return _union([schema_of(one) for one in args])
    if isinstance(origin, type):
        if issubclass(origin, dict) or origin.__name__ in ("Mapping", "MutableMapping"):
            return {"type": "object", "additionalProperties": schema_of(args[1])}
        if origin is tuple and Ellipsis not in args:
            return {"type": "array", "prefixItems": [schema_of(one) for one in args], "minItems": len(args)}
        if origin.__name__ in ("list", "tuple", "Sequence", "Iterable", "Collection"):
            return {"type": "array", "items": schema_of(args[0])}
        if origin.__name__ in ("set", "frozenset", "Set"):
            return {"type": "array", "items": schema_of(args[0]), "uniqueItems": True}
    raise InvalidArgument(
        f"no JSON Schema is known for the type {annotation!r}",
        "Use str, int, float, bool, None, list, dict, Literal, Enum, TypedDict or a dataclass, or pass `schema=`.",
    )


def _named(annotation: Any) -> JsonObject | None:
    """The schema of an enumeration, a dataclass or a TypedDict."""
    if issubclass(annotation, enum.Enum):
        return {"enum": [one.value for one in annotation]}
    if dataclasses.is_dataclass(annotation):
        hints = typing.get_type_hints(annotation, include_extras=True)
        missing = dataclasses.MISSING
        fields = dataclasses.fields(annotation)
        required = [one.name for one in fields if one.default is missing and one.default_factory is missing]
        return object_schema({one.name: schema_of(hints[one.name]) for one in fields}, required)
    if is_typeddict(annotation):
        hints = typing.get_type_hints(annotation, include_extras=True)
        keys: list[str] = sorted(getattr(annotation, "__required_keys__", ()))
        return object_schema({name: schema_of(_unwrapped(hint)) for name, hint in hints.items()}, keys)
    return None


def _unwrapped(hint: Any) -> Any:
    """The type in `Required[…]` or `NotRequired[…]`."""
    name = getattr(get_origin(hint), "_name", "")
    return get_args(hint)[0] if name in ("Required", "NotRequired") else hint


def object_schema(properties: JsonObject, required: list[str]) -> JsonObject:
    """The schema of an object that has no other members."""
    schema: JsonObject = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def _union(schemas: list[JsonObject]) -> JsonObject:
    types_only = all(set(one) == {"type"} and isinstance(one["type"], str) for one in schemas)
    if types_only:
        return {"type": [one["type"] for one in schemas]}
    return {"anyOf": schemas}
