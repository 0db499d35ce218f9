"""The life of the child process: its end, restarts, forks, the exit of the interpreter, leaks."""

import asyncio
import contextlib
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import unittest
import warnings
from pathlib import Path

from support import AsyncSessionTest, SessionTest, toolcrib, wait_until

PACKAGE = str(Path(__file__).resolve().parent.parent)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def children() -> list[str]:
    """Child processes of this process, zombies included."""
    found: list[str] = []
    for task in os.listdir("/proc/self/task"):
        # A thread may end in between.
        with contextlib.suppress(FileNotFoundError):
            found += Path(f"/proc/self/task/{task}/children").read_text().split()
    return found


class DeathTest(SessionTest):
    def test_running_calls_learn_why_the_program_ended(self) -> None:
        session = self.session(restart=False)
        session.call("Read", file_path="a.txt")
        errors: list[toolcrib.SessionClosed] = []

        def call() -> None:
            try:
                session.call("Bash", command="touch started; sleep 3600")
            except toolcrib.SessionClosed as error:
                errors.append(error)

        threads = [threading.Thread(target=call) for _ in range(3)]
        for thread in threads:
            thread.start()
        self.assertTrue(wait_until((self.ws / "started").exists))
        assert session.pid
        os.kill(session.pid, signal.SIGKILL)
        for thread in threads:
            thread.join(60)
        self.assertEqual([one.exit_status for one in errors], [-9, -9, -9])
        self.assertIn("SIGKILL", str(errors[0]))
        with self.assertRaises(toolcrib.SessionClosed):
            session.call("Read", file_path="a.txt")

    def test_the_error_has_the_standard_error_of_the_program(self) -> None:
        with self.assertRaises(toolcrib.SessionClosed) as caught:
            with self.session(profile="no-such-profile") as session:
                session.call("Read", file_path="a.txt")
        self.assertEqual(caught.exception.exit_status, 2)
        self.assertIn("no-such-profile", caught.exception.stderr)
        self.assertIn("no-such-profile", str(caught.exception))

    def test_the_next_call_starts_the_program_again(self) -> None:
        with self.session() as session:
            session.call("Write", file_path="b.txt", content="x").raise_for_error()
            first = session.pid
            assert first
            os.kill(first, signal.SIGKILL)
            with self.assertRaises(toolcrib.SessionClosed):
                while True:
                    session.call("Read", file_path="a.txt")
            self.assertTrue(session.call("Read", file_path="a.txt").success)
            self.assertNotEqual(session.pid, first)
            self.assertEqual(session.history()[0].tool, "Write")

    def test_a_program_that_ends_before_its_first_answer_was_not_started(self) -> None:
        script = self.top / "failing"
        script.write_text("#!/bin/sh\necho out of paper >&2\nexit 7\n")
        script.chmod(0o755)
        for options in ({"binary": "/bin/false"}, {"binary": script}, {"profile": "no-such-profile"}):
            with self.session(**options) as session:
                with self.assertRaisesRegex(toolcrib.StartFailed, "did not start: it exited with ") as caught:
                    session.info()
                self.assertNotIn("may have had effects", str(caught.exception))
                if options.get("binary") == script:
                    self.assertEqual((caught.exception.exit_status, caught.exception.stderr), (7, "out of paper"))

    def test_a_root_that_is_no_directory_is_named(self) -> None:
        for root in (self.top / "missing", f"{self.top / 'missing'}:ro"):
            with toolcrib.Session([self.ws, root], **self.options) as session:
                with self.assertRaisesRegex(toolcrib.NotFound, "the root .*/missing does not exist"):
                    session.info()
        with toolcrib.Session(self.ws / "a.txt", **self.options) as session:
            with self.assertRaisesRegex(toolcrib.NotADirectory, "the root .*/a.txt is not a directory"):
                session.info()

    def test_a_missing_program_is_named(self) -> None:
        with self.assertRaisesRegex(FileNotFoundError, "/no/such/file"):
            self.session(binary="/no/such/file")

    def test_another_program_is_a_protocol_error(self) -> None:
        script = self.top / "other"
        script.write_text("#!/bin/sh\necho welcome\nexec sleep 3600\n")
        script.chmod(0o755)
        with self.session(binary=script) as session:
            with self.assertRaisesRegex(toolcrib.ProtocolError, "welcome"):
                session.call("Read", file_path="a.txt")
        self.assertEqual(children(), [])

    def test_a_program_that_ignores_the_end_of_its_input_is_killed(self) -> None:
        script = self.top / "stubborn"
        script.write_text("#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 0.1; done\n")
        script.chmod(0o755)
        session = self.session(binary=script)
        session.__enter__()
        pid = session.pid
        session.close()
        self.assertFalse(Path(f"/proc/{pid}").exists())

    def test_close_may_be_repeated_and_is_final(self) -> None:
        session = self.session()
        session.close()
        session.close()
        with self.assertRaises(toolcrib.SessionClosed):
            session.call("Read", file_path="a.txt")

    def test_a_forgotten_session_ends_its_program(self) -> None:
        session = toolcrib.Session(self.ws, **self.options)
        session.call("Read", file_path="a.txt")
        pid = session.pid
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            del session
            gc.collect()
        self.assertIn("ResourceWarning", [one.category.__name__ for one in seen])
        self.assertTrue(wait_until(lambda: not Path(f"/proc/{pid}").exists()))


