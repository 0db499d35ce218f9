"""OpenHands SDK: the workspace, and conversations with its scripted model."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # Otherwise its import downloads a list of prices.
os.environ["OPENHANDS_SUPPRESS_BANNER"] = "1"

from openhands.sdk import Agent, Conversation, Tool, register_tool
from openhands.sdk.event import ObservationEvent
from openhands.sdk.git.models import GitChangeStatus
from openhands.sdk.llm import Message, MessageToolCall, TextContent
from openhands.sdk.testing import TestLLM
from toolcrib.adapters.openhands import ToolcribTools, ToolcribWorkspace

register_tool("Toolcrib", ToolcribTools)


def call(name: str, **arguments: Any) -> Message:
    made = MessageToolCall(id="1", name=name, arguments=json.dumps(arguments), origin="completion")
    return Message(role="assistant", content=[TextContent(text="")], tool_calls=[made])


class OpenHands(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.outside = Path(temporary.name)
        self.root = self.outside / "project"
        self.root.mkdir()
        (self.root / "a.txt").write_text("One\n")

    def converse(self, workspace: Any, *calls: Message) -> list[Any]:
        script = [*calls, Message(role="assistant", content=[TextContent(text="done")])]
        agent = Agent(llm=TestLLM.from_messages(script), tools=[Tool(name="Toolcrib")], include_default_tools=[])
        observations: list[Any] = []

        def observe(event: Any) -> None:
            if isinstance(event, ObservationEvent):
                observations.append(event.observation)

        conversation = Conversation(agent=agent, workspace=workspace, callbacks=[observe], visualizer=None)
        conversation.send_message("go")
        conversation.run()
        conversation.close()
        return observations

    def test_tools_in_a_directory(self) -> None:
        seen = self.converse(
            str(self.root),
            call("Grep", **{"pattern": "one", "-i": True, "output_mode": "content"}),
            call("Edit", file_path="a.txt", old_string="One", new_string="Two"),
            call("Read", file_path="missing.txt"),
        )
        self.assertIn("One", seen[0].text)
        self.assertEqual([each.is_error for each in seen], [False, False, True])
        self.assertEqual((self.root / "a.txt").read_text(), "Two\n")

    def test_tools_share_the_session_of_the_workspace(self) -> None:
        with ToolcribWorkspace(working_dir=self.root) as workspace:
            point = workspace.session.snapshot()
            seen = self.converse(workspace, call("Bash", command=f"rm a.txt; touch {self.outside}/escaped; echo ran"))
            self.assertIn("ran", seen[0].text)
            self.assertFalse((self.root / "a.txt").exists())
            workspace.session.restore(point)
        self.assertEqual((self.root / "a.txt").read_text(), "One\n")
        self.assertFalse((self.outside / "escaped").exists())

    def test_workspace(self) -> None:
        with ToolcribWorkspace(working_dir=self.root) as workspace:
            done = workspace.execute_command("printf out; printf err >&2; exit 3")
            self.assertEqual((done.stdout, done.stderr, done.exit_code), ("out", "err", 3))
            self.assertTrue(workspace.execute_command("sleep 3600", timeout=1).timeout_occurred)
            (self.outside / "up.bin").write_bytes(b"\x00\xff")
            self.assertTrue(workspace.file_upload(self.outside / "up.bin", self.root / "sub/up.bin").success)
            self.assertTrue(workspace.file_download(self.root / "sub/up.bin", self.outside / "down/d.bin").success)
            self.assertEqual((self.outside / "down/d.bin").read_bytes(), b"\x00\xff")
            self.assertFalse(workspace.file_download(self.root / "missing", self.outside / "d").success)

    def test_git(self) -> None:
        (self.root / "b.txt").write_text("b\n")
        identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        for arguments in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "first"]):
            subprocess.run(["git", *arguments], cwd=self.root, check=True)
        (self.root / "a.txt").write_text("Two\n")
        (self.root / "b.txt").unlink()
        (self.root / "c d.txt").write_text("c\n")
        with ToolcribWorkspace(working_dir=self.root) as workspace:
            changes = [(str(change.path), change.status) for change in workspace.git_changes(".")]
            diff = workspace.git_diff("a.txt")
            deleted = workspace.git_diff("b.txt")
        updated, gone, new = GitChangeStatus.UPDATED, GitChangeStatus.DELETED, GitChangeStatus.ADDED
        self.assertEqual(changes, [("a.txt", updated), ("b.txt", gone), ("c d.txt", new)])
        self.assertEqual((diff.original, diff.modified), ("One\n", "Two\n"))
        self.assertEqual((deleted.original, deleted.modified), ("b\n", ""))


if __name__ == "__main__":
    unittest.main()
