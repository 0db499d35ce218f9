"""Checks the output of `toolcrib tools --format …` with the client libraries of the APIs.

Usage: tool_formats.py PATH-OF-TOOLCRIB

Prints one line per format. Stops at the first that is refused and exits with 1.

The libraries are lenient: most drop unknown keys and correct errors. So a document passes only if the library accepts
it *and* does not change it. Each check must also reject the document with a planted fault, so that it is known to
detect faults.
"""

import copy
import json
import re
import subprocess
import sys
import warnings

import anthropic.types
import google.genai.types
import jsonschema
import mcp.types
import openai.types.chat
import pydantic

# As sent, without spaces. The list is part of every prompt, so its size is limited.
MCP_MAX_BYTES = 16_000
# OpenAI's limit: https://platform.openai.com/docs/api-reference/chat/create
OPENAI_MAX_DESCRIPTION = 1024
# OpenAI and Anthropic document this pattern; Gemini accepts all names that match it.
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class Refused(Exception):
    """A failed check."""


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name, (check, faults) in FORMATS.items():
        try:
            printed = run(sys.argv[1], name)
            document = parse(printed)
            count = check(document)
            need(count > 0, "there is no tool in it")
            for what, plant in faults.items():
                must_refuse(check, document, what, plant)
        except Refused as refused:
            sys.exit(f"{name}: {refused}")
        print(f"{name:<10}{count:>3} tools, {len(printed):>6} bytes: accepted")