class ForkTest(SessionTest):
    def test_a_fork_cannot_use_or_end_the_session(self) -> None:
        with self.session() as session:
            session.call("Read", file_path="a.txt")
            read, write = os.pipe()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pid = os.fork()
            if pid == 0:
                outcome = b"no error"
                try:
                    session.call("Read", file_path="a.txt")
                except toolcrib.SessionClosed as error:
                    outcome = str(error).encode()
                session.close()
                # A session of its own works.
                with toolcrib.Session(self.ws, **self.options) as own:
                    outcome += b"; own: " + own.call("Read", file_path="a.txt").output.encode()
                os.write(write, outcome)
                os._exit(0)
            os.close(write)
            outcome = os.read(read, 10_000).decode()
            os.close(read)
            os.waitpid(pid, 0)
            self.assertIn("belongs to the process that started it", outcome)
            self.assertIn("own:      1\thello", outcome)
            self.assertTrue(session.call("Read", file_path="a.txt").success)

    def test_a_living_fork_does_not_keep_the_program_alive(self) -> None:
        session = self.session()
        session.call("Read", file_path="a.txt")
        program = session.pid
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pid = os.fork()
        if pid == 0:
            signal.pause()
            os._exit(0)
        session.close()
        self.assertFalse(Path(f"/proc/{program}").exists())
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


class ExitTest(SessionTest):
    def run_script(self, script: str) -> subprocess.CompletedProcess[str]:
        setup = f"import toolcrib, threading, asyncio, sys\nroot, state = {str(self.ws)!r}, {str(self.top / 'state')!r}\n"
        return subprocess.run(
            [sys.executable, "-W", "ignore", "-c", setup + textwrap.dedent(script)],
            env={**os.environ, "PYTHONPATH": PACKAGE},
            capture_output=True,
            text=True,
            timeout=120,
        )

    def check_ended(self, run: subprocess.CompletedProcess[str]) -> None:
        self.assertEqual((run.returncode, run.stderr), (0, ""), run)
        pid = run.stdout.split()[0]
        self.assertTrue(wait_until(lambda: not Path(f"/proc/{pid}").exists()))

    def test_an_open_session_does_not_hold_up_the_exit(self) -> None:
        self.check_ended(self.run_script("""
            session = toolcrib.Session(root, state=state)
            session.call("Read", file_path="a.txt")
            print(session.pid)
        """))

    def test_neither_does_a_call_in_a_daemon_thread(self) -> None:
        self.check_ended(self.run_script("""
            import time
            session = toolcrib.Session(root, state=state)
            session.call("Read", file_path="a.txt")
            def call():
                try:
                    session.call("Bash", command="sleep 3600")
                except toolcrib.SessionClosed:
                    pass
            threading.Thread(target=call, daemon=True).start()
            time.sleep(0.3)
            print(session.pid)
        """))

    def test_an_open_async_session_does_not_hold_up_the_exit(self) -> None:
        self.check_ended(self.run_script("""
            async def main():
                global session
                session = toolcrib.AsyncSession(root, state=state)
                await session.call("Read", file_path="a.txt")
                print(session.pid)
            asyncio.run(main())
        """))

    def test_an_async_session_can_be_closed_after_its_loop_left_a_call(self) -> None:
        run = self.run_script("""
            import os
            session = toolcrib.AsyncSession(root, state=state)
            loop = asyncio.new_event_loop()
            loop.run_until_complete(session.call("Read", file_path="a.txt"))
            left = loop.create_task(session.call("Bash", command="sleep 3600"))
            loop.run_until_complete(asyncio.sleep(0.1))
            program = f"/proc/{session.pid}"
            loop.close()
            def outcome():
                try:
                    return asyncio.run(session.call("Read", file_path="a.txt"))
                except toolcrib.ToolcribError as error:
                    return error.kind
            print(outcome(), os.path.exists(program))
            asyncio.run(session.close())
            print(outcome(), os.path.exists(program))
        """)
        self.assertEqual(run.stdout, "invalid True\nclosed False\n", run.stderr)


