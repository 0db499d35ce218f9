"""LangChain: an agent with a scripted model and the tools of a session."""

import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from toolcrib import AsyncSession, InvalidArgument, Session
from toolcrib.adapters.langchain import async_tools, tools


class ScriptedModel(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **options: Any) -> "ScriptedModel":
        return self


def script(*calls: tuple[str, dict[str, Any]]) -> Iterator[AIMessage]:
    for number, (name, arguments) in enumerate(calls):
        call = {"name": name, "args": arguments, "id": str(number), "type": "tool_call"}
        yield AIMessage(content="", tool_calls=[call])
    yield AIMessage(content="done")


CALLS = [
    ("Read", {"file_path": "a.txt"}),
    ("Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"}),
    ("Bash", {"command": "cat a.txt"}),
    ("Read", {"file_path": "missing.txt"}),
]


class LangChain(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = Path(temporary.name)
        (self.root / "a.txt").write_text("one\n")

    def check(self, state: dict[str, Any]) -> None:
        replies = [message for message in state["messages"] if isinstance(message, ToolMessage)]
        self.assertEqual([reply.status for reply in replies], ["success", "success", "success", "error"], replies)
        self.assertIn("one", replies[0].content)
        self.assertIn("two", replies[2].content)
        self.assertIn("missing.txt", replies[3].content)
        self.assertEqual((self.root / "a.txt").read_text(), "two\n")

    def test_tools(self) -> None:
        with Session(self.root) as session:
            agent = create_agent(ScriptedModel(messages=script(*CALLS)), tools(session))
            self.check(agent.invoke({"messages": ["go"]}))

    async def test_async_tools(self) -> None:
        async with AsyncSession(self.root) as session:
            agent = create_agent(ScriptedModel(messages=script(*CALLS)), await async_tools(session))
            self.check(await agent.ainvoke({"messages": ["go"]}))

    def test_selection(self) -> None:
        with Session(self.root) as session:
            self.assertEqual([tool.name for tool in tools(session, ["Read", "Grep"])], ["Read", "Grep"])
            with self.assertRaisesRegex(InvalidArgument, "Did you mean Read"):
                tools(session, ["Reed"])


if __name__ == "__main__":
    unittest.main()
