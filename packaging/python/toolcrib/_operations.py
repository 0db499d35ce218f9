"""Requests and the values of their replies, for both kinds of session. No I/O."""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from ._frames import JsonObject
from ._messages import ReplyMessage
from .errors import InvalidArgument, ProtocolError, ToolcribError
from .own_tools import OwnTool
from .results import (
    Change,
    Entry,
    Exit,
    FileChange,
    Info,
    Listing,
    Reply,
    ReplyError,
    Restored,
    Stat,
    Written,
)

T = TypeVar("T")
Path = str | os.PathLike[str]
Command = str | Sequence[Path]

READ_BYTES = 16 << 20
"""Most bytes that one reply to `read` has."""

WRITE_BYTES = 32 << 20
"""Most bytes that one `write` takes."""

STDIN_BYTES = 1 << 20
"""Bytes for one `write_stdin`, so that other requests are sent in between."""


@dataclass(frozen=True, slots=True)
class Operation(Generic[T]):
    """A request without its id, and how its reply becomes a value."""

    fields: JsonObject
    value: Callable[[ReplyMessage], T]
    payload: bytes | None = None

    def finish(self, reply: ReplyMessage) -> T:
        """The value of a reply, or its error."""
        try:
            return self.value(reply)
        except ToolcribError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            name = self.fields.get("op") or self.fields.get("tool")
            raise ProtocolError(f"the reply to {name} has an unexpected form: {error!r}") from error


Steps = Generator[Operation[Any], Any, T]
"""A request that needs several operations: yields each, and is sent its value."""


def _op(name: str, args: JsonObject, value: Callable[[ReplyMessage], T], payload: bytes | None = None) -> Operation[T]:
    def checked(reply: ReplyMessage) -> T:
        error = reply.error()
        if error is not None:
            raise error
        return value(reply)

    given = {key: one for key, one in args.items() if one is not None}
    return Operation({"op": name, "args": given}, checked, payload)


def _result(reply: ReplyMessage) -> JsonObject:
    result = reply.fields["result"]
    if not isinstance(result, dict):
        raise TypeError("`result` is not an object")
    return result  # pyright: ignore[reportUnknownVariableType]


def _nothing(_reply: ReplyMessage) -> None:
    return None


def _change(reply: ReplyMessage) -> int | None:
    return _result(reply).get("change")


def as_bytes(data: bytes | str, name: str) -> bytes:
    """The bytes of an argument that is bytes or text."""
    if isinstance(data, str):
        return data.encode()
    try:
        # `bytes` also takes a number, which becomes so many zeros, and a list.
        memoryview(data)
    except TypeError:
        raise TypeError(f"`{name}` must be bytes or text, not {type(data).__name__}") from None
    return bytes(data)


# Tools.


def tool(name: str, args: Mapping[str, Any], dry_run: bool = False, progress: bool = False) -> Operation[Reply]:
    """A call of a tool. A failure is a reply, not an exception."""
    fields: JsonObject = {"tool": name, "args": dict(args)}
    if dry_run:
        fields["dry_run"] = True
    if progress:
        fields["progress"] = True
    return Operation(fields, _reply)


def _reply(message: ReplyMessage) -> Reply:
    fields = message.fields
    error = fields.get("error")
    return Reply(
        success=bool(fields["success"]),
        output=fields.get("output", ""),
        metadata=fields.get("metadata") or {},
        error=ReplyError(error["kind"], error["message"], error.get("hint", "")) if error else None,
        content=tuple(fields.get("content") or ()),
    )


def history(limit: int) -> Operation[list[Change]]:
    """The newest changes."""

    def value(message: ReplyMessage) -> list[Change]:
        changes = _reply(message).raise_for_error().metadata["changes"]
        return [
            Change(
                id=one["id"],
                time_ms=one["time_ms"],
                tool=one["tool"],
                undone=one["undone"],
                files=tuple(FileChange(file["path"], file["action"]) for file in one["files"]),
                command=one.get("command"),
            )
            for one in changes
        ]

    return Operation({"tool": "History", "args": {"limit": limit}}, value)


