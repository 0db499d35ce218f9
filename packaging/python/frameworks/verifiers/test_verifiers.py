"""verifiers: the runtime, and a rollout with a scripted model on loopback."""

import json
import os
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import verifiers.v1 as vf
from toolcrib.adapters.verifiers import ToolcribRuntime
from verifiers.v1.clients import EvalClientConfig
from verifiers.v1.configs.agent import AgentConfig
from verifiers.v1.configs.harness import HarnessConfig
from verifiers.v1.errors import SandboxError
from verifiers.v1.runtimes import SubprocessConfig

PROGRAM = """
import json, subprocess, sys, urllib.request
endpoint, secret = sys.argv[1:]
messages = [{"role": "user", "content": "go"}]
body = json.dumps({"model": "scripted", "messages": messages}).encode()
headers = {"content-type": "application/json", "authorization": "Bearer " + secret}
reply = urllib.request.urlopen(urllib.request.Request(endpoint + "/chat/completions", body, headers))
command = json.load(reply)["choices"][0]["message"]["content"]
subprocess.run(["sh", "-c", command])
"""


class ScriptHarness(vf.Harness):
    """Asks the model once and runs the answer as a command."""

    NEEDS_CONTAINER = False

    async def launch(self, ctx: Any, trace: Any, runtime: Any, endpoint: str, secret: str, *others: Any) -> Any:
        await runtime.write("program.py", PROGRAM.encode())
        return await runtime.run_program(["python3", "program.py", endpoint, secret], {})


class Model(BaseHTTPRequestHandler):
    answer = ""

    def log_message(self, *arguments: object) -> None:
        pass

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        message = {"role": "assistant", "content": self.answer}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        head = {"id": "1", "object": "chat.completion", "created": 1, "model": "scripted"}
        content = json.dumps({**head, "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class Verifiers(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.outside = Path(temporary.name)
        self.root = self.outside / "project"
        self.root.mkdir()

    async def test_rollout(self) -> None:
        os.environ["SCRIPTED_KEY"] = "none"
        Model.answer = f"echo made > made.txt; touch {self.outside}/escaped"
        server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client = EvalClientConfig(
            base_url=f"http://127.0.0.1:{server.server_address[1]}/v1", api_key_var="SCRIPTED_KEY"
        )
        agent = vf.Agent(AgentConfig(model="scripted", client=client, runtime=SubprocessConfig()))
        agent.harness = ScriptHarness(HarnessConfig())
        try:
            async with ToolcribRuntime(self.root) as box, agent:
                point = await box.session.snapshot()
                trace = await agent.run(vf.Task(vf.TaskData(prompt="go")), runtime=box)
                self.assertEqual(trace.errors, [])
                self.assertEqual((self.root / "made.txt").read_text(), "made\n")
                self.assertFalse((self.outside / "escaped").exists())
                await box.session.restore(point)
                self.assertEqual(list(self.root.iterdir()), [])
            self.assertTrue(trace.agent.runtime.borrowed)
        finally:
            server.shutdown()
            server.server_close()

    async def test_commands_and_files(self) -> None:
        async with ToolcribRuntime() as box:
            self.assertTrue(await box.alive())
            done = await box.run(["sh", "-c", "printf $NAME; printf err >&2; exit 3"], {"NAME": "n"})
            self.assertEqual((done.stdout, done.stderr, done.exit_code), ("n", "err", 3))
            self.assertEqual((await box.with_env({"NAME": "task"}).run(["printenv", "NAME"], {})).stdout, "task\n")
            await box.write("sub/a.bin", b"\x00\xff")
            self.assertEqual(await box.read("sub/a.bin"), b"\x00\xff")
            self.assertEqual(await box.read("sub/a.bin", max_bytes=2), b"\x00\xff")
            with self.assertRaises(SandboxError):
                await box.read("sub/a.bin", max_bytes=1)
            with self.assertRaises(FileNotFoundError):
                await box.read("missing")
            directory = Path(box.info.id)
        self.assertFalse(directory.exists())
        self.assertFalse(await box.alive())

    async def test_live_process(self) -> None:
        async with ToolcribRuntime(self.root) as box:
            self.assertTrue(box.supports_live_processes)
            process = await box.open_process(["cat"], {})
            self.assertIsNone(await process.poll())
            await process.write(b"line\n")
            self.assertEqual(await anext(aiter(process.stdout)), b"line\n")
            await process.kill()
            self.assertEqual(await process.wait(), 137)
            self.assertEqual(await process.poll(), 137)
            await box.run_background(["sh", "-c", "echo up; sleep 3600"], {}, "server.log")
            wait = "while ! grep -q up server.log; do sleep 0.05; done; cat server.log"
            self.assertEqual((await box.run(["sh", "-c", wait], {})).stdout, "up\n")


if __name__ == "__main__":
    unittest.main()
