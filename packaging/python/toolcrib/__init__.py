"""Toolcrib: the tools of an AI coding agent. This package carries the `toolcrib` program."""

import os
import sysconfig


def find_program() -> str:
    """The path of the program that was installed with this package."""
    schemes = [sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")]
    for scheme in schemes:
        path = os.path.join(sysconfig.get_path("scripts", scheme), "toolcrib")
        if os.path.isfile(path):
            return path
    raise FileNotFoundError("the `toolcrib` program is not in this environment: install the package again")