class Unset(Enum):
    """An argument that was not given, which is not the same as None. It stays the same object when it is pickled."""

    UNSET = "unset"


def undo(
    steps: int | None, id: int | None | Unset, since: int | None | Unset, path: Path | None
) -> Operation[Restored]:
    """Reverts changes."""
    for name, change in (("id", id), ("since", since)):
        # Without an id, the last change would be reverted, whoever made it.
        if change is None:
            raise TypeError(f"undo: {name} is None. A command that changed no file has no change to undo.")

    def value(message: ReplyMessage) -> Restored:
        metadata = _reply(message).raise_for_error().metadata
        return Restored(tuple(metadata["undone"]), metadata["files"])

    args = {"steps": steps, "id": id, "since": since, "path": None if path is None else os.fspath(path)}
    given = {key: one for key, one in args.items() if one is not None and one is not Unset.UNSET}
    return Operation({"tool": "Undo", "args": given}, value)


def tools(format: str) -> Operation[list[JsonObject]]:
    """The tools, in the form of a model API."""
    return _op("tools", {"format": format}, lambda reply: list(_result(reply)["tools"]))


def register(tool: OwnTool) -> Operation[None]:
    """Offers a tool of this process."""
    args = {
        "name": tool.name,
        "description": tool.description,
        "schema": tool.schema,
        "read_only": tool.read_only,
        "reaches": tool.reaches,
    }
    return _op("register", args, _nothing)


# Commands.


def exec(
    command: Command,
    cwd: Path | None,
    env: Mapping[str, str] | None,
    timeout: float | None,
    stdin: bytes | None,
    pty: tuple[int, int] | None,
) -> Operation[Exit]:
    """Runs a command. `stdin` is its whole input, or None to write it later."""
    args: JsonObject = {"shell": command} if isinstance(command, str) else {"argv": [os.fspath(one) for one in command]}
    if not command:
        raise InvalidArgument("the command is empty")
    args["cwd"] = None if cwd is None else os.fspath(cwd)
    args["env"] = None if env is None else dict(env)
    if timeout is not None:
        args["timeout_ms"] = max(1, round(timeout * 1000))
    args["stdin"] = "open" if stdin is None else None
    if pty is not None:
        args["pty"] = {"rows": pty[0], "cols": pty[1]}
    return _op("exec", args, _exit, stdin or None)


def _exit(reply: ReplyMessage) -> Exit:
    result = _result(reply)
    return Exit(
        exit_code=result["exit_code"],
        signal=result.get("signal"),
        timed_out=bool(result.get("timed_out")),
        duration=result.get("duration_ms", 0) / 1000,
        change=result.get("change"),
        refused=tuple(result.get("refused") or ()),
        notes=tuple(result.get("notes") or ()),
    )


def write_stdin(to: int, data: bytes) -> Steps[None]:
    """Writes to the standard input of a running command."""
    for start in range(0, len(data), STDIN_BYTES):
        yield _op("write_stdin", {"to": to}, _nothing, data[start : start + STDIN_BYTES])


def close_stdin(to: int) -> Operation[None]:
    """Ends the standard input of a running command."""
    return _op("close_stdin", {"to": to}, _nothing)


def signal(to: int, name: str) -> Operation[None]:
    """Sends a signal to the processes of a running command."""
    return _op("signal", {"to": to, "signal": name.upper().removeprefix("SIG")}, _nothing)


def resize(to: int, rows: int, cols: int) -> Operation[None]:
    """Sets the size of the terminal of a running command."""
    return _op("resize", {"to": to, "rows": rows, "cols": cols}, _nothing)


# Files.


