"""Schemas of functions, and calls of own tools."""

import dataclasses
import enum
import unittest
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Optional, TypedDict

from support import AsyncSessionTest, SessionTest, needs_operations, toolcrib
from toolcrib.own_tools import OwnTool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Row(TypedDict, total=False):
    name: str


def lookup(
    word: str,
    limit: int = 10,
    kind: Literal["noun", "verb"] = "noun",
    tags: list[str] = [],
    near: Optional[float] = None,
    any_of: Annotated[Sequence[int | str], "Numbers or names."] = (),
) -> str:
    """Looks up a word.

    In the dictionary of this company.

    Args:
        word: The word,
            in lower case.
        limit (int): Most results.

    Returns:
        Nothing of interest.
    """
    return f"{word}:{limit}:{kind}"


class SchemaTest(unittest.TestCase):
    def test_description_and_schema_come_from_the_function(self) -> None:
        tool = OwnTool.from_function(lookup)
        self.assertEqual(tool.description, "Looks up a word.\n\nIn the dictionary of this company.")
        self.assertEqual(tool.schema["required"], ["word"])
        self.assertFalse(tool.schema["additionalProperties"])
        self.assertEqual(
            tool.schema["properties"],
            {
                "word": {"type": "string", "description": "The word, in lower case."},
                "limit": {"type": "integer", "description": "Most results.", "default": 10},
                "kind": {"enum": ["noun", "verb"], "default": "noun"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "near": {"type": ["number", "null"]},
                "any_of": {
                    "type": "array",
                    "items": {"type": ["integer", "string"]},
                    "description": "Numbers or names.",
                },
            },
        )

    def test_structured_types_have_schemas(self) -> None:
        def draw(at: Point, colour: Colour, rows: list[Row], counts: dict[str, int], pair: tuple[int, str]) -> None:
            """Draws."""

        properties = OwnTool.from_function(draw).schema["properties"]
        self.assertEqual(properties["at"]["required"], ["x"])
        self.assertEqual(properties["colour"], {"enum": ["red", "blue"]})
        self.assertEqual(properties["rows"]["items"]["properties"], {"name": {"type": "string"}})
        self.assertEqual(properties["counts"]["additionalProperties"], {"type": "integer"})
        self.assertEqual(len(properties["pair"]["prefixItems"]), 2)

    def test_functions_without_a_description_or_with_odd_types_are_refused(self) -> None:
        def silent(x: int) -> None: ...

        def odd(x: complex) -> None:
            """Odd."""

        def variadic(*words: str) -> None:
            """Variadic."""

        for function in (silent, odd, variadic, lambda x: x):
            with self.assertRaises(toolcrib.InvalidArgument):
                OwnTool.from_function(function)
        self.assertEqual(OwnTool.from_function(odd, schema={"type": "object"}).schema, {"type": "object"})

    def test_results_become_text(self) -> None:
        tool = OwnTool.from_function(lookup)
        self.assertEqual(tool.text(None), "")
        self.assertEqual(tool.text("ä"), "ä")
        self.assertEqual(tool.text({"at": Point(1), "in": Colour.RED}), '{"at": {"x": 1, "y": 0}, "in": "red"}')


class OwnToolTest(SessionTest):
    @needs_operations
    def test_an_own_tool_is_listed_checked_and_called(self) -> None:
        with self.session() as session:
            session.register(lookup, read_only=True)
            with self.assertRaises(toolcrib.AlreadyExists):
                session.register(lookup, name="Read")
            self.assertEqual(session.call("lookup", word="toolcrib", limit=2).output.strip(), "toolcrib:2:noun")
            for format in ("anthropic", "openai", "gemini", "mcp"):
                tools = session.tools(format)
                self.assertIn("lookup", str(tools))
                self.assertIn("Grep", str(tools))
            wrong = session.call("lookup", limit="many")
            self.assertEqual(wrong.error and wrong.error.kind, "invalid")

    @needs_operations
    def test_an_own_tool_may_fail_be_async_and_call_other_tools(self) -> None:
        with self.session() as session:

            def failing() -> None:
                """Fails."""
                raise ValueError("no luck")

            async def slow() -> dict[str, Any]:
                """Is async."""
                return {"ok": True}

            def nested(file: str) -> str:
                """Reads a file."""
                return session.call("Read", file_path=file).output

            for function in (failing, slow, nested):
                session.register(function)
            reply = session.call("failing")
            self.assertFalse(reply.success)
            self.assertIn("ValueError: no luck", reply.output)
            self.assertIn('{"ok": true}', session.call("slow").output)
            self.assertIn("hello", session.call("nested", file="a.txt").output)

    @needs_operations
    def test_own_tools_are_registered_again_after_a_restart(self) -> None:
        import os
        import signal

        with self.session() as session:
            session.register(lookup)
            assert session.pid
            os.kill(session.pid, signal.SIGKILL)
            with self.assertRaises(toolcrib.SessionClosed):
                while True:
                    session.call("LS")
            self.assertTrue(session.call("lookup", word="x").success)


class AsyncOwnToolTest(AsyncSessionTest):
    @needs_operations
    async def test_functions_of_both_kinds_are_called(self) -> None:
        async with self.session() as session:

            async def nested(file: str) -> str:
                """Reads a file."""
                return (await session.call("Read", file_path=file)).output

            await session.register(nested)
            await session.register(lookup)
            self.assertIn("hello", (await session.call("nested", file="a.txt")).output)
            self.assertIn("x:10", (await session.call("lookup", word="x")).output)

    @needs_operations
    async def test_cancelling_a_call_cancels_the_function(self) -> None:
        import asyncio

        async with self.session() as session:
            started, cancelled = asyncio.Event(), asyncio.Event()

            async def forever() -> None:
                """Never ends."""
                started.set()
                try:
                    await asyncio.sleep(3600)
                except asyncio.CancelledError:
                    cancelled.set()
                    raise

            await session.register(forever)
            call = asyncio.create_task(session.call("forever"))
            await started.wait()
            call.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await call
            await asyncio.wait_for(cancelled.wait(), 30)
            self.assertTrue((await session.call("Read", file_path="a.txt")).success)


if __name__ == "__main__":
    unittest.main()
