"""OpenHands SDK: a workspace, and Toolcrib's tools for agents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolcrib import Session, ToolcribError

from ._framework import from_package
from ._host_files import upload
from ._run_command import run
from ._selection import selected

with from_package("openhands-sdk"):
    import mcp.types
    from openhands.sdk.git.models import GitChange, GitChangeStatus, GitDiff
    from openhands.sdk.llm import ImageContent, TextContent
    from openhands.sdk.mcp.definition import MCPToolAction, MCPToolObservation
    from openhands.sdk.mcp.tool import MCPToolDefinition
    from openhands.sdk.tool import ToolExecutor
    from openhands.sdk.workspace import CommandResult, FileOperationResult, LocalWorkspace
    from pydantic import Field, PrivateAttr

_STATUSES = {"A": GitChangeStatus.ADDED, "D": GitChangeStatus.DELETED, "?": GitChangeStatus.ADDED}


class ToolcribWorkspace(LocalWorkspace):
    """Runs commands and copies files in a session; use it in place of `LocalWorkspace`.

    Git also runs in the session, because a repository can name programs that git starts. Changes are relative to HEAD.
    """

    session_options: dict[str, Any] = Field(default_factory=dict, description="Arguments of `toolcrib.Session`.")
    _session: Session | None = PrivateAttr(default=None)

    @property
    def session(self) -> Session:
        """The session of this workspace, for `call`, `snapshot`, `restore` and `undo`. The first use starts it."""
        if self._session is None:
            self._session = Session(self.working_dir, **self.session_options)
        return self._session

    def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def __exit__(self, *exception: Any) -> None:
        try:
            super().__exit__(*exception)
        finally:
            self.close()

    def execute_command(self, command: str, cwd: str | Path | None = None, timeout: float = 30.0) -> CommandResult:
        done = run(self.session, command, cwd=cwd, timeout=timeout)
        stdout, stderr = done.texts()
        return CommandResult(
            command=command,
            exit_code=-1 if done.timed_out else done.status,
            stdout=stdout,
            stderr=stderr,
            timeout_occurred=done.timed_out,
        )

    def file_upload(self, source_path: str | Path, destination_path: str | Path) -> FileOperationResult:
        paths: dict[str, Any] = {"source_path": str(source_path), "destination_path": str(destination_path)}
        try:
            upload(self.session, source_path, str(destination_path))
        except (ToolcribError, OSError) as error:
            return FileOperationResult(success=False, error=str(error), **paths)
        return FileOperationResult(success=True, file_size=Path(source_path).stat().st_size, **paths)

    def file_download(self, source_path: str | Path, destination_path: str | Path) -> FileOperationResult:
        paths: dict[str, Any] = {"source_path": str(source_path), "destination_path": str(destination_path)}
        try:
            content = self.session.read(source_path)
            Path(destination_path).parent.mkdir(parents=True, exist_ok=True)
            Path(destination_path).write_bytes(content)
        except (ToolcribError, OSError) as error:
            return FileOperationResult(success=False, error=str(error), **paths)
        return FileOperationResult(success=True, file_size=len(content), **paths)

    def git_changes(self, path: str | Path) -> list[GitChange]:
        done = self._git(path, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all").check()
        changes = []
        for line in done.stdout.decode(errors="surrogateescape").split("\0"):
            if line:
                state = line[0] if line[0] != " " else line[1]
                status = _STATUSES.get(state, GitChangeStatus.UPDATED)
                changes.append(GitChange(status=status, path=Path(line[3:])))
        return sorted(changes, key=lambda change: change.path)

    def git_diff(self, path: str | Path) -> GitDiff:
        file = Path(self.working_dir, path)
        self._git(file.parent, "rev-parse").check()
        original = self._git(file.parent, "show", f"HEAD:./{file.name}")
        try:
            modified = self.session.read(file).decode(errors="replace")
        except ToolcribError as error:
            if error.kind != "not_found":
                raise
            modified = ""
        return GitDiff(modified=modified, original=original.text if original.success else "")

    def _git(self, directory: str | Path, *arguments: str) -> Any:
        return self.session.exec(["git", *arguments], cwd=Path(self.working_dir, directory))


class ToolcribTools(MCPToolDefinition):
    """Toolcrib's tools in the workspace of the conversation.

    `register_tool("Toolcrib", ToolcribTools)`, then `Agent(tools=[Tool(name="Toolcrib")])`. The parameter `names`
    selects tools; other parameters are arguments of `toolcrib.Session`, if the workspace is not a `ToolcribWorkspace`.
    """

    @property
    def name(self) -> str:  # A class without its own `name` is named after the class.
        return self.mcp_tool.name

    @classmethod
    def create(cls, conv_state: Any, names: Sequence[str] | None = None, **options: Any) -> Sequence[ToolcribTools]:
        workspace = conv_state.workspace
        is_shared = isinstance(workspace, ToolcribWorkspace)
        session = workspace.session if is_shared else Session(workspace.working_dir, **options)
        return [
            cls(
                description=each["description"],
                action_type=MCPToolAction,
                observation_type=MCPToolObservation,
                executor=_Executor(session, each["name"], not is_shared),
                mcp_tool=mcp.types.Tool.model_validate(each),
            )
            for each in selected(session.tools(format="mcp"), names)
        ]


class _Executor(ToolExecutor[MCPToolAction, MCPToolObservation]):
    def __init__(self, session: Session, name: str, owns_session: bool) -> None:
        self._session = session
        self._name = name
        self._owns_session = owns_session

    def __call__(self, action: MCPToolAction, conversation: Any = None) -> MCPToolObservation:
        reply = self._session.call(self._name, action.data)
        content: list[TextContent | ImageContent] = [TextContent(text=reply.output)]
        for block in reply.content:
            if block.get("type") == "image":
                content.append(ImageContent(image_urls=[f"data:{block['mimeType']};base64,{block['data']}"]))
        return MCPToolObservation(content=content, is_error=not reply.success, tool_name=self._name)

    def close(self) -> None:
        if self._owns_session:
            self._session.close()