class LeakTest(SessionTest):
    def test_sessions_leave_nothing_behind(self) -> None:
        count = int(os.environ.get("TOOLCRIB_TEST_SESSIONS", "300"))

        def use() -> None:
            with toolcrib.Session(self.ws, **self.options) as session:
                self.assertTrue(session.call("Read", file_path="a.txt").success)

        use()
        gc.collect()
        before = (descriptors(), threading.active_count(), children())
        for _ in range(count):
            use()
        gc.collect()
        self.assertEqual((descriptors(), threading.active_count(), children()), before)

    def test_killed_programs_leave_nothing_behind(self) -> None:
        gc.collect()
        before = (descriptors(), threading.active_count(), children())
        for _ in range(20):
            with toolcrib.Session(self.ws, **self.options, restart=False) as session:
                session.call("Read", file_path="a.txt")
                assert session.pid
                os.kill(session.pid, signal.SIGKILL)
                with self.assertRaises(toolcrib.SessionClosed):
                    while True:
                        session.call("Read", file_path="a.txt")
        gc.collect()
        self.assertEqual((descriptors(), threading.active_count(), children()), before)


class AsyncLifeTest(AsyncSessionTest):
    async def test_sessions_leave_nothing_behind(self) -> None:
        async def use() -> None:
            async with toolcrib.AsyncSession(self.ws, **self.options) as session:
                self.assertTrue((await session.call("Read", file_path="a.txt")).success)

        await use()
        await asyncio.sleep(0.1)
        gc.collect()
        before = (descriptors(), threading.active_count(), children(), len(asyncio.all_tasks()))
        for _ in range(100):
            await use()
        await asyncio.sleep(0.1)
        gc.collect()
        self.assertEqual((descriptors(), threading.active_count(), children(), len(asyncio.all_tasks())), before)

    async def test_running_calls_learn_why_the_program_ended(self) -> None:
        async with self.session() as session:
            await session.call("Read", file_path="a.txt")
            first = session.pid
            calls = [asyncio.create_task(session.call("Bash", command="touch started; sleep 3600")) for _ in range(3)]
            while not (self.ws / "started").exists():
                await asyncio.sleep(0.01)
            assert first
            os.kill(first, signal.SIGKILL)
            for outcome in await asyncio.gather(*calls, return_exceptions=True):
                assert isinstance(outcome, toolcrib.SessionClosed), outcome
                self.assertEqual(outcome.exit_status, -9)
            self.assertTrue((await session.call("Read", file_path="a.txt")).success)
            self.assertNotEqual(session.pid, first)

    async def test_the_error_has_the_standard_error_of_the_program(self) -> None:
        with self.assertRaises(toolcrib.SessionClosed) as caught:
            async with self.session(profile="no-such-profile") as session:
                await session.call("Read", file_path="a.txt")
        self.assertIn("no-such-profile", caught.exception.stderr)
        async with toolcrib.AsyncSession(self.top / "missing", **self.options) as session:
            with self.assertRaisesRegex(toolcrib.NotFound, "the root .*/missing does not exist"):
                await session.info()

    async def test_another_program_is_a_protocol_error(self) -> None:
        script = self.top / "other"
        script.write_text("#!/bin/sh\necho welcome\nexec sleep 3600\n")
        script.chmod(0o755)
        async with self.session(binary=script) as session:
            with self.assertRaisesRegex(toolcrib.ProtocolError, "welcome"):
                await session.call("Read", file_path="a.txt")

    async def test_a_fork_cannot_use_the_session(self) -> None:
        async with self.session() as session:
            await session.call("Read", file_path="a.txt")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    session.call("Read", file_path="a.txt").send(None)
                except toolcrib.SessionClosed:
                    code = 0
                finally:
                    os._exit(code)
            self.assertEqual(os.waitpid(pid, 0)[1], 0)
            self.assertTrue((await session.call("Read", file_path="a.txt")).success)


if __name__ == "__main__":
    unittest.main()
