"""Runs commands. A command that is not allowed is a result like others, so that the model reads the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolcrib import AsyncSession, Completed, Denied, Session

NOT_ALLOWED = 126
"""The exit status of a command that is not allowed; shells use it for a program that cannot be executed."""


@dataclass(frozen=True)
class Ended:
    """A command that has ended.

    `status` is the exit status as shells report it. `both` has both streams, in the order of their arrival.
    """

    status: int
    stdout: bytes
    stderr: bytes
    both: bytes
    timed_out: bool = False

    def texts(self, errors: str = "replace") -> tuple[str, str]:
        """stdout and stderr as text."""
        return self.stdout.decode(errors=errors), self.stderr.decode(errors=errors)


def run(session: Session, command: str | list[str], **options: Any) -> Ended:
    """Runs a command to its end. `options` are the arguments of `exec`."""
    chunks: list[bytes] = []
    try:
        done = session.exec(command, on_stdout=chunks.append, on_stderr=chunks.append, **options)
    except Denied as error:
        return _refused(error)
    return _ended(done, chunks)


async def async_run(session: AsyncSession, command: str | list[str], **options: Any) -> Ended:
    """The same for an `AsyncSession`."""
    chunks: list[bytes] = []
    try:
        done = await session.exec(command, on_stdout=chunks.append, on_stderr=chunks.append, **options)
    except Denied as error:
        return _refused(error)
    return _ended(done, chunks)


def shell_status(exit_code: int | None, signal: int | None) -> int:
    """The exit status as shells report it: 128 plus the signal for a killed command."""
    if exit_code is not None:
        return exit_code
    return 128 + signal if signal is not None else -1


def _ended(done: Completed, chunks: list[bytes]) -> Ended:
    status = shell_status(done.exit_code, done.signal)
    return Ended(status, done.stdout, done.stderr, b"".join(chunks), done.timed_out)


def _refused(error: Denied) -> Ended:
    text = f"{error}\n".encode()
    return Ended(NOT_ALLOWED, b"", text, text)
