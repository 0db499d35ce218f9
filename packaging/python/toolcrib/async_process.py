"""Commands that run while the caller goes on, for asyncio."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from . import _operations as operations
from ._loop_calls import CANCEL_SECONDS, AsyncCalls
from ._messages import Callback, Event, Output, ReplyMessage, Started, StreamName
from ._operations import Operation
from ._output_buffer import OutputBuffer
from .errors import Timeout, ToolcribError
from .results import Exit


class AsyncProcessStdin:
    """The standard input of a command."""

    def __init__(self, process: "AsyncProcess", calls: AsyncCalls) -> None:
        self._process = process
        self._calls = calls

    async def write(self, data: bytes | str) -> None:
        """Writes all of `data`; returns when the command's pipe or terminal has taken it."""
        raw = operations.as_bytes(data, "data")
        await self._calls.run_steps(operations.write_stdin(self._process.id, raw))

    async def close(self) -> None:
        """Ends the input."""
        await self._calls.run(operations.close_stdin(self._process.id))


class AsyncProcessOutput:
    """One output stream of a command: an asynchronous iterator of chunks as they arrive."""

    def __init__(self, process: "AsyncProcess", stream: StreamName) -> None:
        self._process = process
        self._stream: StreamName = stream

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        chunk = await self._process.next_chunk(self._stream)
        if chunk is None:
            raise StopAsyncIteration
        return chunk[1]

    async def read(self) -> bytes:
        """Everything until the command ends."""
        return b"".join([chunk async for chunk in self])


class AsyncProcess:
    """A running command. As a context manager it is ended with the block if it still runs."""

    def __init__(self, calls: AsyncCalls, operation: Operation[Exit], max_output: int | None) -> None:
        self._calls = calls
        self._operation = operation
        self._buffer = OutputBuffer(max_output)
        self._waiting: set[asyncio.Future[None]] = set()
        self._is_started = False
        self._reply: ReplyMessage | None = None
        self._error: ToolcribError | None = None
        self.id = 0
        """The id of the request."""
        self.stdin = AsyncProcessStdin(self, calls)
        self.stdout = AsyncProcessOutput(self, "stdout")
        self.stderr = AsyncProcessOutput(self, "stderr")

    async def output(self) -> AsyncIterator[tuple[StreamName, bytes]]:
        """Chunks of both streams, in the order of their arrival."""
        while chunk := await self.next_chunk(None):
            yield chunk

    async def signal(self, name: str) -> None:
        """Sends TERM, INT, HUP, QUIT, KILL, USR1 or USR2 to the processes of the command."""
        await self._calls.run(operations.signal(self.id, name))

    async def resize(self, rows: int, cols: int) -> None:
        """Sets the size of the command's terminal."""
        await self._calls.run(operations.resize(self.id, rows, cols))

    def poll(self) -> Exit | None:
        """The end of the command, or None while it runs."""
        return self._end() if self._has_ended() else None

    async def wait(self, timeout: float | None = None) -> Exit:
        """Waits for the end of the command. Raises `Timeout` after `timeout` seconds; the command then goes on."""
        try:
            await asyncio.wait_for(self._wait_until(self._has_ended), timeout)
        except asyncio.TimeoutError:
            raise Timeout(f"the command still runs after {timeout} s", "`kill` ends it.") from None
        return self._end()

    def cancel(self) -> None:
        """Ends the command; `wait` then raises `Cancelled`."""
        self._calls.connection.cancel(self.id)

    async def kill(self) -> None:
        """Kills the processes of the command. Does nothing if it has ended."""
        try:
            await self.signal("KILL")
        except ToolcribError as error:
            try:
                await asyncio.wait_for(self._wait_until(self._has_ended), 1)
            except asyncio.TimeoutError:
                raise error from None

    async def __aenter__(self) -> "AsyncProcess":
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.stop()

    async def next_chunk(self, stream: StreamName | None) -> tuple[StreamName, bytes] | None:
        """Waits for the next chunk. None at the end."""
        chunk: tuple[StreamName, bytes] | None = None

        def is_ready() -> bool:
            nonlocal chunk
            chunk = self._buffer.take(stream)
            return chunk is not None or self._has_ended() or self._buffer.error is not None

        await self._wait_until(is_ready)
        if chunk is None:
            if self._buffer.error is not None:
                raise self._buffer.error
            if self._error is not None:
                raise self._error
        return chunk

    async def start(self) -> None:
        """Starts the command, and waits until it runs."""
        self.id = await self._calls.connection.start(self._operation, self)
        try:
            await self._wait_until(lambda: self._is_started or self._has_ended())
        except BaseException:
            await self.stop()
            raise
        if self._has_ended() and not self._is_started:
            self._end()

    async def stop(self) -> None:
        """Cancels the command if it runs, and waits a moment for its end."""
        if self._calls.connection.cancel(self.id):
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._wait_until(self._has_ended), CANCEL_SECONDS)

    async def _wait_until(self, is_ready: Callable[[], bool]) -> None:
        while not is_ready():
            changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.add(changed)
            try:
                await changed
            finally:
                self._waiting.discard(changed)

    def _notify(self) -> None:
        for changed in self._waiting:
            if not changed.done():
                changed.set_result(None)

    def _has_ended(self) -> bool:
        return self._reply is not None or self._error is not None

    def _end(self) -> Exit:
        if self._buffer.error is not None:
            raise self._buffer.error
        if self._error is not None:
            raise self._error
        assert self._reply is not None
        return self._operation.finish(self._reply)

    # Messages.

    def event(self, event: Event) -> None:
        """Keeps output."""
        if isinstance(event, Started):
            self._is_started = True
        elif isinstance(event, Output) and not self._buffer.put(event.stream, event.data):
            self.cancel()
        self._notify()

    def callback(self, callback: Callback) -> bool:
        """A question, which gets a task of its own."""
        return False

    def reply(self, reply: ReplyMessage) -> None:
        """The command has ended."""
        self._reply = reply
        self._notify()

    def lost(self, error: ToolcribError) -> None:
        """The session has ended."""
        self._error = error
        self._notify()
