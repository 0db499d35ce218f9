"""smolagents: agents with a scripted model and the tools of a session."""

import json
import os
import tempfile
import unittest
from pathlib import Path
from typing import Any

from mcp import StdioServerParameters
from smolagents import CodeAgent, MCPClient, Model, ToolCallingAgent
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole
from toolcrib import Session
from toolcrib.adapters.smolagents import tools


class ScriptedModel(Model):
    def __init__(self, messages: list[ChatMessage]) -> None:
        super().__init__(model_id="scripted")
        self.messages = messages

    def generate(self, messages: Any, **options: Any) -> ChatMessage:
        return self.messages.pop(0)


def tool_call(name: str, arguments: dict[str, Any]) -> ChatMessage:
    function = ChatMessageToolCallFunction(name=name, arguments=arguments)
    call = ChatMessageToolCall(id="1", type="function", function=function)
    return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call])


class SmolAgents(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = Path(temporary.name)
        (self.root / "a.txt").write_text("One\n")

    def test_tool_calling_agent(self) -> None:
        calls = [
            tool_call("Read", {"file_path": "a.txt"}),
            tool_call("Grep", {"pattern": "one", "i": True, "output_mode": "content"}),
            tool_call("Read", {"file_path": "missing.txt"}),
            tool_call("final_answer", {"answer": "done"}),
        ]
        with Session(self.root) as session:
            agent = ToolCallingAgent(tools=tools(session), model=ScriptedModel(calls), verbosity_level=0)
            self.assertEqual(agent.run("go"), "done")
        steps = [step for step in agent.memory.steps if hasattr(step, "observations")]
        self.assertIn("One", steps[0].observations)
        self.assertIn("One", steps[1].observations)
        self.assertIn("missing.txt does not exist", json.dumps(str(steps[2].error)))

    def test_code_agent(self) -> None:
        code = """
Edit(file_path="a.txt", old_string="One", new_string="Two")
text = Read("a.txt")
try:
    Read("missing.txt")
except Exception as error:
    text += str(error)
final_answer(text + Grep("two", i=True))
"""
        message = ChatMessage(role=MessageRole.ASSISTANT, content=f"<code>{code}</code>")
        with Session(self.root) as session:
            agent = CodeAgent(tools=tools(session), model=ScriptedModel([message]), verbosity_level=0)
            answer = agent.run("go", max_steps=1)
        self.assertIn("Two", answer)
        self.assertIn("missing.txt does not exist", answer)
        self.assertTrue(answer.endswith("a.txt\n"), answer)
        self.assertEqual((self.root / "a.txt").read_text(), "Two\n")

    def test_mcp(self) -> None:
        server = StdioServerParameters(command=os.environ["TOOLCRIB_BINARY"], args=["serve", "--root", str(self.root)])
        call = tool_call("Read", {"file_path": "a.txt"})
        answer = tool_call("final_answer", {"answer": "done"})
        with MCPClient(server, structured_output=False) as tools_of_server:
            agent = ToolCallingAgent(tools=tools_of_server, model=ScriptedModel([call, answer]), verbosity_level=0)
            self.assertEqual(agent.run("go"), "done")
        step = next(step for step in agent.memory.steps if hasattr(step, "observations"))
        self.assertIn("One", step.observations)


if __name__ == "__main__":
    unittest.main()
