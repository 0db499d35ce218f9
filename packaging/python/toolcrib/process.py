"""Commands that run while the caller goes on, for threads."""

import threading
from collections import deque
from collections.abc import Callable, Iterator

from . import _operations as operations
from ._messages import Callback, Event, Output, ReplyMessage, Started, StreamName
from ._operations import Operation
from ._output_buffer import OutputBuffer
from ._thread_calls import CANCEL_SECONDS, Calls
from .errors import Timeout, ToolcribError
from .results import Exit


class ProcessStdin:
    """The standard input of a command."""

    def __init__(self, calls: Calls, id: int) -> None:
        self._calls = calls
        self._id = id

    def write(self, data: bytes | str) -> None:
        """Writes all of `data`; returns when the command's pipe or terminal has taken it."""
        raw = operations.as_bytes(data, "data")
        self._calls.run_steps(operations.write_stdin(self._id, raw))

    def close(self) -> None:
        """Ends the input."""
        self._calls.run(operations.close_stdin(self._id))


class ProcessOutput:
    """One output stream of a command: an iterator of chunks as they arrive."""

    def __init__(self, process: "Process", stream: StreamName) -> None:
        self._process = process
        self._stream: StreamName = stream

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        chunk = self._process.next_chunk(self._stream)
        if chunk is None:
            raise StopIteration
        return chunk[1]

    def read(self) -> bytes:
        """Everything until the command ends."""
        return b"".join(self)


class Process:
    """A running command. As a context manager it is killed at the end of the block if it still runs."""

    def __init__(self, calls: Calls, operation: Operation[Exit], max_output: int | None) -> None:
        self._calls = calls
        self._operation = operation
        self._changed = threading.Condition()
        self._buffer = OutputBuffer(max_output)
        self._callbacks: deque[Callback] = deque()
        self._is_attended = True
        self._is_started = False
        self._reply: ReplyMessage | None = None
        self._error: ToolcribError | None = None
        self.id = calls.connection.new_id()
        """The id of the request."""
        self.stdin = ProcessStdin(calls, self.id)
        self.stdout = ProcessOutput(self, "stdout")
        self.stderr = ProcessOutput(self, "stderr")

    def output(self) -> Iterator[tuple[StreamName, bytes]]:
        """Chunks of both streams, in the order of their arrival."""
        while chunk := self.next_chunk(None):
            yield chunk

    def signal(self, name: str) -> None:
        """Sends TERM, INT, HUP, QUIT, KILL, USR1 or USR2 to the processes of the command."""
        self._calls.run(operations.signal(self.id, name))

    def resize(self, rows: int, cols: int) -> None:
        """Sets the size of the command's terminal."""
        self._calls.run(operations.resize(self.id, rows, cols))

    def poll(self) -> Exit | None:
        """The end of the command, or None while it runs."""
        with self._changed:
            if not self._has_ended():
                return None
        return self._end()

    def wait(self, timeout: float | None = None) -> Exit:
        """Waits for the end of the command. Raises `Timeout` after `timeout` seconds; the command then goes on."""
        with self._changed:
            if not self._changed.wait_for(self._has_ended, timeout):
                raise Timeout(f"the command still runs after {timeout} s", "`kill` ends it.")
        return self._end()

    def cancel(self) -> None:
        """Ends the command; `wait` then raises `Cancelled`."""
        self._calls.connection.cancel(self.id)

    def kill(self) -> None:
        """Kills the processes of the command. Does nothing if it has ended."""
        try:
            self.signal("KILL")
        except ToolcribError:
            with self._changed:
                if not self._changed.wait_for(self._has_ended, 1):
                    raise

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def next_chunk(self, stream: StreamName | None) -> tuple[StreamName, bytes] | None:
        """Waits for the next chunk. None at the end. Questions are answered if a thread attends to the command."""
        chunk: tuple[StreamName, bytes] | None = None

        def is_ready() -> bool:
            nonlocal chunk
            chunk = self._buffer.take(stream)
            return chunk is not None or self._has_ended() or self._buffer.error is not None

        self._wait_until(is_ready)
        if chunk is None:
            if self._buffer.error is not None:
                raise self._buffer.error
            if self._error is not None:
                raise self._error
        return chunk

    def start(self) -> None:
        """Sends the request."""
        self._calls.connection.start(self.id, self._operation, self)

    def wait_started(self) -> None:
        """Waits until the command is started, and answers questions about it in this thread."""
        self._wait_until(lambda: self._is_started or self._has_ended())
        if self._has_ended() and not self._is_started:
            self._end()

    def leave(self) -> None:
        """From now on no thread attends to the command: questions are answered in threads of their own."""
        with self._changed:
            self._is_attended = False
            left, self._callbacks = self._callbacks, deque()
        for callback in left:
            self._calls.connection.run_unclaimed(callback)

    def stop(self) -> None:
        """Cancels the command if it runs, and waits a moment for its end."""
        if self._calls.connection.cancel(self.id):
            with self._changed:
                self._changed.wait_for(self._has_ended, CANCEL_SECONDS)

    def _wait_until(self, is_ready: Callable[[], bool]) -> None:
        while True:
            with self._changed:
                while not self._callbacks:
                    if is_ready():
                        return
                    self._changed.wait()
                callback = self._callbacks.popleft()
            self._calls.run_callback(callback)

    def _has_ended(self) -> bool:
        return self._reply is not None or self._error is not None

    def _end(self) -> Exit:
        if self._buffer.error is not None:
            raise self._buffer.error
        if self._error is not None:
            raise self._error
        assert self._reply is not None
        return self._operation.finish(self._reply)

    # Messages, in the I/O thread.

    def event(self, event: Event) -> None:
        """Keeps output."""
        within_limit = True
        with self._changed:
            if isinstance(event, Started):
                self._is_started = True
            elif isinstance(event, Output):
                within_limit = self._buffer.put(event.stream, event.data)
            self._changed.notify_all()
        if not within_limit:
            self._calls.connection.cancel(self.id)

    def callback(self, callback: Callback) -> bool:
        """Keeps a question for the thread that attends to the command."""
        with self._changed:
            if self._is_attended:
                self._callbacks.append(callback)
                self._changed.notify_all()
            return self._is_attended

    def reply(self, reply: ReplyMessage) -> None:
        """The command has ended."""
        with self._changed:
            self._reply = reply
            self._changed.notify_all()

    def lost(self, error: ToolcribError) -> None:
        """The session has ended."""
        with self._changed:
            self._error = error
            self._changed.notify_all()
