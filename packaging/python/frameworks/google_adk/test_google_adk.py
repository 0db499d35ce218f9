"""Google ADK: agents with a scripted model."""

import tempfile
import unittest
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.environment import EnvironmentToolset
from google.genai import types
from toolcrib import AsyncSession
from toolcrib.adapters.google_adk import ToolcribEnvironment, ToolcribToolset


class ScriptedModel(BaseLlm):
    model: str = "scripted"
    calls: list[tuple[str, dict[str, Any]]]

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[Any, None]:
        if self.calls:
            name, arguments = self.calls.pop(0)
            part = types.Part.from_function_call(name=name, args=arguments)
        else:
            part = types.Part.from_text(text="done")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


class GoogleAdk(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.outside = Path(temporary.name)
        self.root = self.outside / "project"
        self.root.mkdir()
        (self.root / "a.txt").write_text("one\n")

    async def run_agent(self, tools: Any, *calls: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
        agent = LlmAgent(name="a", model=ScriptedModel(calls=list(calls)), tools=[tools])
        runner = InMemoryRunner(agent)
        events = await runner.run_debug("go", quiet=True)
        return [response.response for event in events for response in event.get_function_responses()]

    async def test_environment_toolset(self) -> None:
        environment = ToolcribEnvironment(self.root)
        toolset = EnvironmentToolset(environment=environment)
        results = await self.run_agent(
            toolset,
            ("Execute", {"command": f"cat a.txt; touch {self.outside}/escaped; exit 3"}),
            ("WriteFile", {"path": "sub/b.txt", "content": "made\n"}),
            ("EditFile", {"path": "a.txt", "old_string": "one", "new_string": "two"}),
            ("ReadFile", {"path": "a.txt"}),
            ("ReadFile", {"path": "missing.txt"}),
        )
        self.assertEqual(results[0]["stdout"], "one\n")
        self.assertEqual(results[0]["exit_code"], 3)
        self.assertEqual((self.root / "sub/b.txt").read_text(), "made\n")
        self.assertIn("two", results[3]["content"])
        self.assertEqual(results[4]["status"], "error")
        self.assertFalse((self.outside / "escaped").exists())
        await environment.session.undo(path=self.root / "a.txt")
        self.assertEqual((self.root / "a.txt").read_text(), "one\n")
        await toolset.close()
        self.assertFalse(environment.is_initialized)

    async def test_refusal_is_a_result(self) -> None:
        environment = ToolcribEnvironment(self.root, profile="read-only")
        await environment.initialize()
        done = await environment.execute("touch made.txt")
        await environment.close()
        self.assertEqual(done.exit_code, 126)
        self.assertIn("read-only", done.stderr)

    async def test_temporary_directory_is_removed(self) -> None:
        environment = ToolcribEnvironment()
        await environment.initialize()
        directory = environment.working_dir
        self.assertTrue((await environment.execute("sleep 3600", timeout=1)).timed_out)
        with self.assertRaises(FileNotFoundError):
            await environment.read_file("missing.txt")
        await environment.close()
        self.assertFalse(directory.exists())

    async def test_toolset(self) -> None:
        async with AsyncSession(self.root) as session:
            toolset = ToolcribToolset(session, ["Read", "Edit"])
            results = await self.run_agent(
                toolset, ("Read", {"file_path": "a.txt"}), ("Read", {"file_path": "missing.txt"})
            )
            self.assertEqual(sorted(tool.name for tool in await toolset.get_tools()), ["Edit", "Read"])
        self.assertIn("one", results[0]["output"])
        self.assertIn("missing.txt", results[1]["error"])


if __name__ == "__main__":
    unittest.main()
