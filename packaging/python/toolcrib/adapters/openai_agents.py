"""OpenAI Agents SDK: a sandbox client, a shell tool, an apply_patch tool, and Toolcrib's tools as function tools."""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from toolcrib import AsyncSession, Completed, Denied, ToolcribError

from ._framework import from_package
from ._run_command import NOT_ALLOWED, Ended, async_run
from ._selection import selected

with from_package("openai-agents"):
    from agents import ApplyPatchTool, FunctionTool, ShellTool
    from agents.editor import ApplyPatchOperation, ApplyPatchResult
    from agents.sandbox.errors import (
        ExecTimeoutError,
        WorkspaceArchiveReadError,
        WorkspaceArchiveWriteError,
        WorkspaceReadNotFoundError,
    )
    from agents.sandbox.manifest import Manifest
    from agents.sandbox.session.base_sandbox_session import BaseSandboxSession
    from agents.sandbox.session.pty_types import PtyExecUpdate
    from agents.sandbox.session.sandbox_client import BaseSandboxClient
    from agents.sandbox.session.sandbox_session import SandboxSession
    from agents.sandbox.session.sandbox_session_state import SandboxSessionState
    from agents.sandbox.session.workspace_payloads import coerce_write_payload
    from agents.sandbox.snapshot import resolve_snapshot
    from agents.sandbox.types import ExecResult
    from agents.sandbox.util.tar_utils import UnsafeTarMemberError, validate_tarfile
    from agents.tool import ShellCallOutcome, ShellCommandOutput, ShellCommandRequest, ShellResult

    from ._openai_running_commands import RunningCommands

_ARCHIVE_BYTES = 4 << 30
_DEFAULT_MANIFEST_ROOT = Manifest.model_fields["root"].default


class ToolcribSandboxSessionState(SandboxSessionState):
    type: Literal["toolcrib"] = "toolcrib"
    root_is_temporary: bool = False


