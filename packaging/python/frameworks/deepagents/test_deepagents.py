"""deepagents: LangChain's standard tests for sandbox backends, and an agent with a scripted model."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from deepagents.backends.protocol import SandboxBackendProtocol
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_tests.integration_tests import SandboxIntegrationTests
from toolcrib import Session
from toolcrib.adapters.deepagents import ToolcribBackend


class TestStandard(SandboxIntegrationTests):
    @pytest.fixture(scope="class")
    def sandbox(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxBackendProtocol]:
        with Session(tmp_path_factory.mktemp("project")) as session:
            yield ToolcribBackend(session)


# langchain-tests 1.1 expects paths relative to the search directory, and that `write` refuses an existing file. In
# deepagents 0.7 the paths are absolute and `write` overwrites.
for name in [
    "test_glob",
    "test_glob_basic_pattern",
    "test_glob_with_directories",
    "test_glob_hidden_files_explicitly",
    "test_glob_with_character_class",
    "test_glob_with_question_mark",
    "test_write_existing_file_fails",
]:
    pytest.mark.xfail(strict=True, reason="deepagents 0.7 has another contract")(getattr(TestStandard, name))


class ScriptedModel(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **options: Any) -> "ScriptedModel":
        return self


def script(*calls: tuple[str, dict[str, Any]]) -> Iterator[AIMessage]:
    for number, (name, arguments) in enumerate(calls):
        call = {"name": name, "args": arguments, "id": str(number), "type": "tool_call"}
        yield AIMessage(content="", tool_calls=[call])
    yield AIMessage(content="done")


def test_agent_works_in_the_session(tmp_path: Path) -> None:
    root, outside = tmp_path / "project", tmp_path / "outside.txt"
    root.mkdir()
    path = str(root / "a.txt")
    calls = [
        ("write_file", {"file_path": path, "content": "one\n"}),
        ("edit_file", {"file_path": path, "old_string": "one", "new_string": "two"}),
        ("read_file", {"file_path": path}),
        ("execute", {"command": f"cat a.txt; touch {outside}; rm a.txt"}),
    ]
    with Session(root) as session:
        point = session.snapshot()
        agent = create_deep_agent(ScriptedModel(messages=script(*calls)), backend=ToolcribBackend(session))
        state = agent.invoke({"messages": ["go"]})
        replies = [message.content for message in state["messages"] if isinstance(message, ToolMessage)]
        assert "two" in replies[2] and "two" in replies[3], replies
        assert not outside.exists()
        assert not (root / "a.txt").exists()
        session.undo()
        assert (root / "a.txt").read_text() == "two\n"
        session.restore(point)
        assert not (root / "a.txt").exists()


def test_refusal_is_a_result(tmp_path: Path) -> None:
    with Session(tmp_path, profile="read-only") as session:
        response = ToolcribBackend(session).execute("touch made.txt")
    assert response.exit_code == 126
    assert "read-only" in response.output


def test_timeout_ends_the_command(tmp_path: Path) -> None:
    with Session(tmp_path) as session:
        response = ToolcribBackend(session).execute("echo begun; sleep 3600", timeout=10)
    assert response.exit_code == 124
    assert response.output.startswith("begun\n")
