"""A connection for asyncio: the pipes of one child process as transports of an event loop."""

import asyncio
import contextlib
import inspect
from collections.abc import Callable
from typing import Any

from . import _live
from ._callbacks import Callbacks
from ._child import CLOSE_SECONDS, TERMINATE_SECONDS, Child
from ._exchange import Exchange, Receiver
from ._messages import Callback, Invocation
from ._operations import Operation
from ._options import Options
from .errors import InternalError, SessionClosed, ToolcribError

POLL_SECONDS = 0.02
"""Interval for checking whether the program has ended, if the kernel cannot notify."""


class _Input(asyncio.Protocol):
    """Takes the bytes of a pipe."""

    def __init__(self, take: Callable[[bytes], None], end: Callable[[], None]) -> None:
        self._take = take
        self._end = end

    def data_received(self, data: bytes) -> None:
        self._take(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()


class _Output(asyncio.BaseProtocol):
    """Tells whether a pipe takes more bytes."""

    def __init__(self) -> None:
        self.writable = asyncio.Event()
        self.writable.set()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.writable.set()


class LoopConnection:
    """A child process whose pipes an event loop reads and writes."""

    def __init__(self, options: Options, callbacks: Callbacks) -> None:
        self.loop = asyncio.get_running_loop()
        self._callbacks = callbacks
        self._child = Child(options)
        self._exchange = Exchange(self._start_callback, self._cancel_invocation)
        self._output_ended = asyncio.Event()
        self._exited = asyncio.Event()
        self._output = _Output()
        self._stdin: asyncio.WriteTransport | None = None
        self._readers: list[asyncio.BaseTransport] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._invocations: dict[Any, asyncio.Task[None]] = {}
        self._error: ToolcribError | None = None
        self._life: asyncio.Task[None] | None = None
        self.is_foreign = False

    async def open(self) -> None:
        """Connects the pipes. Must be called once, before requests."""
        _live.add(self)
        try:
            stdin, _ = await self.loop.connect_write_pipe(lambda: self._output, self._child.stdin)
            self._stdin = stdin
            stdout = _Input(self._take, self._output_ended.set)
            stderr = _Input(self._child.keep_stderr, lambda: None)
            transport, _ = await self.loop.connect_read_pipe(lambda: stdout, self._child.stdout)
            self._readers.append(transport)
            transport, _ = await self.loop.connect_read_pipe(lambda: stderr, self._child.stderr)
            self._readers.append(transport)
            if self._child.pidfd is not None:
                self.loop.add_reader(self._child.pidfd, self._on_exit)
        except BaseException:
            self._release()
            raise
        self._life = self.loop.create_task(self._supervise(), name="toolcrib-connection")

    @property
    def pid(self) -> int:
        """The process id of the program."""
        return self._child.process.pid

    @property
    def error(self) -> ToolcribError | None:
        """Why no request can be made."""
        return self._exchange.error

    async def start(self, operation: Operation[Any], receiver: Receiver) -> int:
        """Sends a request, when the program takes more bytes. Returns its id."""
        await self._output.writable.wait()
        id = self._exchange.new_id()
        self.send(self._exchange.open(id, operation, receiver))
        return id

    def cancel(self, id: int) -> bool:
        """Cancels a request. Its reply still comes. False if it has ended or was not sent."""
        parts = self._exchange.cancel(id)
        if parts is not None:
            self.send(parts)
        return parts is not None

    def send(self, parts: list[bytes]) -> None:
        """Sends a frame. If the program has ended, its requests say so."""
        if self._stdin is not None and not self._stdin.is_closing():
            for part in parts:
                self._stdin.write(part)

    @property
    def is_elsewhere(self) -> bool:
        """Whether it belongs to another event loop, which may still use it."""
        is_here = self.loop is asyncio.get_running_loop()
        return not is_here and not self.loop.is_closed() and self._life is not None and not self._life.done()

    async def close(self, error: SessionClosed) -> None:
        """Ends all requests and the program, and waits for it."""
        if self.loop.is_closed():
            self._close_after_loop(error)
            return
        for id in self._exchange.fail(error):
            self.send([b'{"cancel":%d}\n' % id])
        for task in self._tasks - {asyncio.current_task()}:
            task.cancel()
        self.end_input()
        if self._life is None:
            return
        try:
            if not await self._ends_within(CLOSE_SECONDS):
                self._child.process.terminate()
                await self._ends_within(TERMINATE_SECONDS)
        finally:
            if not self._life.done():
                self._child.end_now()
                self._exited.set()
        await asyncio.wait([self._life])
        if not self._life.cancelled():
            self._life.result()

    def _close_after_loop(self, error: SessionClosed) -> None:
        # Requests may be left that cannot be woken any more.
        with contextlib.suppress(RuntimeError):
            self._exchange.fail(error)
        self._child.end_now()
        self._child.close_pipes()
        _live.discard(self)

    def end_input(self) -> None:
        """Makes the program end by itself."""
        if self._stdin is not None:
            self._stdin.close()

    async def _ends_within(self, seconds: float) -> bool:
        assert self._life is not None
        done, _ = await asyncio.wait([self._life], timeout=seconds)
        return bool(done)

    def close_at_exit(self) -> None:
        """Ends the program; the interpreter exits, and no loop runs."""
        self._child.end_now()

    def forget_after_fork(self) -> None:
        """Gives up the descriptors in a forked process."""
        self.is_foreign = True
        message = "this session belongs to the process that started it, not to its fork"
        self._exchange = Exchange(self._start_callback, self._cancel_invocation)
        self._exchange.fail(SessionClosed(message, "Start a new `AsyncSession` after the fork."))
        self._stdin = None
        self._child.forget_after_fork()

    def _take(self, data: bytes) -> None:
        try:
            self._exchange.feed(data)
        except ToolcribError as error:
            self._error = error
            self._output_ended.set()
        except Exception as error:
            self._error = InternalError(f"the connection to the toolcrib program failed: {error!r}")
            self._output_ended.set()

    def _on_exit(self) -> None:
        if self._child.pidfd is not None:
            self.loop.remove_reader(self._child.pidfd)
        self._exited.set()

    async def _supervise(self) -> None:
        """Waits for the end of the program, reaps it and ends the requests."""
        try:
            ends = [self.loop.create_task(one.wait()) for one in (self._output_ended, self._exited)]
            try:
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in ends:
                    one.cancel()
            if self._error is None:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._end(), TERMINATE_SECONDS)
        finally:
            self._release()

    async def _end(self) -> None:
        """Waits until the program has ended and the pipe of its output is empty."""
        if self._child.pidfd is None:
            while not self._child.ended():
                await asyncio.sleep(POLL_SECONDS)
        else:
            await self._exited.wait()
        await self._output_ended.wait()

    def _release(self) -> None:
        """Ends the program if it still runs, and closes everything."""
        self._child.end_now()
        self._child.drain_stderr()
        _live.discard(self)
        self._exchange.fail(self._error or self._child.death(self._exchange.has_answered))
        for task in self._tasks:
            task.cancel()
        if self._child.pidfd is not None and not self.loop.is_closed():
            self.loop.remove_reader(self._child.pidfd)
        if not self.loop.is_closed():
            if self._stdin is not None and not self._stdin.is_closing():
                self._stdin.abort()
            for transport in self._readers:
                transport.close()
        self._child.close_pidfd()

    # Functions of the user.

    def _start_callback(self, callback: Callback) -> None:
        task = self.loop.create_task(self._run_callback(callback), name="toolcrib-callback")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if isinstance(callback, Invocation):
            self._invocations[callback.invoke] = task
            task.add_done_callback(lambda _task: self._invocations.pop(callback.invoke, None))

    def _cancel_invocation(self, invoke: Any) -> None:
        task = self._invocations.get(invoke)
        if task is not None:
            task.cancel()

    async def _run_callback(self, callback: Callback) -> None:
        """Runs an `async` function in the loop and any other in a thread, and sends its outcome."""
        task = self._callbacks.task(callback)
        try:
            value = task.function() if task.is_async else await asyncio.to_thread(task.function)
            if inspect.isawaitable(value):
                value = await value
            self.send(task.finished(value))
        except Exception as error:
            self.send(task.failed(error))


