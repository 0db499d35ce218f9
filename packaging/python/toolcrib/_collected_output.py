"""The output of a command that is run to its end. No I/O."""

from collections.abc import Callable
from typing import Any

from ._messages import StreamName
from ._output_buffer import MAX_UNREAD_BYTES
from .errors import LimitExceeded
from .results import Completed, Exit


class CollectedOutput:
    """Keeps chunks of output within a limit, and passes them to functions of the user."""

    def __init__(
        self,
        on_stdout: Callable[[bytes], Any] | None,
        on_stderr: Callable[[bytes], Any] | None,
        capture: bool,
        max_output: int | None,
    ) -> None:
        self._functions: dict[StreamName, Callable[[bytes], Any] | None] = {"stdout": on_stdout, "stderr": on_stderr}
        self._chunks: dict[StreamName, list[bytes]] = {"stdout": [], "stderr": []}
        self._capture = capture
        self._max = MAX_UNREAD_BYTES if max_output is None else max_output
        self._bytes = 0

    def add(self, stream: StreamName, data: bytes) -> Any:
        """Takes a chunk. Returns what the function of the user returned."""
        if self._capture:
            self._bytes += len(data)
            if self._bytes > self._max:
                raise LimitExceeded(
                    f"the command was ended: it wrote more than {self._max} bytes",
                    "Redirect the output to a file, pass `capture=False` with `on_stdout`, or raise `max_output`.",
                )
            self._chunks[stream].append(data)
        function = self._functions[stream]
        return None if function is None else function(data)

    def completed(self, exit: Exit) -> Completed:
        """The result."""
        return Completed(
            **vars(exit), stdout=b"".join(self._chunks["stdout"]), stderr=b"".join(self._chunks["stderr"])
        )