class ToolcribSandboxSession(BaseSandboxSession):
    """A sandbox session whose workspace is a directory of this machine."""

    state: ToolcribSandboxSessionState

    def __init__(self, state: ToolcribSandboxSessionState, options: dict[str, Any]) -> None:
        self.state = state
        self._options = options
        self._session: AsyncSession | None = None
        self._running = RunningCommands()

    @property
    def toolcrib(self) -> AsyncSession:
        """The session below, for `call`, `snapshot`, `restore` and `undo`."""
        if self._session is None:
            raise RuntimeError("the sandbox session is not started")
        return self._session

    async def _ensure_backend_started(self) -> None:
        if self.state.manifest.users or self.state.manifest.groups:
            raise ValueError("Toolcrib does not make users or groups")
        if self._session is None:
            os.makedirs(self.state.manifest.root, exist_ok=True)
            self._session = await AsyncSession(self.state.manifest.root, **self._options).__aenter__()

    async def _shutdown_backend(self) -> None:
        await self.pty_terminate_all()
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def running(self) -> bool:
        return self._session is not None

    async def _exec_internal(self, *command: str | Path, timeout: float | None = None) -> ExecResult:
        argv = [str(part) for part in command]
        env = dict(await self.state.manifest.environment.resolve())
        done = await async_run(self.toolcrib, argv, env=env, timeout=timeout)
        if done.timed_out:
            raise ExecTimeoutError(command=command, timeout_s=timeout)
        return ExecResult(stdout=done.stdout, stderr=done.stderr, exit_code=done.status)

    def supports_pty(self) -> bool:
        return True

    async def pty_exec_start(
        self,
        *command: str | Path,
        timeout: float | None = None,
        shell: bool | list[str] = True,
        user: Any = None,
        tty: bool = False,
        yield_time_s: float | None = None,
        max_output_tokens: int | None = None,
    ) -> PtyExecUpdate:
        _refuse_user(user)
        argv = self._prepare_exec_command(*command, shell=shell, user=None)
        env = dict(await self.state.manifest.environment.resolve())
        stdin, pty = (None, (24, 80)) if tty else (b"", None)
        try:
            process = await self.toolcrib.spawn(argv, env=env, stdin=stdin, timeout=timeout, pty=pty)
        except Denied as error:
            return PtyExecUpdate(None, str(error).encode(), NOT_ALLOWED, None)
        return await self._running.start(process, tty, yield_time_s, max_output_tokens)

    async def pty_write_stdin(
        self, *, session_id: int, chars: str, yield_time_s: float | None = None, max_output_tokens: int | None = None
    ) -> PtyExecUpdate:
        return await self._running.write(session_id, chars, yield_time_s, max_output_tokens)

    async def pty_terminate_all(self) -> None:
        await self._running.end_all()

    async def read(self, path: Path, *, user: object = None) -> io.IOBase:
        _refuse_user(user)
        try:
            return io.BytesIO(await self.toolcrib.read(str(self.normalize_path(path))))
        except ToolcribError as error:
            failure = WorkspaceReadNotFoundError if error.kind == "not_found" else WorkspaceArchiveReadError
            raise failure(path=path, context={"reason": error.message}, cause=error) from error

    async def write(self, path: Path, data: io.IOBase, *, user: object = None) -> None:
        _refuse_user(user)
        content = coerce_write_payload(path=path, data=data).stream.read()
        target = self.normalize_path(path, for_write=True)
        try:
            await self.toolcrib.write(str(target), bytes(content))
        except ToolcribError as error:
            raise WorkspaceArchiveWriteError(path=target, context={"reason": error.message}, cause=error) from error

    async def mkdir(self, path: Path | str, *, parents: bool = False, user: object = None) -> None:
        _refuse_user(user)
        target = self.normalize_path(path, for_write=True)
        if target == self._workspace_root_path():
            return  # It was made at the start.
        try:
            await self.toolcrib.mkdir(str(target), parents=parents, exist_ok=parents)
        except ToolcribError as error:
            raise WorkspaceArchiveWriteError(path=target, context={"reason": error.message}, cause=error) from error

    async def persist_workspace(self) -> io.IOBase:
        skipped = [f"--exclude=./{path.as_posix()}" for path in sorted(self._persist_workspace_skip_relpaths())]
        done = await self.toolcrib.exec(["tar", "-cf", "-", *skipped, "."], max_output=_ARCHIVE_BYTES)
        if not done.success:
            raise WorkspaceArchiveReadError(path=self._workspace_root_path(), context=_failure(done))
        return io.BytesIO(done.stdout)

    async def hydrate_workspace(self, data: io.IOBase) -> None:
        root, content = self._workspace_root_path(), data.read()
        try:
            with tarfile.open(fileobj=io.BytesIO(content), mode="r:*") as archive:
                validate_tarfile(archive, allow_external_symlink_targets=False)
        except (UnsafeTarMemberError, tarfile.TarError) as error:
            raise WorkspaceArchiveWriteError(path=root, cause=error) from error
        done = await self.toolcrib.exec(["tar", "-xf", "-"], stdin=content)
        if not done.success:
            raise WorkspaceArchiveWriteError(path=root, context=_failure(done))


