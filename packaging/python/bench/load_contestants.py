"""The contestants of load.py: the same three requests, for each way to have many workspaces."""

import asyncio
import importlib
import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import toolcrib
from toolcrib.program import locate_program


class Contestant(ABC):
    """Opens workspaces, which are in `top/all`, and uses them by number."""

    name: str

    def __init__(self, top: Path) -> None:
        self.top = top

    def root(self, number: int) -> Path:
        return self.top / "all" / f"w{number}"

    async def __aenter__(self) -> "Contestant":
        return self

    @abstractmethod
    async def __aexit__(self, *exception: object) -> None: ...

    @abstractmethod
    async def open(self, number: int) -> None: ...

    @abstractmethod
    async def write(self, number: int, name: str, content: str) -> str: ...

    @abstractmethod
    async def command(self, number: int, command: str) -> str: ...

    @abstractmethod
    async def read(self, number: int, name: str) -> str: ...


class Toolcrib(Contestant):
    """Tools, as a model calls them."""

    @abstractmethod
    async def call(self, number: int, tool: str, arguments: dict[str, str]) -> str: ...

    async def write(self, number: int, name: str, content: str) -> str:
        return await self.call(number, "Write", {"file_path": name, "content": content})

    async def command(self, number: int, command: str) -> str:
        return await self.call(number, "Bash", {"command": command})

    async def read(self, number: int, name: str) -> str:
        return await self.call(number, "Read", {"file_path": name})


class Sessions(Toolcrib):
    name = "a Session each"

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        self._sessions: dict[int, toolcrib.AsyncSession] = {}

    async def open(self, number: int) -> None:
        session = toolcrib.AsyncSession(self.root(number), state=self.top / f"state{number}")
        self._sessions[number] = await session.__aenter__()

    async def call(self, number: int, tool: str, arguments: dict[str, str]) -> str:
        return (await self._sessions[number].call(tool, arguments)).raise_for_error().output

    async def __aexit__(self, *exception: object) -> None:
        await asyncio.gather(*[session.close() for session in self._sessions.values()])


class OneServer(Toolcrib):
    """HTTP with a connection for each workspace."""

    name = "serve --workspaces"

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        self._connections: dict[int, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}

    async def __aenter__(self) -> "OneServer":
        words = ["serve", "--http", "127.0.0.1:0", "--state", str(self.top / "state"), "--workspaces", str(self.top / "all")]
        self._server = await asyncio.create_subprocess_exec(locate_program(None), *words, stderr=asyncio.subprocess.PIPE)
        assert self._server.stderr
        said = (await self._server.stderr.readline()).decode()
        self._port = int(said.split("http://127.0.0.1:")[1].split("/")[0])
        self._token = (self.top / "state" / "http-token").read_text().strip()
        return self

    async def open(self, number: int) -> None:
        self._connections[number] = await asyncio.open_connection("127.0.0.1", self._port)
        await self.read(number, "given.txt")

    async def call(self, number: int, tool: str, arguments: dict[str, str]) -> str:
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": tool, "arguments": arguments, "_meta": meta}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        head = (
            f"POST /w/w{number}/mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._token}\r\n"
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            f"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        reader, writer = self._connections[number]
        writer.write(head.encode() + body)
        answer = json.loads((await _body(reader)).split(b"data: ", 1)[-1])
        assert not answer["result"]["isError"], answer
        return str(answer["result"]["content"][0]["text"])

    async def __aexit__(self, *exception: object) -> None:
        for _, writer in self._connections.values():
            writer.close()
        self._server.terminate()
        await self._server.wait()


async def _body(reader: asyncio.StreamReader) -> bytes:
    """The body of a response, with a length or in chunks."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    assert head.startswith("http/1.1 200"), head
    if "content-length:" in head:
        return await reader.readexactly(int(head.split("content-length:")[1].split("\r\n")[0]))
    body = b""
    while size := int(await reader.readline(), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readline()
    return body


class SweRex(Contestant):
    """A local runtime of SWE-ReX with a shell for each workspace, in this process and without a sandbox."""

    name = "SWE-ReX local"

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        self._runtimes: dict[int, Any] = {}
        # Not a dependency of the type checkers.
        self._types: Any = importlib.import_module("swerex.runtime.abstract")
        self._local: Any = importlib.import_module("swerex.runtime.local")
        importlib.import_module("logging").disable()

    async def open(self, number: int) -> None:
        runtime = self._runtimes[number] = self._local.LocalRuntime()
        await runtime.create_session(self._types.CreateBashSessionRequest(startup_timeout=60))
        await self.command(number, f"cd {self.root(number)}")

    async def write(self, number: int, name: str, content: str) -> str:
        request = self._types.WriteFileRequest(path=str(self.root(number) / name), content=content)
        return str(await self._runtimes[number].write_file(request))

    async def command(self, number: int, command: str) -> str:
        return str((await self._runtimes[number].run_in_session(self._types.BashAction(command=command))).output)

    async def read(self, number: int, name: str) -> str:
        request = self._types.ReadFileRequest(path=str(self.root(number) / name))
        return str((await self._runtimes[number].read_file(request)).content)

    async def __aexit__(self, *exception: object) -> None:
        for runtime in self._runtimes.values():
            await runtime.close()
