"""The options of a session, and the command line that they become."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ._operations import Path
from .errors import InvalidArgument
from .program import locate_program


@dataclass(frozen=True)
class Options:
    """How the program is started."""

    argv: tuple[str, ...]
    roots: tuple[str, ...]
    env: dict[str, str] | None

    @staticmethod
    def build(
        *,
        root: Path | Sequence[Path],
        profile: str | None,
        rules: Path | None,
        tools: Sequence[str] | None,
        network: str | None,
        state: Path | None,
        approvals: bool,
        env: Mapping[str, str | None] | None,
        binary: Path | None,
        extra_args: Sequence[str],
    ) -> "Options":
        """Checks the options that a mistake would make hard to understand, and leaves the others to the program."""
        roots = [root] if isinstance(root, (str, os.PathLike)) else list(root)
        if not roots:
            raise InvalidArgument("`root` names no directory")
        argv = [locate_program(binary)]
        names = tuple(os.fspath(one) for one in roots)
        for name in names:
            argv += ["--root", name]
        for flag, value in (("--profile", profile), ("--network-access", network)):
            argv += [flag, value] if value is not None else []
        for flag, path in (("--rules", rules), ("--state", state)):
            argv += [flag, os.fspath(path)] if path is not None else []
        if tools is not None:
            argv += ["--tools", tools if isinstance(tools, str) else ",".join(tools)]
        argv += [*extra_args, "run"]
        if approvals:
            argv.append("--approvals")
        return Options(tuple(argv), names, None if env is None else _environment(env))


def _environment(changes: Mapping[str, str | None]) -> dict[str, str]:
    """The variables of this process with changes; None removes a variable."""
    env = {**os.environ, **{name: value for name, value in changes.items() if value is not None}}
    for name, value in changes.items():
        if value is None:
            env.pop(name, None)
    return env
