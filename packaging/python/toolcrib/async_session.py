"""A session for asyncio."""

import asyncio
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from . import _operations as operations
from ._callbacks import Callbacks
from ._collected_output import CollectedOutput
from ._loop_calls import AsyncCalls
from ._loop_connection import LoopConnection
from ._loop_files import AsyncFileMethods
from ._operations import Command, Operation, Path, Steps, Unset
from ._options import Options
from .approvals import Approver
from .async_job import AsyncJob
from .async_process import AsyncProcess
from .errors import InvalidArgument, SessionClosed
from .own_tools import OwnTool
from .results import Change, Completed, Info, Progress, Reply, Restored, ToolFormat

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])


class AsyncSession(AsyncFileMethods):
    """Toolcrib in a child process, for asyncio. Many tasks of one event loop may use it at the same time.

    The program is started by `async with`, or by the first request. Cancelling a task cancels its request and waits for
    the end of the request.

    If the program ends unexpectedly, all running requests raise `SessionClosed`. With `restart` the next request starts it
    again: the working directory and variables of Bash, background jobs, the session's /tmp and approvals "for this
    session" are lost; the journal, and so `history`, `undo` and `restore`, is not. Own tools are registered again.

    A forked process cannot use the session of its parent, and does not end it.

    Args:
        root: The directory that the tools may change, or several; `DIR:ro` is read-only.
        profile: `read-only`, `cautious`, `workspace` (default) or `open`.
        rules: A rules file instead of the user's.
        tools: The tools to offer; all by default.
        network: Network access of commands: `none`, `list` or `all`.
        approver: Decides on calls that need approval; without one they are denied. An `async` function runs in the
            event loop, any other in a thread.
        env: Variables of the program, in addition to those of this process; None removes one.
        binary: The program; default: `$TOOLCRIB_BINARY`, the installed one, or the one on `$PATH`.
        state: The directory of the journal.
        restart: Whether a request starts the program again after it ended unexpectedly.
        extra_args: More options for the command line of the program.
    """

    def __init__(
        self,
        root: Path | Sequence[Path] = ".",
        *,
        profile: str | None = None,
        rules: Path | None = None,
        tools: Sequence[str] | None = None,
        network: str | None = None,
        approver: Approver | None = None,
        env: Mapping[str, str | None] | None = None,
        binary: Path | None = None,
        state: Path | None = None,
        restart: bool = True,
        extra_args: Sequence[str] = (),
    ) -> None:
        self._calls: AsyncCalls | None = None
        self._connection: LoopConnection | None = None
        self._starting: asyncio.Lock | None = None
        self._closed = False
        self._restart = restart
        self._callbacks = Callbacks(approver)
        self._options = Options.build(
            root=root,
            profile=profile,
            rules=rules,
            tools=tools,
            network=network,
            state=state,
            approvals=approver is not None,
            env=env,
            binary=binary,
            extra_args=extra_args,
        )

    async def __aenter__(self) -> "AsyncSession":
        await self._connected()
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends running requests, background jobs and the program. May be called more than once."""
        connection = self._connection
        if connection is not None and connection.is_elsewhere:
            raise _other_loop_error()
        self._closed = True
        if connection is not None and not connection.is_foreign:
            await connection.close(_closed_error())

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    @property
    def pid(self) -> int | None:
        """The process id of the program, once it was started."""
        return None if self._connection is None else self._connection.pid

    # Tools.

    async def call(self, tool: str, args: Mapping[str, Any] | None = None, /, **named: Any) -> Reply:
        """Calls a tool: `call("Read", file_path="a.py")`, or with the arguments of a model: `call(name, arguments)`.

        A failure is a reply with `success=False`; `raise_for_error` makes it an exception.
        """
        return await self.request(tool, {**(args or {}), **named})

    async def request(
        self,
        tool: str,
        args: Mapping[str, Any],
        *,
        dry_run: bool = False,
        timeout: float | None = None,
        on_progress: Callable[[Progress], Any] | None = None,
    ) -> Reply:
        """Calls a tool, with options.

        Args:
            dry_run: Check the call and show its changes, but change nothing.
            timeout: Seconds after which the call is cancelled and `Timeout` is raised.
            on_progress: Is called in this task while the call runs; may be `async`.
        """
        operation = operations.tool(tool, args, dry_run, on_progress is not None)
        return await (await self._connected()).run(operation, timeout, on_progress)

    async def tools(self, format: ToolFormat = "anthropic") -> list[dict[str, Any]]:
        """The definitions of all tools for a model API, own tools included."""
        return await self._run(operations.tools(format))

    async def register(
        self,
        function: Function,
        *,
        name: str | None = None,
        description: str | None = None,
        schema: dict[str, Any] | None = None,
        read_only: bool = False,
        reaches: str | None = None,
    ) -> Function:
        """Makes a function a tool of this session: part of `tools()`, `call()`, the policy and the records.

        Must be called before the first other request. The description is the docstring; a section `Args:` describes the
        arguments. The schema comes from the annotations. The result is text, or becomes JSON. An `async` function runs in
        the event loop, any other in a thread. Returns the function.

        Args:
            read_only: Whether the function changes nothing.
            reaches: What the function acts on outside the workspace, such as a host; the policy decides on it.
        """
        tool = OwnTool.from_function(
            function, name=name, description=description, schema=schema, read_only=read_only, reaches=reaches
        )
        await self._run(operations.register(tool))
        self._callbacks.tools[tool.name] = tool
        return function

    async def history(self, limit: int = 20) -> list[Change]:
        """The newest changes in the journal."""
        return await self._run(operations.history(limit))

    async def undo(
        self,
        steps: int | None = None,
        *,
        id: int | None | Unset = Unset.UNSET,
        since: int | None | Unset = Unset.UNSET,
        path: Path | None = None,
    ) -> Restored:
        """Reverts the last change, the last `steps`, the one with an `id`, or all `since` an id; later edits are kept.

        `undo(3)` reverts the last three changes, `undo(id=3)` only the one with the id 3. An id that is None is an error.
        """
        return await self._run(operations.undo(steps, id, since, path))

    async def info(self) -> Info:
        """Version, roots, the session's /tmp and the sandbox."""
        return await self._run(operations.info())

    # Commands.

    async def exec(
        self,
        command: Command,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | str = b"",
        timeout: float | None = None,
        on_stdout: Callable[[bytes], Any] | None = None,
        on_stderr: Callable[[bytes], Any] | None = None,
        capture: bool = True,
        max_output: int | None = None,
    ) -> Completed:
        """Runs a command to its end: a list of arguments, or a text for bash. The output is exact and complete.

        Args:
            timeout: Seconds after which all processes of the command are killed; the result has `timed_out`.
            on_stdout: Is called in this task with each chunk of output; may be `async`. `on_stderr` likewise.
            capture: Whether the result has the output.
            max_output: Bytes of output at which the command is ended with `LimitExceeded`; default 256 MiB.
        """
        raw = operations.as_bytes(stdin, "stdin")
        operation = operations.exec(command, cwd, env, timeout, raw, None)
        collected = CollectedOutput(on_stdout, on_stderr, capture, max_output)
        process = AsyncProcess(await self._connected(), operation, max_output)
        await process.start()
        try:
            async for stream, data in process.output():
                seen = collected.add(stream, data)
                if inspect.isawaitable(seen):
                    await seen
            return collected.completed(await process.wait())
        except BaseException:
            await process.stop()
            raise

    async def spawn(
        self,
        command: Command,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | str | None = None,
        timeout: float | None = None,
        pty: tuple[int, int] | None = None,
        max_output: int | None = None,
    ) -> AsyncProcess:
        """Starts a command and returns while it runs.

        Args:
            stdin: The whole input; by default it is open for `AsyncProcess.stdin`.
            pty: Rows and columns of a terminal for the command; its output is then all in `stdout`.
            max_output: Bytes of unread output at which the command is ended; default 256 MiB.
        """
        raw = None if stdin is None else operations.as_bytes(stdin, "stdin")
        operation = operations.exec(command, cwd, env, timeout, raw, pty)
        process = AsyncProcess(await self._connected(), operation, max_output)
        await process.start()
        return process

    async def start_job(self, command: str, **args: Any) -> AsyncJob:
        """Starts a command in the background with the tool Bash. `args` are more arguments of Bash."""
        reply = await self.call("Bash", {**args, "command": command, "run_in_background": True})
        return self.job(reply.raise_for_error().metadata["bash_id"])

    def job(self, id: str) -> AsyncJob:
        """The background job with an id, such as the `bash_id` in the metadata of a reply of Bash."""
        return AsyncJob(self, id)

    # The connection.

    async def _run(self, operation: Operation[T]) -> T:
        return await (await self._connected()).run(operation)

    async def _run_steps(self, steps: Steps[T]) -> T:
        return await (await self._connected()).run_steps(steps)

    async def _connected(self) -> AsyncCalls:
        """The connection, started if needed."""
        calls, connection = self._calls, self._connection
        if connection is not None and connection.is_foreign and connection.error is not None:
            raise connection.error
        if connection is not None and connection.loop is not asyncio.get_running_loop() and connection.error is None:
            raise _other_loop_error()
        if calls is not None and calls.connection.error is None:
            return calls
        if self._starting is None:
            self._starting = asyncio.Lock()
        async with self._starting:
            return await self._connect()

    async def _connect(self) -> AsyncCalls:
        error = None if self._calls is None else self._calls.connection.error
        if self._calls is not None and error is None:
            return self._calls
        if self._closed:
            raise _closed_error()
        if error is not None and not self._restart:
            raise error
        connection = self._connection = LoopConnection(self._options, self._callbacks)
        await connection.open()
        if self._closed:
            # By another task, before the connection was open.
            await connection.close(_closed_error())
        calls = AsyncCalls(connection)
        for tool in self._callbacks.tools.values():
            await calls.run(operations.register(tool))
        self._calls = calls
        return calls

    def __del__(self) -> None:
        connection: LoopConnection | None = getattr(self, "_connection", None)
        if connection is not None and not self._closed and connection.error is None:
            warnings.warn(f"the session {self!r} was not closed", ResourceWarning, source=self)
            if not connection.loop.is_closed():
                connection.loop.call_soon_threadsafe(connection.end_input)


def _closed_error() -> SessionClosed:
    return SessionClosed("the session is closed", "Make a new `AsyncSession`.")


def _other_loop_error() -> InvalidArgument:
    return InvalidArgument(
        "this AsyncSession belongs to another event loop", "Make one `AsyncSession` for each event loop."
    )