def run(binary: str, name: str) -> bytes:
    command = [binary, "tools", "--format", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise Refused(f"`{' '.join(command)}` ended with {done.returncode}")
    return done.stdout


def parse(printed: bytes):
    try:
        return json.loads(printed)
    except ValueError as error:
        raise Refused(f"not JSON: {error}") from error


def must_refuse(check, document, what: str, plant) -> None:
    faulty = copy.deepcopy(document)
    plant(faulty)
    try:
        check(faulty)
    except Refused:
        return
    raise Refused(f"the oracle is blind: it accepts {what}")


# --- the four formats: each takes the document and returns how many tools it has --------------------


def check_mcp(document) -> int:
    """The result of `tools/list`: {"tools": [{name, description, inputSchema, …}]}."""
    size = len(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode())
    need(size < MCP_MAX_BYTES, f"{size} bytes, and the limit is {MCP_MAX_BYTES}")
    adapter = pydantic.TypeAdapter(mcp.types.ListToolsResult)
    unchanged_by(adapter, document)
    for tool in document["tools"]:
        check_tool(tool)
        check_json_schema(tool["name"], tool["inputSchema"])
    return len(document["tools"])


def check_openai(document) -> int:
    """Chat completions: [{"type": "function", "function": {name, description, parameters}}]."""
    adapter = pydantic.TypeAdapter(list[openai.types.chat.ChatCompletionToolParam])
    unchanged_by(adapter, document)
    for tool in document:
        function = tool["function"]
        check_tool(function)
        name, length = function["name"], len(function["description"])
        need(
            length <= OPENAI_MAX_DESCRIPTION,
            f"{name}: a description of {length} characters; the limit is {OPENAI_MAX_DESCRIPTION}",
        )
        check_json_schema(name, function.get("parameters"))
        need(not uses_key(function["parameters"], "$ref"), f"{name}: parameters use $ref")
    return len(document)


def check_anthropic(document) -> int:
    """Messages: [{name, description, input_schema}]."""
    adapter = pydantic.TypeAdapter(list[anthropic.types.ToolParam])
    unchanged_by(adapter, document)
    for tool in document:
        check_tool(tool)
        check_json_schema(tool["name"], tool["input_schema"])
    return len(document)


def check_gemini(document) -> int:
    """generateContent: [{"functionDeclarations": [{name, description, parameters}]}].

    The library takes `object` for OBJECT and snake_case for camelCase, and corrects both in silence;
    `unchanged_by` makes that a refusal.
    """
    adapter = pydantic.TypeAdapter(list[google.genai.types.Tool])
    unchanged_by(adapter, document)
    functions = [function for tool in document for function in tool.get("functionDeclarations", [])]
    for function in functions:
        check_tool(function)
        need("parameters" in function, f"{function['name']}: no parameters")
        check_gemini_schema(function["name"], function["parameters"])
    return len(functions)


def check_gemini_schema(where: str, schema) -> None:
    """Checks rules of the Gemini API that its library does not check."""
    need("type" in schema or "anyOf" in schema, f"{where}: a schema without a type")
    # The library refuses this only when it sends the request.
    need("additionalProperties" not in schema, f"{where}: additionalProperties is for Vertex only")
    if schema.get("type") == "OBJECT":
        need(schema.get("properties"), f"{where}: an OBJECT needs at least one property")
    if schema.get("type") == "ARRAY":
        need("items" in schema, f"{where}: an ARRAY needs items")
    missing = set(schema.get("required", [])) - set(schema.get("properties", {}))
    need(not missing, f"{where}: required, but no property: {', '.join(sorted(missing))}")
    for name, inner in schema.get("properties", {}).items():
        check_gemini_schema(f"{where}.{name}", inner)
    if "items" in schema:
        check_gemini_schema(f"{where}[]", schema["items"])
    for inner in schema.get("anyOf", []):
        check_gemini_schema(where, inner)


# --- shared checks -----------------------------------------------------------------------------------


def need(condition, otherwise: str) -> None:
    if not condition:
        raise Refused(otherwise)


def check_tool(tool) -> None:
    name = tool.get("name", "")
    need(TOOL_NAME.fullmatch(name), f"`{name}` is not a name for a tool")
    need(tool.get("description"), f"{name}: no description")


def check_json_schema(where: str, schema) -> None:
    need(isinstance(schema, dict), f"{where}: no schema for its parameters")
    need(schema.get("type") == "object", f"{where}: the parameters are not an object")
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise Refused(f"{where}: not a JSON Schema at {error.json_path}: {error.message}") from error


def unchanged_by(adapter: pydantic.TypeAdapter, document) -> None:
    """Fails if the library rejects the document, or silently changes or drops something."""
    try:
        # The Gemini library only warns about a type that does not exist.
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            understood = adapter.validate_python(document)
            again = adapter.dump_python(understood, mode="json", by_alias=True, exclude_unset=True)
    except (pydantic.ValidationError, Warning) as error:
        raise Refused(f"the client library refuses it: {error}") from error
    where = first_difference(document, again, "$")
    need(where is None, f"the client library does not know {where}")


def first_difference(given, understood, path: str) -> str | None:
    if isinstance(given, dict) and isinstance(understood, dict):
        for key, value in given.items():
            if key not in understood:
                return f"{path}.{key}"
            if found := first_difference(value, understood[key], f"{path}.{key}"):
                return found
        return None
    if isinstance(given, list) and isinstance(understood, list) and len(given) == len(understood):
        for at, (value, other) in enumerate(zip(given, understood)):
            if found := first_difference(value, other, f"{path}[{at}]"):
                return found
        return None
    return None if given == understood else f"{path} = {given!r}"


def uses_key(value, key: str) -> bool:
    if isinstance(value, dict):
        return key in value or any(uses_key(inner, key) for inner in value.values())
    if isinstance(value, list):
        return any(uses_key(inner, key) for inner in value)
    return False


# --- the table: each format with its check and the faults that it must detect --------------------------

FORMATS = {
    "mcp": (
        check_mcp,
        {
            "a tool without inputSchema": lambda d: d["tools"][0].pop("inputSchema"),
            "an unknown key in a tool": lambda d: d["tools"][0].update(bogus=1),
            "a snake_case key": lambda d: d["tools"][0].update(output_schema={"type": "object"}),
            "a schema of an unknown type": lambda d: d["tools"][0]["inputSchema"].update(
                properties={"a": {"type": "text"}}
            ),
            "a list that is too long": lambda d: d["tools"][0].update(
                description="x" * MCP_MAX_BYTES
            ),
        },
    ),
    "openai": (
        check_openai,
        {
            "an unknown key in a function": lambda d: d[0]["function"].update(input_schema={}),
            "an unknown key in a tool": lambda d: d[0].update(name="x"),
            "a tool of an unknown type": lambda d: d[0].update(type="tool"),
            "a function without a name": lambda d: d[0]["function"].pop("name"),
            "a function without parameters": lambda d: d[0]["function"].pop("parameters"),
            "a name with a space": lambda d: d[0]["function"].update(name="Read file"),
            "a description that is too long": lambda d: d[0]["function"].update(
                description="x" * (OPENAI_MAX_DESCRIPTION + 1)
            ),
            "a $ref": lambda d: d[0]["function"]["parameters"].update(
                properties={"a": {"$ref": "#/$defs/A"}}
            ),
        },
    ),
    "anthropic": (
        check_anthropic,
        {
            "an unknown key in a tool": lambda d: d[0].update(parameters={}),
            "a tool without input_schema": lambda d: d[0].pop("input_schema"),
            "a name with a dot": lambda d: d[0].update(name="fs.read"),
            "parameters that are no object": lambda d: d[0]["input_schema"].update(type="string"),
        },
    ),
    "gemini": (
        check_gemini,
        {
            "an unknown schema keyword": lambda d: gemini_parameters(d).update(bogus=1),
            "a $ref": lambda d: gemini_parameters(d).update({"$ref": "#/$defs/A"}),
            "additionalProperties": lambda d: gemini_parameters(d).update(
                additionalProperties=False
            ),
            "a type in lower case": lambda d: gemini_parameters(d).update(type="object"),
            "a type that does not exist": lambda d: gemini_parameters(d).update(type="TEXT"),
            "an unknown key in a tool": lambda d: d[0].update(functions=[]),
            "a key in snake_case": lambda d: d[0].update(
                function_declarations=d[0].pop("functionDeclarations")
            ),
            "a function without a name": lambda d: d[0]["functionDeclarations"][0].pop("name"),
        },
    ),
}


def gemini_parameters(document):
    return document[0]["functionDeclarations"][0]["parameters"]


if __name__ == "__main__":
    main()
