"""Changes files of the standard library, and compiles each result. Prints the verdict, the line of an error, the sizes
and the texts before and after each change."""

import pathlib
import random
import sys
import sysconfig
import warnings

warnings.simplefilter("ignore")
random.seed(1)
library = pathlib.Path(sysconfig.get_paths()["stdlib"])
files = sorted(path for path in library.glob("**/*.py") if "site-packages" not in path.parts and "bad" not in path.name)
files = [path for path in random.sample(files, min(len(files), 400)) if 500 < path.stat().st_size < 25_000][:80]


def verdict(text):
    try:
        compile(text, "a.py", "exec", dont_inherit=True)
    except IndentationError as error:
        return "indentation", error.lineno
    except (SyntaxError, ValueError):
        return "other", 0
    return "valid", 0


def changed(lines):
    lines = list(lines)
    at = random.randrange(len(lines))
    end = min(len(lines), at + random.randrange(1, 5))
    kind = random.randrange(9)
    if kind == 0:
        lines[at:end] = [b"    " + line for line in lines[at:end]]
    elif kind == 1:
        lines[at] = random.choice([b" ", b"  ", b"\t"]) + lines[at]
    elif kind == 2:
        lines[at:end] = [line[4:] if line.startswith(b"    ") else line for line in lines[at:end]]
    elif kind == 3:
        lines[at] = lines[at][1:] if lines[at].startswith(b" ") else lines[at]
    elif kind == 4:
        del lines[at:end]
    elif kind == 5:
        lines.insert(at, b" " * random.randrange(12) + random.choice([b"# comment\n", b"\n", b"pass\n"]))
    elif kind == 6:
        lines[at:end] = reversed(lines[at:end])
    elif kind == 7:
        lines[at] = lines[at].replace(b"        ", b"\t")
    else:
        lines[at:end] = [b"# " + line for line in lines[at:end]]
    return lines


for path in files:
    before = path.read_bytes()
    if b"\r" in before or verdict(before)[0] != "valid":
        continue
    lines = before.splitlines(keepends=True)
    for _ in range(8):
        after = b"".join(changed(lines))
        kind, line = verdict(after)
        sys.stdout.buffer.write(b"%s %d %d %d\n" % (kind.encode(), line, len(before), len(after)) + before + after)
