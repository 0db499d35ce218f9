"""Results of requests, as immutable values."""

from dataclasses import dataclass, field
from typing import Any, Literal

from .errors import CommandFailed, error_of_kind

FileKind = Literal["file", "directory", "symlink", "other"]
ToolFormat = Literal["anthropic", "openai", "gemini", "mcp"]


@dataclass(frozen=True)
class Reply:
    """The reply of a tool.

    `output` is the text for the model: the result, or the error with its hint. `content` has images, as MCP content
    blocks.
    """

    success: bool
    output: str
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    error: "ReplyError | None" = None
    content: tuple[dict[str, Any], ...] = ()

    def raise_for_error(self) -> "Reply":
        """Returns the reply, or raises its error as a `ToolcribError`."""
        if self.error is not None:
            raise error_of_kind(self.error.kind, self.error.message, self.error.hint, self.metadata)
        return self


@dataclass(frozen=True)
class ReplyError:
    """The error of a reply: its kind, what happened, and what to do next."""

    kind: str
    message: str
    hint: str = ""


@dataclass(frozen=True)
class Progress:
    """How far a call is. `total` is None if it is not known."""

    done: int
    total: int | None
    message: str


@dataclass(frozen=True)
class Exit:
    """The end of a command.

    `exit_code` is None if `signal` ended it. `duration` is in seconds. `change` is the id of its change in the journal,
    `refused` lists what the sandbox refused.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    duration: float
    change: int | None
    refused: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def success(self) -> bool:
        """Whether the exit code is 0."""
        return self.exit_code == 0 and not self.timed_out

    def _outcome(self) -> str:
        if self.timed_out:
            return "the command exceeded its timeout"
        if self.exit_code is None:
            return f"the command was ended by signal {self.signal}"
        return f"the command exited with {self.exit_code}"


@dataclass(frozen=True)
class Completed(Exit):
    """A command that has ended, with its complete output."""

    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """stdout as text; bytes that are not UTF-8 are replaced."""
        return self.stdout.decode("utf-8", "replace")

    def check(self) -> "Completed":
        """Returns the result, or raises `CommandFailed` if the command failed."""
        if not self.success:
            shown = self.stderr[-2000:].decode("utf-8", "replace").strip()
            facts = {"exit_code": self.exit_code, "signal": self.signal, "timed_out": self.timed_out}
            raise CommandFailed(self._outcome() + (f":\n{shown}" if shown else ""), metadata=facts)
        return self


@dataclass(frozen=True)
class Stat:
    """Facts about a path. `target` is set for a symlink that was not followed."""

    kind: FileKind
    size: int
    mode: int
    modified_ns: int
    target: str | None = None


@dataclass(frozen=True)
class Entry:
    """An entry of a directory."""

    name: str
    kind: FileKind
    size: int


class Listing(list[Entry]):
    """The entries of a directory, sorted by name. `truncated` says if there are more."""

    def __init__(self, entries: list[Entry], truncated: bool) -> None:
        super().__init__(entries)
        self.truncated = truncated


@dataclass(frozen=True)
class Written:
    """A written file. `change` is the id of the change, or of the first one if the data needed several."""

    created: bool
    change: int | None


@dataclass(frozen=True)
class Restored:
    """A restore: the ids of the reverted changes, and the number of files that were restored."""

    undone: tuple[int, ...]
    files: int


@dataclass(frozen=True)
class FileChange:
    """A file in a change: `action` is `created`, `modified` or `deleted`."""

    path: str
    action: str


@dataclass(frozen=True)
class Change:
    """A change in the journal. `command` is set for changes by commands."""

    id: int
    time_ms: int
    tool: str
    undone: bool
    files: tuple[FileChange, ...]
    command: str | None = None


@dataclass(frozen=True)
class Info:
    """Facts about a session. `tmp` is the session's /tmp as commands see it."""

    version: str
    protocol: int
    roots: tuple[str, ...]
    tmp: str
    sandbox_level: int | None
    sandbox_name: str
