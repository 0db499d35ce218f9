"""Many workspaces on one machine: a `Session` for each, one `toolcrib serve --workspaces` for all, and SWE-ReX.

    TOOLCRIB_BINARY=target/release/toolcrib PYTHONPATH=packaging/python python3 packaging/python/bench/load.py 8 64 256

Needs the package swe-rex for the comparison; without it the rows of SWE-ReX are left out. Each contestant opens the
workspaces, writes, runs and reads in each of them, and checks the results. Memory is the proportional set size of this
process and its descendants, less that before. Toolcrib confines and records each command; SWE-ReX runs it in a shell.
"""

import argparse
import asyncio
import importlib.util
import os
import random
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from load_contestants import Contestant, OneServer, Sessions, SweRex

LINE = "a line of a small file\n"


@dataclass
class Measured:
    """What was measured of a contestant."""

    opened: float = 0.0
    kilobytes: float = 0.0
    seconds: float = 0.0
    cpu: float = 0.0
    calls: int = 0
    times: dict[str, list[float]] = field(default_factory=lambda: {"write": [], "command": [], "read": []})

    def row(self, name: str, count: int, in_flight: int) -> str:
        cells = [f"{count}", f"{in_flight}", name, f"{self.opened * 1000:.1f}", f"{self.kilobytes:.0f}"]
        cells += [f"{self.calls / self.seconds:.0f}", f"{self.cpu / self.calls * 1000:.1f}"]
        for kind in ("command", "read"):
            times = sorted(self.times[kind])
            p99 = times[min(len(times) - 1, len(times) * 99 // 100)]
            cells += [f"{statistics.median(times) * 1000:.2f}", f"{p99 * 1000:.2f}"]
        return "| " + " | ".join(cells) + " |"


def process_tree() -> dict[int, list[str]]:
    """The fields of /proc/PID/stat behind the name, of this process and its descendants."""
    fields: dict[int, list[str]] = {}
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        pid = int(stat.parent.name)
        try:
            fields[pid] = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        children.setdefault(int(fields[pid][1]), []).append(pid)
    waiting, tree = [os.getpid()], list[int]()
    while waiting:
        tree.append(waiting.pop())
        waiting += children.get(tree[-1], [])
    return {pid: fields[pid] for pid in tree if pid in fields}


def tree_kilobytes() -> float:
    """The memory of this process and its descendants."""
    total = 0.0
    for pid in process_tree():
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        total += next((float(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")), 0.0)
    return total


def tree_cpu_seconds() -> float:
    """The processor time of this process, its descendants, and the processes that they waited for."""
    ticks = sum(sum(int(field) for field in fields[11:15]) for fields in process_tree().values())
    return ticks / os.sysconf("SC_CLK_TCK")


async def at_most(limit: int, work: list[Callable[[], Awaitable[None]]]) -> None:
    """Runs all of it, with so many at the same time."""
    waiting = iter(work)

    async def worker() -> None:
        for one in waiting:
            await one()

    await asyncio.gather(*[worker() for _ in range(min(limit, len(work)))])


async def episode(contestant: Contestant, number: int, turn: int, measured: Measured) -> None:
    """What an agent does in a workspace, with right results."""

    async def timed(kind: str, work: Awaitable[str]) -> str:
        start = time.perf_counter()
        result = await work
        measured.times[kind].append(time.perf_counter() - start)
        measured.calls += 1
        return result

    await timed("write", contestant.write(number, "turn.txt", f"turn {turn} of {number}\n"))
    said = await timed("command", contestant.command(number, "cat turn.txt given.txt > both.txt; wc -l < both.txt"))
    assert said.split()[0] == "41", (contestant.name, said)
    read = await timed("read", contestant.read(number, "both.txt"))
    assert f"turn {turn} of {number}" in read, (contestant.name, read)


async def measure(make: Callable[[Path], Contestant], count: int, in_flight: int, rounds: int) -> str:
    top = Path(tempfile.mkdtemp(prefix="toolcrib-load-", dir="/var/tmp"))
    try:
        for number in range(count):
            root = top / "all" / f"w{number}"
            root.mkdir(parents=True)
            (root / "given.txt").write_text(LINE * 40)
        numbers = list(range(count))
        measured = Measured()
        before = tree_kilobytes()
        async with make(top) as contestant:
            start = time.perf_counter()
            await at_most(in_flight, [partial(contestant.open, number) for number in numbers])
            measured.opened = (time.perf_counter() - start) / count
            await at_most(in_flight, [partial(episode, contestant, number, 0, Measured()) for number in numbers])
            measured.kilobytes = (tree_kilobytes() - before) / count
            start, cpu = time.perf_counter(), tree_cpu_seconds()
            for turn in range(1, rounds + 1):
                random.Random(turn).shuffle(numbers)
                await at_most(in_flight, [partial(episode, contestant, n, turn, measured) for n in numbers])
            measured.seconds = time.perf_counter() - start
            measured.cpu = tree_cpu_seconds() - cpu
            return measured.row(contestant.name, count, in_flight)
    finally:
        shutil.rmtree(top, ignore_errors=True)


async def main(counts: list[int], in_flight: list[int], calls: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, hard), hard))
    contestants: list[Callable[[Path], Contestant]] = [Sessions, OneServer]
    if importlib.util.find_spec("swerex") is not None:
        contestants.append(SweRex)
    print("| workspaces | in flight | | opening ms | kB each | calls/s | CPU ms per call | command p50 ms | p99 | read p50 ms | p99 |")
    print("| --: | --: | --- | --: | --: | --: | --: | --: | --: | --: | --: |")
    for count in counts:
        for limit in in_flight:
            for make in contestants:
                rounds = max(1, calls // (3 * count))
                try:
                    row = await measure(make, count, limit, rounds)
                except Exception as error:
                    if make is not SweRex:
                        raise
                    # It gives up if a shell does not show its prompt in time.
                    row = f"| {count} | {limit} | {SweRex.name} | failed: {type(error).__name__} |"
                print(row, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("counts", nargs="+", type=int, metavar="WORKSPACES")
    parser.add_argument("--in-flight", nargs="+", type=int, default=[1, 8], help="calls at the same time")
    parser.add_argument("--calls", type=int, default=1500, help="calls of each contestant, at least 3 per workspace")
    given = parser.parse_args()
    asyncio.run(main(given.counts, given.in_flight, given.calls))