class ToolcribSandboxClient(BaseSandboxClient[None]):
    """Makes sandbox sessions in `Manifest.root`, or in a temporary directory if the manifest names none.

    `options` are the arguments of `AsyncSession`.
    """

    backend_id = "toolcrib"
    supports_default_options = True

    def __init__(self, **options: Any) -> None:
        self._options = options

    async def create(self, *, snapshot: Any = None, manifest: Manifest | None = None, options: None = None) -> Any:
        manifest = self._validate_manifest_for_create(manifest if manifest is not None else Manifest())
        temporary = manifest.root == _DEFAULT_MANIFEST_ROOT
        if temporary:
            manifest = manifest.model_copy(update={"root": tempfile.mkdtemp(prefix="toolcrib-sandbox-")}, deep=True)
        session_id = uuid.uuid4()
        state = ToolcribSandboxSessionState(
            session_id=session_id,
            manifest=manifest,
            snapshot=resolve_snapshot(snapshot, str(session_id)),
            root_is_temporary=temporary,
        )
        return self._wrap_session(ToolcribSandboxSession(state, self._options))

    async def resume(self, state: SandboxSessionState) -> SandboxSession:
        if not isinstance(state, ToolcribSandboxSessionState):
            raise TypeError("this is not the state of a Toolcrib sandbox session")
        inner = ToolcribSandboxSession(state, self._options)
        inner._set_start_state_preserved(os.path.isdir(state.manifest.root))
        return self._wrap_session(inner)

    async def delete(self, session: SandboxSession) -> SandboxSession:
        if isinstance(session.state, ToolcribSandboxSessionState) and session.state.root_is_temporary:
            shutil.rmtree(session.state.manifest.root, ignore_errors=True)
        return session

    def deserialize_session_state(self, payload: dict[str, object]) -> SandboxSessionState:
        return self._deserialize_session_state_payload(payload, ToolcribSandboxSessionState)


class ToolcribEditor:
    """Applies the operations of `ApplyPatchTool` with Toolcrib's ApplyPatch."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def create_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        return await self._apply("Add", operation)

    async def update_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        return await self._apply("Update", operation)

    async def delete_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        return await self._apply("Delete", operation)

    async def _apply(self, action: str, operation: ApplyPatchOperation) -> ApplyPatchResult:
        lines = ["*** Begin Patch", f"*** {action} File: {operation.path}"]
        if operation.move_to is not None:
            lines.append(f"*** Move to: {operation.move_to}")
        if operation.diff:
            lines.append(operation.diff.rstrip("\n"))
        reply = await self._session.call("ApplyPatch", patch="\n".join([*lines, "*** End Patch", ""]))
        return ApplyPatchResult(status="completed" if reply.success else "failed", output=reply.output)


def apply_patch_tool(session: AsyncSession) -> ApplyPatchTool:
    return ApplyPatchTool(editor=ToolcribEditor(session))


def shell_tool(session: AsyncSession) -> ShellTool:
    """The shell tool of the Responses API. Each command is a bash script in the workspace."""

    async def execute(request: ShellCommandRequest) -> ShellResult:
        action = request.data.action
        timeout = action.timeout_ms / 1000 if action.timeout_ms else None
        outputs = []
        for command in action.commands:
            done = await async_run(session, command, timeout=timeout)
            outputs.append(_shell_output(command, done))
            if done.timed_out:
                break
        return ShellResult(output=outputs, max_output_length=action.max_output_length)

    return ShellTool(executor=execute)


async def tools(session: AsyncSession, names: Sequence[str] | None = None) -> list[FunctionTool]:
    """Toolcrib's tools, all or those in `names`."""

    def tool(definition: dict[str, Any]) -> FunctionTool:
        async def invoke(context: object, arguments: str) -> str:
            return (await session.call(definition["name"], json.loads(arguments or "{}"))).output

        return FunctionTool(
            name=definition["name"],
            description=definition["description"],
            params_json_schema=definition["inputSchema"],
            on_invoke_tool=invoke,
            strict_json_schema=False,
        )

    return [tool(each) for each in selected(await session.tools(format="mcp"), names)]


def _shell_output(command: str, done: Ended) -> ShellCommandOutput:
    if done.timed_out:
        outcome = ShellCallOutcome(type="timeout")
    else:
        outcome = ShellCallOutcome(type="exit", exit_code=done.status)
    stdout, stderr = done.texts()
    return ShellCommandOutput(stdout=stdout, stderr=stderr, outcome=outcome, command=command)


def _failure(done: Completed) -> dict[str, object]:
    return {"exit_code": done.exit_code, "stderr": done.stderr.decode(errors="replace")[:4096]}


def _refuse_user(user: object) -> None:
    if user is not None:
        raise ValueError("Toolcrib does not run as another user")
