"""Output of a command that was not read yet. No I/O, no locks."""

from collections import deque

from ._messages import StreamName
from .errors import LimitExceeded

MAX_UNREAD_BYTES = 256 << 20
"""Unread output at which a command is ended: the protocol cannot pause a single command."""


class OutputBuffer:
    """Chunks of both streams, which can be taken per stream or in their order."""

    def __init__(self, max_bytes: int | None) -> None:
        self._chunks: dict[StreamName, deque[tuple[int, bytes]]] = {"stdout": deque(), "stderr": deque()}
        self._next = 0
        self._bytes = 0
        self._max_bytes = MAX_UNREAD_BYTES if max_bytes is None else max_bytes
        self.error: LimitExceeded | None = None

    def put(self, stream: StreamName, data: bytes) -> bool:
        """Keeps a chunk. False if this exceeds the limit for the first time; later chunks are dropped."""
        if self.error is not None or not data:
            return True
        if self._bytes + len(data) > self._max_bytes:
            self.error = LimitExceeded(
                f"the command was ended: more than {self._max_bytes} bytes of its output are not read",
                "Read the output while the command runs, redirect it to a file, or raise `max_output`.",
            )
            return False
        self._chunks[stream].append((self._next, data))
        self._next += 1
        self._bytes += len(data)
        return True

    def take(self, stream: StreamName | None) -> tuple[StreamName, bytes] | None:
        """The oldest chunk of a stream, or of both."""
        if stream is None:
            out, err = self._chunks["stdout"], self._chunks["stderr"]
            if out and (not err or out[0][0] < err[0][0]):
                stream = "stdout"
            else:
                stream = "stderr"
        if not self._chunks[stream]:
            return None
        data = self._chunks[stream].popleft()[1]
        self._bytes -= len(data)
        return stream, data