def read(path: Path, offset: int, limit: int | None) -> Steps[bytes]:
    """The bytes of a file, in as many replies as they need."""
    parts: list[bytes] = []
    left = limit
    while left is None or left > 0:
        size = READ_BYTES if left is None else min(left, READ_BYTES)
        args = {"path": os.fspath(path), "offset": offset, "limit": size}
        part, eof = yield _op("read", args, lambda reply: (reply.payload or b"", _result(reply)["eof"]))
        parts.append(part)
        offset += len(part)
        left = None if left is None else left - len(part)
        if eof or not part:
            break
    return parts[0] if len(parts) == 1 else b"".join(parts)


def write(path: Path, data: bytes, append: bool, executable: bool | None) -> Steps[Written]:
    """Writes a file. Data of more than 32 MiB is appended in parts."""
    first: Written | None = None
    for start in range(0, len(data) or 1, WRITE_BYTES):
        args = {"path": os.fspath(path), "append": append or start > 0 or None, "executable": executable}
        part = data if len(data) <= WRITE_BYTES else data[start : start + WRITE_BYTES]
        written: Written = yield _op("write", args, _written, part)
        first = first or written
    assert first is not None
    return first


def _written(reply: ReplyMessage) -> Written:
    return Written(_result(reply)["created"], _change(reply))


def stat(path: Path, follow: bool) -> Operation[Stat]:
    """Facts about a path."""

    def value(reply: ReplyMessage) -> Stat:
        result = _result(reply)
        return Stat(result["kind"], result["size"], result["mode"], result["modified_ns"], result.get("target"))

    return _op("stat", {"path": os.fspath(path), "follow": follow}, value)


def list_directory(path: Path) -> Operation[Listing]:
    """The entries of a directory."""

    def value(reply: ReplyMessage) -> Listing:
        result = _result(reply)
        entries = [Entry(one["name"], one["kind"], one.get("size") or 0) for one in result["entries"]]
        return Listing(entries, bool(result.get("truncated")))

    return _op("list", {"path": os.fspath(path)}, value)


def mkdir(path: Path, parents: bool, exist_ok: bool) -> Operation[bool]:
    """Makes a directory; whether it was created."""
    args = {"path": os.fspath(path), "parents": parents, "exist_ok": exist_ok}
    return _op("mkdir", args, lambda reply: bool(_result(reply)["created"]))


def remove(path: Path, recursive: bool, missing_ok: bool) -> Operation[int]:
    """Removes a file or directory; the number of removed files and directories."""
    args = {"path": os.fspath(path), "recursive": recursive, "missing_ok": missing_ok}
    return _op("remove", args, lambda reply: int(_result(reply)["removed"]))


def move(source: Path, target: Path, overwrite: bool) -> Operation[int | None]:
    """Moves a file or directory; the id of the change."""
    return _op("move", {"from": os.fspath(source), "to": os.fspath(target), "overwrite": overwrite}, _change)


def realpath(path: Path) -> Operation[str]:
    """The absolute path without symlinks."""
    return _op("realpath", {"path": os.fspath(path)}, lambda reply: str(_result(reply)["path"]))


# The session.


def snapshot() -> Operation[int]:
    """A point in the journal."""
    return _op("snapshot", {}, lambda reply: int(_result(reply)["snapshot"]))


def restore(snapshot: int) -> Operation[Restored]:
    """Reverts everything since a snapshot."""

    def value(reply: ReplyMessage) -> Restored:
        result = _result(reply)
        return Restored(tuple(result["undone"]), result["files"])

    return _op("restore", {"snapshot": snapshot}, value)


def info() -> Operation[Info]:
    """Facts about the session."""

    def value(reply: ReplyMessage) -> Info:
        result = _result(reply)
        sandbox: JsonObject = result.get("sandbox") or {}
        return Info(
            version=result["version"],
            protocol=result["protocol"],
            roots=tuple(result["roots"]),
            tmp=result["tmp"],
            sandbox_level=sandbox.get("level"),
            sandbox_name=str(sandbox.get("name", "")),
        )

    return _op("info", {}, value)
