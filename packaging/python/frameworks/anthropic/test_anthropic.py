"""Anthropic SDK: its tool runners and its environment worker, against a scripted API on loopback."""

import json
import struct
import tempfile
import threading
import unittest
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from anthropic import Anthropic, AsyncAnthropic
from anthropic.lib.environments import EnvironmentWorker
from toolcrib import AsyncSession, Session
from toolcrib.adapters.anthropic import agent_toolset, async_tools, tools

NOW = "2026-01-01T00:00:00Z"


class ScriptedApi(ThreadingHTTPServer):
    """Makes the given tool calls, in a Messages conversation or in a session, and keeps the results."""

    daemon_threads = True

    def __init__(self, calls: list[tuple[str, dict[str, Any]]]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.calls = calls
        self.results: list[dict[str, Any]] = []
        self.answered = threading.Event()
        self.stopped = False
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    server: ScriptedApi

    def log_message(self, *arguments: object) -> None:
        pass

    def reply(self, body: object) -> None:
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        if path.endswith("/events/stream"):
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.server.answered.wait(60)
            end = {"type": "session.status_terminated", "id": "end", "processed_at": NOW}
            self.wfile.write(f"event: {end['type']}\ndata: {json.dumps(end)}\n\n".encode())
        elif path.endswith("/events"):
            self.reply({"data": [self.event(*item) for item in enumerate(self.server.calls)], "next_page": None})
        else:
            self.reply({"id": "s", "type": "session", "status": "running", "resources": [], "agent": {"skills": []}})

    def event(self, number: int, call: tuple[str, dict[str, Any]]) -> dict[str, Any]:
        return {"type": "agent.tool_use", "id": str(number), "name": call[0], "input": call[1], "processed_at": NOW}

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        if self.path.split("?")[0] == "/v1/messages":
            self.reply(self.message(body))
        elif "/heartbeat" in self.path:
            lease = {"type": "work_heartbeat", "last_heartbeat": NOW, "ttl_seconds": 90, "lease_extended": True}
            self.reply({**lease, "state": "active"})
        elif "/stop" in self.path:
            self.server.stopped = True
            self.reply({"id": "w"})
        else:
            self.server.results += body["events"]
            if len(self.server.results) == len(self.server.calls):
                self.server.answered.set()
            self.reply({"data": []})

    def message(self, body: dict[str, Any]) -> dict[str, Any]:
        last = body["messages"][-1]["content"]
        if isinstance(last, list):
            self.server.results += [block for block in last if block["type"] == "tool_result"]
        number = len(self.server.results)
        if number < len(self.server.calls):
            name, arguments = self.server.calls[number]
            content = [{"type": "tool_use", "id": str(number), "name": name, "input": arguments}]
        else:
            content = [{"type": "text", "text": "done"}]
        reason = "tool_use" if number < len(self.server.calls) else "end_turn"
        usage = {"input_tokens": 1, "output_tokens": 1}
        head = {"id": "m", "type": "message", "role": "assistant", "model": "scripted"}
        return {**head, "content": content, "stop_reason": reason, "stop_sequence": None, "usage": usage}


def png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\x00\xff\x00\x00")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def text(result: dict[str, Any]) -> str:
    content = result["content"]
    return content if isinstance(content, str) else content[0]["text"]


class AnthropicSdk(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.outside = Path(temporary.name)
        self.root = self.outside / "project"
        self.root.mkdir()
        (self.root / "a.txt").write_text("one\n")
        (self.root / "dot.png").write_bytes(png())

    def api(self, *calls: tuple[str, dict[str, Any]]) -> ScriptedApi:
        api = ScriptedApi(list(calls))
        self.addCleanup(api.close)
        return api

    calls = [
        ("Read", {"file_path": "a.txt"}),
        ("Grep", {"pattern": "ONE", "-i": True}),
        ("Read", {"file_path": "dot.png"}),
        ("Read", {"file_path": "missing.txt"}),
    ]

    def check(self, results: list[dict[str, Any]]) -> None:
        self.assertIn("one", text(results[0]))
        self.assertIn("a.txt", text(results[1]))
        self.assertEqual(results[2]["content"][1]["source"]["media_type"], "image/png")
        self.assertEqual([bool(result.get("is_error")) for result in results], [False, False, False, True])
        self.assertIn("missing.txt", text(results[3]))

    def test_tool_runner(self) -> None:
        api = self.api(*self.calls)
        client = Anthropic(base_url=api.url, api_key="none")
        message = {"role": "user", "content": "go"}
        with Session(self.root) as session:
            runner = client.beta.messages.tool_runner(
                model="scripted", max_tokens=100, messages=[message], tools=tools(session)
            )
            self.assertEqual(runner.until_done().content[0].text, "done")
        self.check(api.results)

    async def test_async_tool_runner(self) -> None:
        api = self.api(*self.calls)
        client = AsyncAnthropic(base_url=api.url, api_key="none")
        message = {"role": "user", "content": "go"}
        async with AsyncSession(self.root) as session:
            runner = client.beta.messages.tool_runner(
                model="scripted", max_tokens=100, messages=[message], tools=await async_tools(session)
            )
            self.assertEqual((await runner.until_done()).content[0].text, "done")
        self.check(api.results)

    async def test_environment_worker(self) -> None:
        api = self.api(
            ("read", {"file_path": "a.txt"}),
            ("write", {"file_path": "b.txt", "content": "1\n2\n3\n"}),
            ("write", {"file_path": "b.txt", "content": "1\n2\n3\n4\n"}),
            ("read", {"file_path": "b.txt", "view_range": [2, 3]}),
            ("edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"}),
            ("bash", {"command": "export NAME=kept; mkdir sub; cd sub"}),
            ("bash", {"command": f"echo $NAME; pwd; touch {self.outside}/escaped; true"}),
            ("glob", {"pattern": "*.txt"}),
            ("grep", {"pattern": "tw[o]"}),
            ("bash", {"restart": True}),
            ("bash", {"command": "pwd"}),
            ("read", {"file_path": "missing.txt"}),
            ("bash", {"command": "sleep 3600", "timeout_ms": 1000}),
        )
        client = AsyncAnthropic(base_url=api.url, api_key="none")
        worker = EnvironmentWorker(client, workdir=self.root, tools=agent_toolset())
        await worker.handle_item(work_id="w", environment_id="e", session_id="s", environment_key="none")
        results = {int(result["tool_use_id"]): result for result in api.results}
        failed = [number for number in results if results[number]["is_error"]]
        self.assertTrue(api.stopped)
        self.assertEqual(sorted(failed), [11, 12], results)
        self.assertIn("one", text(results[0]))
        self.assertEqual([line in text(results[3]) for line in ("1\t1", "2\t2", "3\t3", "4\t4")], [0, 1, 1, 0])
        self.assertEqual((self.root / "a.txt").read_text(), "two\n")
        self.assertIn("kept\n", text(results[6]))
        self.assertIn(f"{self.root}/sub", text(results[6]))
        self.assertFalse((self.outside / "escaped").exists())
        self.assertIn("b.txt", text(results[7]))
        self.assertIn("two", text(results[8]))
        self.assertNotIn("/sub", text(results[10]))


if __name__ == "__main__":
    unittest.main()
