"""Claude Agent SDK: the bundled `claude` program against a scripted API on loopback."""

import json
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from claude_agent_sdk import ResultMessage, ToolResultBlock, UserMessage, query
from toolcrib import AsyncSession
from toolcrib.adapters.claude_agent import options, session_options


class ScriptedApi(ThreadingHTTPServer):
    """Answers the Messages API with the given tool calls, one after another, and then with a text."""

    daemon_threads = True

    def __init__(self, calls: list[tuple[str, dict[str, Any]]]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.calls = calls
        self.offered: set[str] = set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    server: ScriptedApi

    def log_message(self, *arguments: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not body.get("stream"):
            self.send_error(404)
            return
        self.server.offered |= {tool["name"] for tool in body.get("tools", [])}
        results = [
            block
            for message in body["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
            if block["type"] == "tool_result"
        ]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in self.events(len(results) if body.get("tools") else len(self.server.calls)):
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    def events(self, number: int) -> list[dict[str, Any]]:
        if number < len(self.server.calls):
            name, arguments = self.server.calls[number]
            block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
            reason = "tool_use"
        else:
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "done"}
            reason = "end_turn"
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "scripted", "content": []}
        start = {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}
        return [
            {"type": "message_start", "message": start},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        ]


class ClaudeAgent(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = Path(temporary.name) / "project"
        self.root.mkdir()
        (self.root / "a.txt").write_text("one\n")
        self.home = Path(temporary.name) / "home"
        self.home.mkdir()
        edit = {"file_path": "a.txt", "old_string": "one", "new_string": "two"}
        calls = [
            ("mcp__toolcrib__Read", {"file_path": "a.txt"}),
            ("mcp__toolcrib__Edit", edit),
            ("mcp__toolcrib__Read", {"file_path": "missing.txt"}),
        ]
        self.api = ScriptedApi(calls)
        self.addCleanup(self.api.close)

    def others(self) -> dict[str, Any]:
        env = {
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{self.api.server_address[1]}",
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "HOME": str(self.home),
        }
        return {"cwd": self.root, "env": env, "model": "scripted"}

    async def check(self, agent_options: Any) -> None:
        results: list[ToolResultBlock] = []
        final = None
        async for message in query(prompt="go", options=agent_options):
            if isinstance(message, UserMessage) and isinstance(message.content, list):
                results += [block for block in message.content if isinstance(block, ToolResultBlock)]
            elif isinstance(message, ResultMessage):
                final = message.result
        self.assertEqual(final, "done")
        self.assertEqual([bool(result.is_error) for result in results], [False, False, True], results)
        self.assertIn("one", json.dumps(results[0].content))
        self.assertIn("missing.txt does not exist", json.dumps(results[2].content))
        self.assertEqual((self.root / "a.txt").read_text(), "two\n")
        self.assertIn("mcp__toolcrib__Bash", self.api.offered)
        # The placeholder is not a tool: its description forbids calls.
        others = {name for name in self.api.offered if not name.startswith("mcp__toolcrib__")}
        self.assertEqual(others - {"DeferredToolPlaceholder"}, set())

    async def test_options(self) -> None:
        await self.check(options(self.root, **self.others()))

    async def test_session_options(self) -> None:
        async with AsyncSession(self.root) as session:
            point = await session.snapshot()
            await self.check(await session_options(session, **self.others()))
            await session.restore(point)
        self.assertEqual((self.root / "a.txt").read_text(), "one\n")


if __name__ == "__main__":
    unittest.main()
