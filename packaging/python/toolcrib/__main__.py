"""`python -m toolcrib` is `toolcrib`."""

import os
import sys

from toolcrib.program import locate_program

try:
    program = locate_program(None)
except FileNotFoundError as error:
    sys.exit(f"toolcrib: {error}")
os.execv(program, [program, *sys.argv[1:]])
