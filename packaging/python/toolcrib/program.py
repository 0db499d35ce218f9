"""Finds the `toolcrib` program."""

import os
import shutil
import sysconfig


def find_program() -> str:
    """The path of the program that was installed with this package."""
    schemes = [sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")]
    for scheme in schemes:
        path = os.path.join(sysconfig.get_path("scripts", scheme), "toolcrib")
        if os.path.isfile(path):
            return path
    raise FileNotFoundError("the `toolcrib` program is not in this environment: install the package again")


def locate_program(binary: "str | os.PathLike[str] | None") -> str:
    """The program that a session starts: `binary`, `$TOOLCRIB_BINARY`, the installed one, or the one on `$PATH`."""
    given = "" if binary is None else os.fspath(binary)
    for source, path in (("binary", given), ("TOOLCRIB_BINARY", os.environ.get("TOOLCRIB_BINARY", ""))):
        if path:
            path = os.path.expanduser(path)
            if not os.path.isfile(path):
                raise FileNotFoundError(f"`{source}` names no file: {path}")
            return os.path.abspath(path)
    try:
        return find_program()
    except FileNotFoundError:
        found = shutil.which("toolcrib")
        if found is None:
            raise FileNotFoundError(
                "the `toolcrib` program was not found: install the package `toolcrib`, "
                "or name the program with `binary=` or TOOLCRIB_BINARY"
            ) from None
        return found
