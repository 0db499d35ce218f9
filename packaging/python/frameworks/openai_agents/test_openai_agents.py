"""OpenAI Agents SDK: the sandbox client and the tools, with its scripted model."""

import io
import tempfile
import unittest
from pathlib import Path
from typing import Any

from agents import Agent, RunConfig, Runner, set_tracing_disabled
from agents.sandbox import Manifest, SandboxAgent, SandboxRunConfig
from agents.sandbox.capabilities import Filesystem, Shell
from agents.sandbox.entries import File
from agents.sandbox.errors import ExecTimeoutError, PtySessionNotFoundError, WorkspaceReadNotFoundError
from agents.sandbox.snapshot import LocalSnapshotSpec
from agents.testing import ScriptedModel, assistant_message, function_call
from toolcrib import AsyncSession
from toolcrib.adapters.openai_agents import ToolcribSandboxClient, apply_patch_tool, shell_tool, tools

set_tracing_disabled(True)


def outputs(result: Any) -> list[str]:
    items = [item for item in result.new_items if item.type == "tool_call_output_item"]
    return [str(item.output) for item in items]


class OpenAiAgents(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.outside = Path(temporary.name)
        self.root = self.outside / "project"
        self.root.mkdir()

    async def test_sandbox_agent_runs_in_the_workspace(self) -> None:
        manifest = Manifest(root=str(self.root), entries={"notes.txt": File(content=b"one\n")})
        command = f"cat notes.txt; echo made > made.txt; touch {self.outside}/escaped"
        patch = "*** Begin Patch\n*** Update File: notes.txt\n@@\n-one\n+two\n*** End Patch"
        model = ScriptedModel(
            [
                [function_call("exec_command", {"cmd": command}, call_id="1")],
                [{"type": "custom_tool_call", "id": "2", "call_id": "2", "name": "apply_patch", "input": patch}],
                [assistant_message("done")],
            ]
        )
        agent = SandboxAgent(name="a", model=model, capabilities=[Shell(), Filesystem()], default_manifest=manifest)
        config = RunConfig(sandbox=SandboxRunConfig(client=ToolcribSandboxClient()))
        result = await Runner.run(agent, "go", run_config=config)
        self.assertEqual(result.final_output, "done")
        self.assertIn("one", outputs(result)[0])
        self.assertEqual((self.root / "made.txt").read_text(), "made\n")
        self.assertEqual((self.root / "notes.txt").read_text(), "two\n", outputs(result)[1])
        self.assertFalse((self.outside / "escaped").exists())

    async def test_sandbox_session(self) -> None:
        session = await ToolcribSandboxClient().create(manifest=Manifest(root=str(self.root)))
        async with session:
            self.assertTrue(await session.running())
            await session.write(Path("a/b.bin"), io.BytesIO(b"\x00\xff"))
            self.assertEqual((await session.read(Path("a/b.bin"))).read(), b"\x00\xff")
            self.assertEqual([Path(entry.path).name for entry in await session.ls("a")], ["b.bin"])
            await session.mkdir("c/d", parents=True)
            await session.mv("a/b.bin", "c/b.bin")
            await session.rm("a", recursive=True)
            self.assertEqual(sorted(path.name for path in self.root.rglob("*")), ["b.bin", "c", "d"])
            done = await session.exec("printf out; printf err >&2; exit 3")
            self.assertEqual((done.stdout, done.stderr, done.exit_code), (b"out", b"err", 3))
            with self.assertRaises(WorkspaceReadNotFoundError):
                await session.read(Path("missing"))
            with self.assertRaises(ExecTimeoutError):
                await session.exec("sleep 3600", timeout=1)
        self.assertFalse(await session.running())

    async def test_running_commands(self) -> None:
        session = await ToolcribSandboxClient().create(manifest=Manifest(root=str(self.root)))
        async with session:
            ended = await session.pty_exec_start("printf out; exit 3")
            self.assertEqual((ended.output, ended.exit_code, ended.process_id), (b"out", 3, None))
            script = "test -t 0 && read line && echo got $line"
            started = await session.pty_exec_start(script, tty=True, yield_time_s=0.25)
            self.assertIsNone(started.exit_code)
            update = await session.pty_write_stdin(session_id=started.process_id, chars="text\n", yield_time_s=30)
            self.assertEqual(update.exit_code, 0)
            self.assertIn(b"got text", update.output)
            with self.assertRaises(PtySessionNotFoundError):
                await session.pty_write_stdin(session_id=started.process_id, chars="")
            endless = await session.pty_exec_start("echo begun; sleep 3600", yield_time_s=0.25)
            self.assertIsNotNone(endless.process_id)

    async def test_snapshot_is_restored_in_a_new_directory(self) -> None:
        client = ToolcribSandboxClient()
        snapshot = LocalSnapshotSpec(base_path=self.outside / "snapshots")
        first = await client.create(snapshot=snapshot)
        async with first:
            await first.write(Path("kept.txt"), io.BytesIO(b"kept"))
        state = client.deserialize_session_state(client.serialize_session_state(first.state))
        await client.delete(first)
        self.assertFalse(Path(state.manifest.root).exists())
        second = await client.resume(state)
        async with second:
            self.assertEqual((await second.read(Path("kept.txt"))).read(), b"kept")
        await client.delete(second)

    async def test_refusal_is_a_result(self) -> None:
        session = await ToolcribSandboxClient(profile="read-only").create(manifest=Manifest(root=str(self.root)))
        async with session:
            done = await session.exec("touch made.txt")
            started = await session.pty_exec_start("touch made.txt")
        self.assertEqual((done.exit_code, started.exit_code), (126, 126))
        self.assertIn(b"read-only", done.stderr)
        self.assertIn(b"read-only", started.output)

    async def test_sandbox_session_is_undone(self) -> None:
        (self.root / "a.txt").write_text("old\n")
        session = await ToolcribSandboxClient().create(manifest=Manifest(root=str(self.root)))
        async with session:
            point = await session._inner.toolcrib.snapshot()
            await session.exec("rm a.txt")
            self.assertFalse((self.root / "a.txt").exists())
            await session._inner.toolcrib.restore(point)
        self.assertEqual((self.root / "a.txt").read_text(), "old\n")

    async def test_shell_and_apply_patch_tools(self) -> None:
        (self.root / "a.txt").write_text("one\n")
        shell_call = {
            "type": "shell_call",
            "id": "1",
            "call_id": "1",
            "status": "completed",
            "action": {"commands": ["cat a.txt", "exit 4"], "timeout_ms": 60000},
        }
        update = {"type": "update_file", "path": "a.txt", "diff": "@@\n-one\n+two\n"}
        create = {"type": "create_file", "path": "b.txt", "diff": "+new\n"}
        patch_calls = [
            {"type": "apply_patch_call", "id": key, "call_id": key, "status": "completed", "operation": operation}
            for key, operation in [("2", update), ("3", create)]
        ]
        delete = {"type": "delete_file", "path": "b.txt"}
        deletion = {"type": "apply_patch_call", "id": "4", "call_id": "4", "status": "completed", "operation": delete}
        model = ScriptedModel([[shell_call], patch_calls, [deletion], [assistant_message("done")]])
        async with AsyncSession(self.root) as session:
            agent = Agent(name="a", model=model, tools=[shell_tool(session), apply_patch_tool(session)])
            result = await Runner.run(agent, "go")
        self.assertIn("one", outputs(result)[0])
        self.assertEqual((self.root / "a.txt").read_text(), "two\n", outputs(result))
        self.assertFalse((self.root / "b.txt").exists(), outputs(result))

    async def test_function_tools(self) -> None:
        (self.root / "a.txt").write_text("one\n")
        model = ScriptedModel(
            [
                [function_call("Read", {"file_path": "a.txt"}, call_id="1")],
                [function_call("Read", {"file_path": "missing.txt"}, call_id="2")],
                [assistant_message("done")],
            ]
        )
        async with AsyncSession(self.root) as session:
            agent = Agent(name="a", model=model, tools=await tools(session, ["Read"]))
            result = await Runner.run(agent, "go")
        self.assertIn("one", outputs(result)[0])
        self.assertIn("missing.txt", outputs(result)[1])


if __name__ == "__main__":
    unittest.main()
