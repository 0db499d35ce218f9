"""The live connections of this process: ended when the interpreter exits, given up in a forked process."""

import atexit
import os
import weakref
from typing import Protocol


class Connection(Protocol):
    """What is to be done with a connection."""

    def close_at_exit(self) -> None:
        """Ends the program; the interpreter exits."""

    def forget_after_fork(self) -> None:
        """Gives up descriptors. This process is a fork, and other threads do not exist in it."""


# A dict, because copying its values is atomic, also while other threads add connections.
_live: "dict[int, weakref.ref[Connection]]" = {}


def add(connection: Connection) -> None:
    """Adds a connection."""
    _live[id(connection)] = weakref.ref(connection)


def discard(connection: Connection) -> None:
    """Removes a connection that has ended."""
    _live.pop(id(connection), None)


def _all() -> list[Connection]:
    connections = [reference() for reference in list(_live.values())]
    return [connection for connection in connections if connection is not None]


def _close_all() -> None:
    for connection in _all():
        connection.close_at_exit()


def _forget_all() -> None:
    for connection in _all():
        connection.forget_after_fork()
    _live.clear()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forget_all)
