"""Tests `toolcrib serve` with the official Python client, in both protocol eras, over stdio and HTTP.

Takes the path of the binary. Stops at the first failure.
"""

import asyncio
import subprocess
import sys
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

BINARY = sys.argv[1]


def arguments(top: Path, *flags: str) -> list[str]:
    return ["serve", "--root", str(top / "ws"), "--state", str(top / "state"), *flags]


@asynccontextmanager
async def stdio(top: Path, *flags: str):
    yield StdioServerParameters(command=BINARY, args=arguments(top, *flags))


@asynccontextmanager
async def http(top: Path, *flags: str):
    command = [BINARY, *arguments(top, *flags), "--http", "localhost:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            # "serving MCP at URL; the token is in FILE"
            where, file = process.stderr.readline().strip().split("; the token is in ")
            headers = {"Authorization": f"Bearer {Path(file).read_text().strip()}"}
            async with httpx2.AsyncClient(headers=headers, timeout=60) as session:
                yield streamable_http_client(where.split()[-1], http_client=session)
        finally:
            process.kill()


def text(result) -> str:
    return result.content[0].text


async def check_calls(transport, mode: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory)
        (top / "ws").mkdir()
        (top / "ws" / "a.txt").write_text("one\n")
        async with transport(top) as server, Client(server, mode=mode) as client:
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


async def check_camel_dialect(transport) -> None:
    """The client validates every result against the output schema of the tool list."""
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory)
        (top / "ws").mkdir()
        (top / "ws" / "a.txt").write_text("one\n")
        async with transport(top, "--dialect", "camel") as server, Client(server) as client:
            tools = (await client.list_tools()).tools
            assert {"read", "multiedit", "apply_patch", "ls"} <= {tool.name for tool in tools}, tools
            read = await client.call_tool("read", {"filePath": "a.txt"})
            assert read.structured_content["content"] == "     1→one\n", read
            edits = [{"oldString": "one", "newString": "two"}]
            edit = await client.call_tool("multiedit", {"filePath": "a.txt", "edits": edits})
            assert edit.structured_content["totalReplacements"] == 1, edit
            patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-two\n+three\n"
            patched = await client.call_tool("apply_patch", {"patchText": patch})
            assert patched.structured_content["files"][0]["action"] == "update", patched
            for tool, arguments in [
                ("write", {"filePath": "b.txt", "content": "x"}),
                ("edit", {"filePath": "a.txt", "oldString": "three", "newString": "four"}),
                ("ls", {"dirPath": "."}),
                ("glob", {"pattern": "*.txt"}),
                ("grep", {"pattern": "four"}),
                ("history", {}),
            ]:
                result = await client.call_tool(tool, arguments)
                assert not result.is_error and result.structured_content, result
            missing = await client.call_tool("read", {"filePath": "c.txt"})
            assert missing.is_error and "does not exist" in text(missing), missing


async def check_approval(transport, mode: str) -> None:
    asked = []

    async def answer(_, params) -> ElicitResult:
        asked.append(params.message)
        said = "no" if len(asked) == 1 else "once"
        return ElicitResult(action="accept", content={"answer": said})

    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory)
        (top / "ws").mkdir()
        (top / "ws" / "a.txt").write_text("one\n")
        careful = transport(top, "--profile", "cautious")
        async with careful as server, Client(server, mode=mode, elicitation_callback=answer) as client:
            edit = {"file_path": "a.txt", "old_string": "one", "new_string": "two"}
            refused = await client.call_tool("Edit", edit)
            assert refused.is_error, refused
            assert (top / "ws" / "a.txt").read_text() == "one\n"
            assert not (await client.call_tool("Edit", edit)).is_error
            assert (top / "ws" / "a.txt").read_text() == "two\n"
        assert len(asked) == 2 and "-one\n+two\n" in asked[0], asked


async def main() -> None:
    for transport in [stdio, http]:
        for mode in ["legacy", "auto", "2026-07-28"]:
            await check_calls(transport, mode)
            await check_approval(transport, mode)
            print(f"the Python client, {transport.__name__}, {mode}: fine")
        await check_camel_dialect(transport)
        print(f"the Python client, {transport.__name__}, in the dialect camel: fine")


asyncio.run(main())
