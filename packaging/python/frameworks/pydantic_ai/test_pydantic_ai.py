"""Pydantic AI: its conformance suite for workspace backends, and agents with scripted models."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.workspaces import WorkspaceBackend, WorkspaceRef
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite
from toolcrib import AsyncSession
from toolcrib.adapters.pydantic_ai import ToolcribBackend, ToolcribWorkspace, toolset


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


class TestConformance(WorkspaceBackendSuite):
    @pytest.fixture
    async def opened(self) -> AsyncIterator[list[ToolcribBackend]]:
        backends: list[ToolcribBackend] = []
        yield backends
        for backend in backends:
            await backend.close()

    @pytest.fixture
    def make(self, opened: list[ToolcribBackend]) -> Callable[[str], ToolcribBackend]:
        def make(root: str) -> ToolcribBackend:
            opened.append(ToolcribBackend(root))
            return opened[-1]

        return make

    @pytest.fixture
    def backend(self, directory: Path, make: Callable[[str], ToolcribBackend]) -> WorkspaceBackend:
        return make(str(directory))

    @pytest.fixture
    def fresh_backend(
        self, tmp_path: Path, make: Callable[[str], ToolcribBackend]
    ) -> Iterator[Callable[[], WorkspaceBackend]]:
        yield lambda: make(tempfile.mkdtemp(dir=tmp_path))

    @pytest.fixture
    def attach_backend(self, make: Callable[[str], ToolcribBackend]) -> Callable[[WorkspaceRef], WorkspaceBackend]:
        return lambda ref: make(ref.id)

    @pytest.fixture
    def destroy_environment(self) -> Callable[[ToolcribBackend], object]:
        async def destroy(backend: ToolcribBackend) -> None:
            assert backend.ref is not None
            shutil.rmtree(backend.ref.id)

        return destroy


def scripted(*steps: ToolCallPart | str) -> FunctionModel:
    """A model that makes the given tool calls one after another, and ends with a text."""
    remaining = list(steps)

    def respond(messages: object, info: object) -> ModelResponse:
        step = remaining.pop(0)
        return ModelResponse(parts=[TextPart(step) if isinstance(step, str) else step])

    return FunctionModel(respond)


def tool_returns(result: object) -> list[str]:
    parts = [part for message in result.all_messages() for part in message.parts]
    return [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]


@pytest.mark.anyio
async def test_capability_gives_tools_the_workspace(directory: Path) -> None:
    model = scripted(ToolCallPart("shell", {"command": "echo hi > made.txt; cat made.txt"}), "done")
    agent = Agent(model, capabilities=[ToolcribWorkspace(directory)])

    @agent.tool
    async def shell(ctx: RunContext[None], command: str) -> str:
        return (await ctx.workspace.run(command, shell=True)).stdout

    result = await agent.run("go")
    assert result.output == "done"
    assert tool_returns(result) == ["hi\n"]
    assert (directory / "made.txt").read_text() == "hi\n"


@pytest.mark.anyio
async def test_command_cannot_write_outside(directory: Path, tmp_path: Path) -> None:
    backend = ToolcribBackend(directory)
    outside = tmp_path / "outside.txt"
    try:
        await backend.run(["touch", str(outside)])
    finally:
        await backend.close()
    assert not outside.exists()


@pytest.mark.anyio
async def test_refusal_is_a_result(directory: Path) -> None:
    backend = ToolcribBackend(directory, profile="read-only")
    try:
        result = await backend.run(["touch", "made.txt"])
        with pytest.raises(PermissionError):
            await backend.write_bytes(str(directory / "made.txt"), b"")
    finally:
        await backend.close()
    assert result.exit_code == 126
    assert "read-only" in result.stderr


@pytest.mark.anyio
async def test_restore_reverts_a_command(directory: Path) -> None:
    (directory / "kept.txt").write_text("old\n")
    backend = ToolcribBackend(directory)
    try:
        session = await backend.session()
        point = await session.snapshot()
        await backend.run(["rm", "kept.txt"])
        assert not (directory / "kept.txt").exists()
        await session.restore(point)
    finally:
        await backend.close()
    assert (directory / "kept.txt").read_text() == "old\n"


@pytest.mark.anyio
async def test_toolset_has_the_tools_of_the_session(directory: Path) -> None:
    (directory / "a.txt").write_text("one\n")
    edit = {"file_path": "a.txt", "old_string": "one", "new_string": "two"}
    async with AsyncSession(directory) as session:
        model = scripted(ToolCallPart("Read", {"file_path": "a.txt"}), ToolCallPart("Edit", edit), "done")
        agent = Agent(model, toolsets=[await toolset(session, ["Read", "Edit"])])
        result = await agent.run("go")
    assert "one" in tool_returns(result)[0]
    assert (directory / "a.txt").read_text() == "two\n"
