"""Measures the latency of small requests, and the throughput of `read()` against base64 in JSON.

    TOOLCRIB_BINARY=target/release/toolcrib PYTHONPATH=packaging/python python3 packaging/python/bench/measure.py
"""

import base64
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import toolcrib
from toolcrib._frames import Frame, FrameDecoder
from toolcrib.program import locate_program


def median_us(work: Callable[[], object], count: int) -> float:
    """The median time of one call, in microseconds."""
    for _ in range(20):
        work()
    times: list[float] = []
    for _ in range(count):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def best_seconds(work: Callable[[], object], count: int = 5) -> float:
    """The shortest of several times."""
    times: list[float] = []
    for _ in range(count):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def bare_read_us(root: Path, state: Path) -> float:
    """The median of the same Read by the smallest client: one line written, one line read."""
    argv = [locate_program(None), "--root", str(root), "--state", str(state), "run"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin and program.stdout
        stdin, stdout = program.stdin, program.stdout

        def read() -> object:
            request = {"id": 1, "tool": "Read", "args": {"file_path": "small.txt"}}
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()
            return json.loads(stdout.readline())

        median = median_us(read, 1000)
        stdin.close()
        return median


BASE64_SERVER = """
import base64, json, sys
for line in sys.stdin.buffer:
    request = json.loads(line)
    with open(request["path"], "rb") as file:
        file.seek(request["offset"])
        data = file.read(request["limit"])
    reply = {"id": request["id"], "eof": len(data) < request["limit"], "data": base64.b64encode(data).decode()}
    sys.stdout.buffer.write(json.dumps(reply).encode() + b"\\n")
    sys.stdout.buffer.flush()
"""


def read_base64(server: "subprocess.Popen[bytes]", path: Path) -> bytes:
    """Reads a file in parts of 16 MiB, as base64 in JSON lines: what a protocol without payloads would do.

    The reader of lines is the one of the package, so that only the encoding differs.
    """
    assert server.stdin and server.stdout
    decoder = FrameDecoder()
    parts: list[bytes] = []
    offset = 0
    while True:
        request = {"id": 1, "path": str(path), "offset": offset, "limit": 16 << 20}
        server.stdin.write(json.dumps(request).encode() + b"\n")
        server.stdin.flush()
        frames: list[Frame] = []
        while not frames:
            frames = decoder.feed(os.read(server.stdout.fileno(), 1 << 18))
        reply = frames[0].fields
        part = base64.b64decode(reply["data"])
        parts.append(part)
        offset += len(part)
        if reply["eof"]:
            return b"".join(parts)


def main() -> None:
    with tempfile.TemporaryDirectory() as top:
        root = Path(top, "ws")
        root.mkdir()
        (root / "small.txt").write_text("hello\n" * 20)
        large = root / "large.bin"
        large.write_bytes(os.urandom(1 << 20) * 100)
        with toolcrib.Session(root, state=Path(top, "state")) as session:
            print(f"Read of a small file   p50 {median_us(lambda: session.call('Read', file_path='small.txt'), 1000):8.0f} µs")
            print(f"  by the smallest client p50 {bare_read_us(root, Path(top, 'state2')):6.0f} µs")
            print(f"read() of a small file p50 {median_us(lambda: session.read('small.txt'), 1000):8.0f} µs")
            print(f"Bash of true           p50 {median_us(lambda: session.call('Bash', command='true'), 100):8.0f} µs")
            print(f"exec(['true'])         p50 {median_us(lambda: session.exec(['true']), 100):8.0f} µs")
            print(f"subprocess.run(['true']) p50 {median_us(lambda: subprocess.run(['true'], check=True), 100):6.0f} µs")
            assert session.read("large.bin") == large.read_bytes()
            size = large.stat().st_size / 1e6
            raw = best_seconds(lambda: session.read("large.bin"))
            print(f"read() of {size:.0f} MB, raw frames    {size / raw:8.0f} MB/s")
        # A server in Python, whose base64 and JSON run in C: the transport is compared, not the server.
        with subprocess.Popen(
            [sys.executable, "-c", BASE64_SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as server:
            assert read_base64(server, large) == large.read_bytes()
            encoded = best_seconds(lambda: read_base64(server, large))
            print(f"the same as base64 in JSON    {size / encoded:8.0f} MB/s")
            assert server.stdin
            server.stdin.close()


if __name__ == "__main__":
    main()
