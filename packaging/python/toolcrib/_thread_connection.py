"""A connection for threads: one thread does all I/O of one child process."""

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections import deque
from select import PIPE_BUF
from typing import Any

from . import _live
from ._callbacks import Callbacks
from ._child import CLOSE_SECONDS, TERMINATE_SECONDS, Child
from ._exchange import Exchange, Receiver
from ._messages import Callback
from ._operations import Operation
from ._options import Options
from ._run_callback import run_callback
from .errors import InternalError, SessionClosed, ToolcribError

READ_BYTES = 1 << 18
"""Bytes of one read."""

EXIT_SECONDS = 2.0
"""Time for the program to end when the interpreter exits, instead of `CLOSE_SECONDS`."""


class ThreadConnection:
    """A child process and its I/O thread. The thread ends with the process."""

    def __init__(self, options: Options, callbacks: Callbacks) -> None:
        self._callbacks = callbacks
        self._child = Child(options)
        self._exchange = Exchange(self.run_unclaimed, lambda _invoke: None)
        # Reentrant: a signal handler or a finalizer may close the session while its thread holds the lock.
        self._write_lock = threading.RLock()
        self._backlog: deque[memoryview] = deque()
        self._stdin_open = True
        self._closing = False
        self.is_foreign = False
        self._close_seconds = CLOSE_SECONDS
        self._deadlines: deque[tuple[float, int]] = deque()
        self._wake_fd = -1
        self._selector = selectors.DefaultSelector()
        self._thread = threading.Thread(target=self._run, name="toolcrib-io", daemon=True)
        try:
            self._wake_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
                os.set_blocking(pipe.fileno(), False)
            _live.add(self)
            self._thread.start()
        except BaseException:
            # No descriptor or no thread is left.
            self._finish(None)
            raise

    @property
    def pid(self) -> int:
        """The process id of the program."""
        return self._child.process.pid

    @property
    def error(self) -> ToolcribError | None:
        """Why no request can be made."""
        return self._exchange.error

    def new_id(self) -> int:
        """An id for a request."""
        return self._exchange.new_id()

    def start(self, id: int, operation: Operation[Any], receiver: Receiver) -> None:
        """Sends a request."""
        self.send(self._exchange.open(id, operation, receiver))

    def cancel(self, id: int) -> bool:
        """Cancels a request. Its reply still comes. False if it has ended or was not sent."""
        parts = self._exchange.cancel(id)
        if parts is not None:
            self.send(parts)
        return parts is not None

    def send(self, parts: list[bytes]) -> None:
        """Sends a frame. If the program has ended, the I/O thread reports it."""
        with self._write_lock:
            if not self._stdin_open:
                return
            # A short write to a pipe is atomic, so an exception in this thread cannot tear a frame.
            if not self._backlog and len(parts) == 1 and len(parts[0]) <= PIPE_BUF:
                try:
                    os.write(self._child.stdin.fileno(), parts[0])
                    return
                except BlockingIOError:
                    pass
                except OSError:
                    return
            self._backlog.extend([memoryview(part) for part in parts])
        self._wake()

    def run_unclaimed(self, callback: Callback) -> None:
        """Runs a callback for which no thread waits, in a thread of its own."""

        def run() -> None:
            self.send(run_callback(self._callbacks.task(callback)))

        threading.Thread(target=run, name="toolcrib-callback", daemon=True).start()

    def begin_close(self, error: SessionClosed, seconds: float = CLOSE_SECONDS) -> None:
        """Ends all requests and starts to end the program, without waiting for it."""
        lost = self._exchange.fail(error)
        self._close_seconds = seconds
        for id in lost:
            self.send([b'{"cancel":%d}\n' % id])
        self._closing = True
        self._wake()

    def join(self) -> None:
        """Waits until the program has ended and its descriptors are closed."""
        if threading.current_thread() is not self._thread:
            # Bounded, because a signal handler may have interrupted a thread that holds the lock.
            self._thread.join(2 * (CLOSE_SECONDS + TERMINATE_SECONDS))

    def close_at_exit(self) -> None:
        """Ends the program; the interpreter exits."""
        self.begin_close(SessionClosed("the interpreter exits"), EXIT_SECONDS)
        self.join()

    def forget_after_fork(self) -> None:
        """Gives up the descriptors in a forked process."""
        self.is_foreign = True
        self._stdin_open = False
        # Another thread may have held the lock.
        self._write_lock = threading.RLock()
        message = "this session belongs to the process that started it, not to its fork"
        self._exchange = Exchange(self.run_unclaimed, lambda _invoke: None)
        self._exchange.fail(SessionClosed(message, "Start a new `Session` after the fork."))
        self._child.forget_after_fork()
        self._selector.close()
        os.close(self._wake_fd)
        self._wake_fd = -1

    def _wake(self) -> None:
        with self._write_lock:
            if self._wake_fd >= 0:
                os.eventfd_write(self._wake_fd, 1)

    # What follows runs in the I/O thread.

    def _run(self) -> None:
        error: ToolcribError | None = None
        try:
            self._serve()
        except ToolcribError as problem:
            error = problem
        except Exception as problem:
            error = InternalError(f"the connection to the toolcrib program failed: {problem!r}")
        self._finish(error)

    def _serve(self) -> None:
        child, selector = self._child, self._selector
        stdout, stderr = child.stdout.fileno(), child.stderr.fileno()
        for fd in (stdout, stderr, self._wake_fd, child.pidfd):
            if fd is not None:
                selector.register(fd, selectors.EVENT_READ)
        stdin_registered = False
        while True:
            if bool(self._backlog) != stdin_registered:
                stdin_registered = self._watch_stdin(not stdin_registered)
            for key, _events in selector.select(self._next_deadline()):
                if key.fd == stdout:
                    if not self._read_stdout(stdout):
                        return
                elif key.fd == stderr:
                    self._read_stderr(stderr)
                elif key.fd == self._wake_fd:
                    os.eventfd_read(self._wake_fd)
                elif key.fd == child.pidfd:
                    # The output that is left in the pipe; a child of the program may hold it open.
                    while self._read_stdout(stdout, until_empty=True):
                        pass
                    return
                elif key.fd == child.stdin.fileno():
                    self._write_backlog()
            if self._closing:
                self._go_on_closing()

    def _watch_stdin(self, watch: bool) -> bool:
        """Watches standard input while there is something to write."""
        if not self._stdin_open:
            self._backlog.clear()
            return False
        if watch:
            self._selector.register(self._child.stdin.fileno(), selectors.EVENT_WRITE)
        else:
            self._selector.unregister(self._child.stdin.fileno())
        return watch

    def _read_stdout(self, fd: int, until_empty: bool = False) -> bool:
        """Reads once. False at the end of the output."""
        try:
            data = os.read(fd, READ_BYTES)
        except BlockingIOError:
            return not until_empty
        self._exchange.feed(data)
        return bool(data)

    def _read_stderr(self, fd: int) -> None:
        data = os.read(fd, READ_BYTES)
        if data:
            self._child.keep_stderr(data)
        else:
            self._selector.unregister(fd)

    def _write_backlog(self) -> None:
        try:
            while self._backlog:
                part = self._backlog[0]
                written = os.write(self._child.stdin.fileno(), part[: 1 << 20])
                with self._write_lock:
                    if written == len(part):
                        self._backlog.popleft()
                    else:
                        self._backlog[0] = part[written:]
        except BlockingIOError:
            pass
        except OSError:
            # The program has ended; the end of its output says so.
            self._close_stdin()

    def _close_stdin(self) -> None:
        with self._write_lock:
            if not self._stdin_open:
                return
            self._stdin_open = False
            with contextlib.suppress(KeyError):
                self._selector.unregister(self._child.stdin.fileno())
            self._child.stdin.close()
            self._backlog.clear()

    def _go_on_closing(self) -> None:
        """Ends the input once everything is sent, then the program if it does not end by itself."""
        now = time.monotonic()
        if self._stdin_open and not self._deadlines:
            end = now + self._close_seconds
            self._deadlines.extend([(end, signal.SIGTERM), (end + TERMINATE_SECONDS, signal.SIGKILL)])
        if self._stdin_open and not self._backlog:
            self._close_stdin()
        while self._deadlines and self._deadlines[0][0] <= now:
            self._child.process.send_signal(self._deadlines.popleft()[1])

    def _next_deadline(self) -> float | None:
        return max(0.0, self._deadlines[0][0] - time.monotonic()) if self._deadlines else None

    def _finish(self, error: ToolcribError | None) -> None:
        """Reaps the program, closes the descriptors and ends the requests."""
        self._close_stdin()
        child = self._child
        if error is None and not child.ended():
            # It has closed its output, so it is about to end.
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.process.wait(TERMINATE_SECONDS)
        child.end_now()
        child.drain_stderr()
        _live.discard(self)
        self._exchange.fail(error or child.death(self._exchange.has_answered))
        self._selector.close()
        with self._write_lock:
            child.close_pipes()
            if self._wake_fd >= 0:
                os.close(self._wake_fd)
            self._wake_fd = -1
