"""64 environments side by side, each reset with `restore()` instead of a new container.

Prints the seconds per reset, beside those of `git checkout` and `git clean` on the same trees. Needs git, and no network.
"""

import argparse
import asyncio
import shutil
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import toolcrib


def make_tree(top: Path, files: int) -> Path:
    """A repository with a commit."""
    tree = top / "tree"
    for number in range(files):
        file = tree / f"package{number % 20}" / f"module{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"VALUE = {number}\n" * 40)
    git(tree, "init", "-q")
    git(tree, "add", ".")
    git(tree, "-c", "user.name=rollout", "-c", "user.email=rollout@localhost", "commit", "-qm", "start")
    return tree


def git(tree: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(tree), *arguments], check=True, stdout=subprocess.DEVNULL)


async def episode(session: toolcrib.AsyncSession, number: int) -> None:
    """What an agent does in an environment."""
    await session.write("notes/plan.txt", f"environment {number}\n")
    edit = {"file_path": "package1/module1.py", "old_string": "VALUE = 1\n", "new_string": "VALUE = 2\n"}
    (await session.call("Edit", edit, replace_all=True)).raise_for_error()
    (await session.exec("mkdir -p build; for i in 1 2 3; do echo $i > build/$i; done; rm package2/module2.py")).check()


async def timed(work: Callable[[int], Awaitable[object]], count: int) -> float:
    """Seconds per environment, if all work side by side."""
    start = time.perf_counter()
    await asyncio.gather(*[work(number) for number in range(count)])
    return (time.perf_counter() - start) / count


async def main(environments: int, rounds: int, files: int) -> None:
    top = Path(tempfile.mkdtemp(prefix="toolcrib-rollout-"))
    try:
        source = make_tree(top, files)
        trees = [top / f"environment{number}" for number in range(environments)]
        for tree in trees:
            shutil.copytree(source, tree)
        sessions = [toolcrib.AsyncSession(tree, state=top / f"state{i}") for i, tree in enumerate(trees)]
        started = await timed(lambda i: sessions[i].info(), environments)
        print(f"{environments} environments of {files} files; {started * 1000:.1f} ms to start one")
        snapshots = [await session.snapshot() for session in sessions]
        for number in range(rounds):
            worked = await timed(lambda i: episode(sessions[i], i), environments)
            with_restore = await timed(lambda i: sessions[i].restore(snapshots[i]), environments)
            check_clean(trees)
            await timed(lambda i: episode(sessions[i], i), environments)
            with_git = await timed(lambda i: asyncio.to_thread(reset_with_git, trees[i]), environments)
            check_clean(trees)
            snapshots = [await session.snapshot() for session in sessions]
            print(
                f"round {number + 1}: episode {worked:.4f} s, reset with restore() {with_restore:.4f} s, "
                f"with git checkout and git clean {with_git:.4f} s"
            )
        await asyncio.gather(*[session.close() for session in sessions])
    finally:
        shutil.rmtree(top, ignore_errors=True)


def reset_with_git(tree: Path) -> None:
    git(tree, "checkout", "-q", "--", ".")
    git(tree, "clean", "-qfdx")


def check_clean(trees: list[Path]) -> None:
    for tree in trees:
        status = subprocess.run(["git", "-C", str(tree), "status", "--porcelain"], capture_output=True, check=True)
        assert not status.stdout, (tree, status.stdout)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environments", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--files", type=int, default=500)
    given = parser.parse_args()
    asyncio.run(main(given.environments, given.rounds, given.files))
