"""Background jobs of the tool Bash, for threads."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ._job_output import JobOutput, JobState
from .results import Reply

if TYPE_CHECKING:
    from .session import Session


class Job:
    """A command in the background: an iterator of its output, which ends with the command.

    The text is the one that the tool BashOutput shows a model: whole lines, secrets masked, very long output shortened.
    `Session.spawn` gives exact bytes.
    """

    def __init__(self, session: "Session", id: str) -> None:
        self._session = session
        self._state = JobState(id)

    @property
    def id(self) -> str:
        """The id of the job, such as `sh_1`."""
        return self._state.id

    @property
    def status(self) -> str:
        """`running`, `completed`, `failed`, `killed` or `timeout`, as of the last read."""
        return self._state.status

    @property
    def exit_code(self) -> int | None:
        """The exit code, once the job has ended."""
        return self._state.exit_code

    def __iter__(self) -> Iterator[str]:
        while True:
            output = self.read()
            if output.text:
                yield output.text
            if output.is_last:
                return

    def read(self, wait_for: str = "output", timeout: float = 60) -> JobOutput:
        """New output. `wait_for` is `output`, `exit` or `none`."""
        return self._state.take(self._session.call("BashOutput", self._state.request(wait_for, timeout)))

    def wait(self, timeout: float | None = None) -> str:
        """Waits for the end of the job. Returns the output that was not read yet. Raises `Timeout`."""
        parts: list[str] = []
        for seconds in self._state.waits(timeout):
            output = self.read("exit", seconds)
            parts.append(output.text)
            if output.is_last:
                break
        return "".join(parts)

    def kill(self) -> Reply:
        """Ends the job and its processes."""
        return self._session.call("KillShell", {"shell_id": self.id}).raise_for_error()
