"""Translates errors of a session into the built-in errors of Python."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from toolcrib import ToolcribError

_OS_ERRORS: dict[str, tuple[type[OSError], int]] = {
    "not_found": (FileNotFoundError, errno.ENOENT),
    "already_exists": (FileExistsError, errno.EEXIST),
    "is_directory": (IsADirectoryError, errno.EISDIR),
    "not_a_directory": (NotADirectoryError, errno.ENOTDIR),
    "permission": (PermissionError, errno.EACCES),
    "denied": (PermissionError, errno.EPERM),
    "protected": (PermissionError, errno.EPERM),
    "hidden": (PermissionError, errno.EPERM),
    "read_only": (PermissionError, errno.EROFS),
    "outside_workspace": (PermissionError, errno.EPERM),
    "not_empty": (OSError, errno.ENOTEMPTY),
}


def os_error(error: ToolcribError, path: object) -> OSError:
    """The built-in error that `open` or `os` would raise for the same reason."""
    kind, number = _OS_ERRORS.get(error.kind, (OSError, errno.EIO))
    return kind(number, error.message, str(path))


@contextmanager
def os_errors(path: object) -> Iterator[None]:
    """Raises built-in file errors for the errors of the session."""
    try:
        yield
    except ToolcribError as error:
        raise os_error(error, path) from error
