"""The long form of the leak test: opens and closes many sessions and prints what is left. Not part of discovery.

    TOOLCRIB_BINARY=… python3 packaging/python/tests/many_sessions.py 10000
"""

import gc
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

from support import toolcrib


def left() -> tuple[int, int, int, int]:
    """Descriptors, threads, child processes and resident memory in KiB."""
    gc.collect()
    children = sum(len(path.read_text().split()) for path in Path("/proc/self/task").glob("*/children"))
    status = Path("/proc/self/status").read_text()
    memory = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return len(os.listdir("/proc/self/fd")), threading.active_count(), children, memory


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as top:
        root = Path(top, "ws")
        root.mkdir()
        (root / "a.txt").write_text("hello\n")
        start = time.monotonic()
        first = left()
        for number in range(1, count + 1):
            with toolcrib.Session(root, state=Path(top, "state")) as session:
                session.call("Read", file_path="a.txt").raise_for_error()
            if number == 20:
                first = left()
            if number % 500 == 0 or number == count:
                names = ("descriptors", "threads", "children", "KiB")
                now = ", ".join(f"{value} {name}" for value, name in zip(left(), names))
                print(f"{number} sessions, {time.monotonic() - start:.0f} s: {now}", flush=True)
        assert left()[:3] == first[:3], (first, left())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
