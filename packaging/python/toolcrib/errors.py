"""Errors: one class for each error kind of the runtime, and those of the session itself."""

from collections.abc import Mapping
from typing import Any, ClassVar


class ToolcribError(Exception):
    """A request failed.

    `kind` is a word from the closed list of the runtime, `message` says what happened, `hint` says what to do next and
    may be empty, and `metadata` has facts for programs.
    """

    default_kind: ClassVar[str] = "internal"

    def __init__(
        self, message: str, hint: str = "", *, kind: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message, hint)
        self.kind = kind or self.default_kind
        self.message = message
        self.hint = hint
        self.metadata: dict[str, Any] = dict(metadata or {})

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message

    def __reduce__(self) -> "tuple[Any, ...]":
        return (_rebuild, (type(self), self.kind, self.message, self.hint, self.metadata))


class InvalidArgument(ToolcribError):
    """The arguments are invalid (`invalid`)."""

    default_kind = "invalid"


class NotFound(ToolcribError):
    """The file, directory, job, change or running command does not exist (`not_found`)."""

    default_kind = "not_found"


class AlreadyExists(ToolcribError):
    """The path or name is taken (`already_exists`)."""

    default_kind = "already_exists"


class IsDirectory(ToolcribError):
    """The path names a directory; a file was expected (`is_directory`)."""

    default_kind = "is_directory"


class NotADirectory(ToolcribError):
    """The path names a file; a directory was expected (`not_a_directory`)."""

    default_kind = "not_a_directory"


class NotEmpty(ToolcribError):
    """The directory is not empty (`not_empty`)."""

    default_kind = "not_empty"


class PermissionDenied(ToolcribError):
    """The operating system denies access (`permission`)."""

    default_kind = "permission"


class Denied(ToolcribError):
    """The policy or the approver did not allow the request (`denied`)."""

    default_kind = "denied"


class OutsideWorkspace(Denied):
    """The path is outside the workspace and may not be used (`outside_workspace`)."""

    default_kind = "outside_workspace"


class Protected(Denied):
    """The path is protected (`protected`)."""

    default_kind = "protected"


class Hidden(Denied):
    """The path is hidden (`hidden`)."""

    default_kind = "hidden"


class Stale(ToolcribError):
    """The file changed since the session read it (`stale`)."""

    default_kind = "stale"


class Conflict(ToolcribError):
    """Existing content or another change conflicts; nothing was written (`conflict`)."""

    default_kind = "conflict"


class Cancelled(ToolcribError):
    """The request was cancelled (`cancelled`)."""

    default_kind = "cancelled"


class Timeout(ToolcribError):
    """The request took too long (`timeout`)."""

    default_kind = "timeout"


class LimitExceeded(ToolcribError):
    """A limit on calls, output or work was reached (`limit`)."""

    default_kind = "limit"


class Unsupported(ToolcribError):
    """The operation is not supported (`unsupported`)."""

    default_kind = "unsupported"


class IoError(ToolcribError):
    """The operating system reported an error (`io`)."""

    default_kind = "io"


class InternalError(ToolcribError):
    """A bug in Toolcrib (`internal`)."""

    default_kind = "internal"


class CommandFailed(ToolcribError):
    """A command ended with a failure (`failed`)."""

    default_kind = "failed"


class ProtocolError(ToolcribError):
    """The program and this package do not understand each other (`protocol`)."""

    default_kind = "protocol"


class SessionClosed(ToolcribError):
    """The session has ended: it was closed, or its program ended (`closed`).

    `exit_status` is the exit code of the program, or the negative number of the signal that ended it; it is None if the
    session was closed. `stderr` is the last part of what the program wrote there.
    """

    default_kind = "closed"

    @property
    def exit_status(self) -> int | None:
        """The exit code of the program, or the negative number of a signal."""
        return self.metadata.get("exit_status")

    @property
    def stderr(self) -> str:
        """The last part of the program's standard error."""
        return str(self.metadata.get("stderr", ""))


class StartFailed(SessionClosed):
    """The program ended before its first answer, for example because of an invalid option (`not_started`)."""

    default_kind = "not_started"


def _subclasses(of: type[ToolcribError]) -> list[type[ToolcribError]]:
    direct = of.__subclasses__()
    return direct + [below for one in direct for below in _subclasses(one)]


_BY_KIND = {one.default_kind: one for one in _subclasses(ToolcribError)}


def error_of_kind(kind: str, message: str, hint: str = "", metadata: Mapping[str, Any] | None = None) -> ToolcribError:
    """The error for a kind; kinds without a class of their own are plain `ToolcribError`s."""
    return _BY_KIND.get(kind, ToolcribError)(message, hint, kind=kind, metadata=metadata)


def _rebuild(of: type[ToolcribError], kind: str, message: str, hint: str, metadata: dict[str, Any]) -> ToolcribError:
    return of(message, hint, kind=kind, metadata=metadata)
