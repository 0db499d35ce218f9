"""What the tests share: a workspace, a state directory and the program."""

import faulthandler
import functools
import inspect
import os
import shutil
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import toolcrib  # noqa: E402


@functools.cache
def has_operations() -> bool:
    """Whether the program knows raw operations."""
    with tempfile.TemporaryDirectory() as top:
        with toolcrib.Session(top, state=os.path.join(top, "state")) as session:
            try:
                session.info()
            except toolcrib.InvalidArgument:
                return False
            return True


def needs_operations(test: Any) -> Any:
    """Skips a test if the program knows only tools."""

    def check(self: unittest.TestCase) -> None:
        if not has_operations():
            self.skipTest("the program has no raw operations")

    if inspect.iscoroutinefunction(test):

        @functools.wraps(test)
        async def run_async(self: unittest.TestCase) -> None:
            check(self)
            await test(self)

        return run_async

    @functools.wraps(test)
    def run(self: unittest.TestCase) -> None:
        check(self)
        test(self)

    return run


class Workspace:
    """A directory `ws` with a file, and options for sessions in it."""

    def set_up_workspace(self, test: unittest.TestCase) -> None:
        # A test that hangs shows where, and ends the run.
        faulthandler.dump_traceback_later(300, exit=True)
        test.addCleanup(faulthandler.cancel_dump_traceback_later)
        top = Path(tempfile.mkdtemp(prefix="toolcrib-test-"))
        test.addCleanup(shutil.rmtree, top, ignore_errors=True)
        self.top = top
        self.ws = top / "ws"
        self.ws.mkdir()
        (self.ws / "a.txt").write_text("hello\n")
        self.options: dict[str, Any] = {"state": top / "state", "rules": top / "rules.toml"}
        (top / "rules.toml").write_text("")


class SessionTest(unittest.TestCase, Workspace):
    """A test of `Session`."""

    def setUp(self) -> None:
        self.set_up_workspace(self)

    def session(self, **options: Any) -> toolcrib.Session:
        session = toolcrib.Session(self.ws, **{**self.options, **options})
        self.addCleanup(session.close)
        return session


class AsyncSessionTest(unittest.IsolatedAsyncioTestCase, Workspace):
    """A test of `AsyncSession`."""

    def setUp(self) -> None:
        self.set_up_workspace(self)

    def session(self, **options: Any) -> toolcrib.AsyncSession:
        session = toolcrib.AsyncSession(self.ws, **{**self.options, **options})
        self.addAsyncCleanup(session.close)
        return session


def wait_until(condition: Any, seconds: float = 30) -> bool:
    """Waits for a condition, long enough for a machine under load."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False
