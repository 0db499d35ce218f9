"""Is `toolcrib serve` a server to the official Python client? Both eras of the protocol, on stdio.

Called with the path of the binary. Fails at the first thing that is not as it should be.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult

BINARY = sys.argv[1]


def server(top: Path, *flags: str) -> StdioServerParameters:
    args = ["serve", "--root", str(top / "ws"), "--state", str(top / "state"), *flags]
    return StdioServerParameters(command=BINARY, args=args)


def text(result) -> str:
    return result.content[0].text


async def speaks(mode: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory)
        (top / "ws").mkdir()
        (top / "ws" / "a.txt").write_text("one\n")
        async with Client(server(top), mode=mode) as client:
            tools = (await client.list_tools()).tools
            assert {"Read", "Edit", "Undo"} <= {tool.name for tool in tools}, tools
            read = await client.call_tool("Read", {"file_path": "a.txt"})
            assert text(read) == "     1\tone\n", read
            missing = await client.call_tool("Read", {"file_path": "b.txt"})
            assert missing.is_error and "does not exist" in text(missing), missing
            edit = {"file_path": "a.txt", "old_string": "one", "new_string": "two"}
            assert not (await client.call_tool("Edit", edit)).is_error
            assert (top / "ws" / "a.txt").read_text() == "two\n"
            assert not (await client.call_tool("Undo", {})).is_error
            assert (top / "ws" / "a.txt").read_text() == "one\n"


async def asks(mode: str) -> None:
    asked = []

    async def answer(_, params) -> ElicitResult:
        asked.append(params.message)
        said = "no" if len(asked) == 1 else "once"
        return ElicitResult(action="accept", content={"answer": said})

    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory)
        (top / "ws").mkdir()
        (top / "ws" / "a.txt").write_text("one\n")
        careful = server(top, "--profile", "cautious")
        async with Client(careful, mode=mode, elicitation_callback=answer) as client:
            edit = {"file_path": "a.txt", "old_string": "one", "new_string": "two"}
            refused = await client.call_tool("Edit", edit)
            assert refused.is_error, refused
            assert (top / "ws" / "a.txt").read_text() == "one\n"
            assert not (await client.call_tool("Edit", edit)).is_error
            assert (top / "ws" / "a.txt").read_text() == "two\n"
        assert len(asked) == 2 and "-one\n+two\n" in asked[0], asked


async def main() -> None:
    for mode in ["legacy", "auto", "2026-07-28"]:
        await speaks(mode)
        await asks(mode)
        print(f"the Python client, {mode}: fine")


asyncio.run(main())
