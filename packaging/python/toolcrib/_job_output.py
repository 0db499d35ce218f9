"""How the replies of BashOutput become the output of a job. No I/O."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .errors import Timeout
from .results import Reply

LONGEST_WAIT = 600.0
"""Seconds that one call of BashOutput can wait."""


@dataclass(frozen=True)
class JobOutput:
    """New output of a job. `is_last` says if the job has ended and everything was read."""

    text: str
    is_last: bool


class JobState:
    """What is known about a job."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.status = "running"
        self.exit_code: int | None = None
        self._cursor = 0

    def request(self, wait_for: str, timeout: float) -> dict[str, Any]:
        """The arguments of BashOutput."""
        milliseconds = round(min(max(timeout, 0), LONGEST_WAIT) * 1000)
        return {"bash_id": self.id, "wait_for": wait_for, "timeout": milliseconds, "cursor": self._cursor}

    def take(self, reply: Reply) -> JobOutput:
        """The output in a reply."""
        metadata = reply.raise_for_error().metadata
        self.status = metadata["status"]
        self.exit_code = metadata.get("exit_code")
        self._cursor = metadata["cursor"]
        text = reply.output
        if not metadata.get("truncated"):
            # Notes follow the lines of output.
            text = "".join(f"{line}\n" for line in text.split("\n")[: metadata["lines"]])
        return JobOutput(text, self.status not in ("pending", "running"))

    def waits(self, timeout: float | None) -> Iterator[float]:
        """The times of single waits until a timeout, which is raised."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            yield LONGEST_WAIT if end is None else max(0.0, end - time.monotonic())
            if end is not None and end <= time.monotonic():
                raise Timeout(f"the job {self.id} still runs after {timeout} s", "`kill` ends it.")
