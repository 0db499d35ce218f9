"""`python -m toolcrib` is `toolcrib`."""

import os
import sys

from toolcrib.program import find_program

program = find_program()
os.execv(program, [program, *sys.argv[1:]])
