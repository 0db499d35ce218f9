"""The child process of a session: its start, its standard error and its end."""

import contextlib
import os
import signal
import stat
import subprocess
from typing import IO

from ._options import Options
from .errors import NotADirectory, NotFound, SessionClosed, StartFailed, ToolcribError

STDERR_TAIL_BYTES = 8 << 10
"""Bytes of standard error that are kept for messages."""

CLOSE_SECONDS = 5.0
"""Time that the program has to end after its input has ended."""

TERMINATE_SECONDS = 2.0
"""Time that the program has to end after SIGTERM."""

ROOT_HINT = "Check `root` of the session."


class Child:
    """A running program with pipes."""

    def __init__(self, options: Options) -> None:
        # A session of its own, so that Ctrl-C in a terminal reaches only this process, which then cancels the call.
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            options.argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            env=options.env,
        )
        self._roots = options.roots
        self.stdin = _pipe(self.process.stdin)
        self.stdout = _pipe(self.process.stdout)
        self.stderr = _pipe(self.process.stderr)
        self._stderr_tail = b""
        try:
            self.pidfd: int | None = os.pidfd_open(self.process.pid)
        except OSError:
            # The end of its output tells almost as well that the program has ended.
            self.pidfd = None

    def keep_stderr(self, data: bytes) -> None:
        """Keeps the last bytes of standard error."""
        self._stderr_tail = (self._stderr_tail + data)[-STDERR_TAIL_BYTES:]

    def drain_stderr(self) -> None:
        """Reads what is left in standard error, without waiting."""
        try:
            os.set_blocking(self.stderr.fileno(), False)
            while data := os.read(self.stderr.fileno(), 1 << 16):
                self.keep_stderr(data)
        except (OSError, ValueError):
            pass

    def ended(self) -> bool:
        """Whether the program has ended. If so, it is reaped."""
        return self.process.poll() is not None

    def end_now(self) -> None:
        """Ends the program if it runs, and reaps it."""
        for end in (self.process.terminate, self.process.kill):
            if self.ended():
                return
            end()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(1)
        self.process.wait()

    def close_pipes(self) -> None:
        """Closes all descriptors."""
        for pipe in (self.stdin, self.stdout, self.stderr):
            try:
                pipe.close()
            except OSError:
                pass
        self.close_pidfd()

    def close_pidfd(self) -> None:
        """Closes the descriptor of the process."""
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None

    def forget_after_fork(self) -> None:
        """In a forked process: gives up the descriptors, and leaves the program to the parent."""
        self.process.returncode = 0
        self.close_pipes()

    def death(self, has_answered: bool) -> ToolcribError:
        """The error for requests without a reply. The program must have ended."""
        status = self.process.returncode
        stderr = self._stderr_tail.decode("utf-8", "replace").strip()
        metadata = {"exit_status": status, "stderr": stderr}
        words = f"; its last lines on standard error:\n{stderr}" if stderr else ""
        # One that was killed may have run the first call.
        if has_answered or status < 0:
            hint = "The call may have had effects: `history()` shows the recorded changes."
            return SessionClosed(f"the toolcrib program {_describe(status)}{words}", hint, metadata=metadata)
        for root in self._roots:
            path = root.removesuffix(":ro")
            try:
                is_directory = stat.S_ISDIR(os.stat(path).st_mode)
            except FileNotFoundError:
                return NotFound(f"the root {path} does not exist", ROOT_HINT, metadata=metadata)
            except OSError:
                # Its standard error says more.
                continue
            if not is_directory:
                return NotADirectory(f"the root {path} is not a directory", ROOT_HINT, metadata=metadata)
        message = f"the toolcrib program did not start: it {_describe(status)} before its first answer{words}"
        return StartFailed(message, "Check the options of the session, and that `binary` is toolcrib.", metadata=metadata)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _describe(status: int) -> str:
    if status >= 0:
        return f"exited with {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"
