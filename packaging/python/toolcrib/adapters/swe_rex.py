"""SWE-ReX: a runtime, and a deployment that starts it."""

from __future__ import annotations

import os
from typing import Any

from toolcrib import AsyncSession, ToolcribError

from ._framework import from_package
from ._host_files import async_upload
from ._os_errors import os_errors
from ._run_command import async_run

with from_package("swe-rex"):
    from swerex.deployment.abstract import AbstractDeployment
    from swerex.deployment.hooks.abstract import CombinedDeploymentHook, DeploymentHook
    from swerex.exceptions import (
        BashIncorrectSyntaxError,
        CommandTimeoutError,
        DeploymentNotStartedError,
        NonZeroExitCodeError,
        SessionDoesNotExistError,
        SessionExistsError,
    )
    from swerex.runtime.abstract import (
        AbstractRuntime,
        BashAction,
        BashInterruptAction,
        BashObservation,
        CloseBashSessionResponse,
        CloseResponse,
        CloseSessionRequest,
        Command,
        CommandResponse,
        CreateBashSessionRequest,
        CreateBashSessionResponse,
        IsAliveResponse,
        ReadFileRequest,
        ReadFileResponse,
        UploadRequest,
        UploadResponse,
        WriteFileRequest,
        WriteFileResponse,
    )
    from swerex.utils.log import get_logger

# Runs the command $1 with the state of the shell in the file $2: directory, variables, functions and aliases. With a
# shell for each command, each command is one change in the journal, and a timeout does not end the session.
_RUN_WITH_STATE = """
exec 2>&1
shopt -s expand_aliases
__toolcrib_state=$2
__toolcrib_save() {
    { declare -p; declare -f; alias -p; printf 'cd -- %q\\n' "$PWD"; } > "$__toolcrib_state"
}
[ -f "$2" ] && . "$2" 2> /dev/null
trap __toolcrib_save EXIT
eval "$1"
"""


class ToolcribRuntime(AbstractRuntime):
    """Runs commands in a session. Interactive commands (`is_interactive_command`) and `expect` are not supported."""

    def __init__(self, session: AsyncSession) -> None:
        self.logger = get_logger("rex-runtime")
        self._session = session
        self._states: dict[str, str] = {}

    async def is_alive(self, *, timeout: float | None = None) -> IsAliveResponse:
        try:
            await self._session.info()
        except ToolcribError as error:
            return IsAliveResponse(is_alive=False, message=str(error))
        return IsAliveResponse(is_alive=True)

    async def create_session(self, request: CreateBashSessionRequest) -> CreateBashSessionResponse:
        if request.session in self._states:
            raise SessionExistsError(f"session {request.session} already exists")
        self._states[request.session] = f"/tmp/.swe-rex-{os.urandom(8).hex()}"
        output = ""
        for path in request.startup_source:
            action = BashAction(command=f'source "{path}"', session=request.session, timeout=request.startup_timeout)
            output += (await self.run_in_session(action)).output
        return CreateBashSessionResponse(output=output)

    async def run_in_session(self, action: BashAction | BashInterruptAction) -> BashObservation:
        state = self._state(action.session)
        if isinstance(action, BashInterruptAction):
            # A command that exceeded its timeout has ended already.
            return BashObservation(exit_code=0)
        if action.is_interactive_command or action.is_interactive_quit or action.expect:
            raise NotImplementedError("interactive commands are not supported")
        check = await self._session.exec(["bash", "-n"], stdin=action.command.encode())
        if check.exit_code != 0:
            stderr = check.stderr.decode(errors="backslashreplace")
            extra_info = {"bash_stdout": "", "bash_stderr": stderr}
            raise BashIncorrectSyntaxError(f"invalid command {action.command!r}\n{stderr}", extra_info=extra_info)
        argv = ["bash", "-c", _RUN_WITH_STATE, "bash", action.command, state]
        done = await async_run(self._session, argv, timeout=action.timeout)
        output = done.both.decode(errors="backslashreplace")
        if done.timed_out:
            raise CommandTimeoutError(f"timeout after {action.timeout} seconds; the output was:\n{output}")
        if action.check == "raise" and done.status != 0:
            raise _nonzero(action.error_msg, action.command, done.status, output)
        return BashObservation(output=output, exit_code=None if action.check == "ignore" else done.status)

    async def close_session(self, request: CloseSessionRequest) -> CloseBashSessionResponse:
        state = self._state(request.session)
        del self._states[request.session]
        await self._session.remove(state, missing_ok=True)
        return CloseBashSessionResponse()

    async def execute(self, command: Command) -> CommandResponse:
        if isinstance(command.command, str) and not command.shell:
            argv: str | list[str] = [command.command]
        else:
            argv = command.command
        done = await async_run(self._session, argv, cwd=command.cwd, env=command.env, timeout=command.timeout)
        if done.timed_out:
            raise CommandTimeoutError(f"timeout ({command.timeout} s) exceeded while running command")
        stdout, stderr = done.texts("backslashreplace")
        if command.merge_output_streams:
            stdout, stderr = done.both.decode(errors="backslashreplace"), ""
        response = CommandResponse(stdout=stdout, stderr=stderr, exit_code=done.status)
        if command.check and response.exit_code != 0:
            raise _nonzero(command.error_msg, command.command, done.status, response.stdout + response.stderr)
        return response

    async def read_file(self, request: ReadFileRequest) -> ReadFileResponse:
        with os_errors(request.path):
            data = await self._session.read(request.path)
        return ReadFileResponse(content=data.decode(request.encoding or "utf-8", request.errors or "strict"))

    async def write_file(self, request: WriteFileRequest) -> WriteFileResponse:
        with os_errors(request.path):
            await self._session.write(request.path, request.content)
        return WriteFileResponse()

    async def upload(self, request: UploadRequest) -> UploadResponse:
        with os_errors(request.target_path):
            await async_upload(self._session, request.source_path, request.target_path)
        return UploadResponse()

    async def close(self) -> CloseResponse:
        self._states.clear()
        await self._session.close()
        return CloseResponse()

    def _state(self, name: str) -> str:
        if name not in self._states:
            raise SessionDoesNotExistError(f"session {name!r} does not exist")
        return self._states[name]


class ToolcribDeployment(AbstractDeployment):
    """Starts a runtime in the directory `root`; use it in place of `LocalDeployment`."""

    def __init__(self, root: str | os.PathLike[str], **options: Any) -> None:
        self.logger = get_logger("rex-deploy")
        self._root = root
        self._options = options
        self._hooks = CombinedDeploymentHook()
        self._runtime: ToolcribRuntime | None = None

    def add_hook(self, hook: DeploymentHook) -> None:
        self._hooks.add_hook(hook)

    async def is_alive(self, *, timeout: float | None = None) -> IsAliveResponse:
        if self._runtime is None:
            return IsAliveResponse(is_alive=False, message="the deployment is not started")
        return await self._runtime.is_alive(timeout=timeout)

    async def start(self) -> None:
        if self._runtime is None:
            session = await AsyncSession(self._root, **self._options).__aenter__()
            self._runtime = ToolcribRuntime(session)

    async def stop(self) -> None:
        runtime, self._runtime = self._runtime, None
        if runtime is not None:
            await runtime.close()

    @property
    def runtime(self) -> ToolcribRuntime:
        if self._runtime is None:
            raise DeploymentNotStartedError
        return self._runtime


def _nonzero(message: str, command: object, status: int, output: str) -> NonZeroExitCodeError:
    text = f"the command {command!r} failed with exit code {status}. Here is the output:\n{output!r}"
    return NonZeroExitCodeError(f"{message}: {text}" if message else text)
