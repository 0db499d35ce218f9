"""Calls, approvals, cancellation and event loops, for asyncio."""

import asyncio
import threading
import unittest
from typing import Any

from support import AsyncSessionTest, toolcrib


class AsyncCallTest(AsyncSessionTest):
    async def test_calls_run_side_by_side(self) -> None:
        for i in range(40):
            (self.ws / f"f{i}.txt").write_text(f"content {i}\n")
        async with self.session() as session:
            calls = [session.call("Read", file_path=f"f{i % 40}.txt") for i in range(400)]
            for i, reply in enumerate(await asyncio.gather(*calls)):
                self.assertIn(f"content {i % 40}\n", reply.output)

    async def test_large_arguments_pass(self) -> None:
        text = "0123456789abcdef\n" * 100_000
        async with self.session() as session:
            replies = await asyncio.gather(
                *[session.call("Write", file_path=f"big{i}.txt", content=text) for i in range(8)]
            )
            self.assertTrue(all(one.success for one in replies))
            self.assertEqual((self.ws / "big5.txt").read_text(), text)

    async def test_history_and_undo(self) -> None:
        async with self.session() as session:
            (await session.call("Write", file_path="b.txt", content="x")).raise_for_error()
            self.assertEqual((await session.history())[0].tool, "Write")
            self.assertEqual((await session.undo()).files, 1)
            self.assertFalse((self.ws / "b.txt").exists())

    async def test_a_job_is_an_asynchronous_iterator(self) -> None:
        async with self.session() as session:
            job = await session.start_job("echo a; sleep 0.3; echo b")
            self.assertEqual("".join([text async for text in job]), "a\nb\n")
            self.assertEqual(job.exit_code, 0)

    async def test_an_approver_may_be_of_both_kinds(self) -> None:
        main = threading.current_thread()
        threads: list[threading.Thread] = []

        def blocking(approval: toolcrib.Approval) -> bool:
            threads.append(threading.current_thread())
            return approval.tool == "Write"

        async def native(approval: toolcrib.Approval) -> toolcrib.Answer:
            await asyncio.sleep(0)
            threads.append(threading.current_thread())
            return toolcrib.Answer.no("Not now.")

        async with self.session(profile="cautious", approver=blocking) as session:
            self.assertTrue((await session.call("Write", file_path="b.txt", content="x")).success)
        async with self.session(profile="cautious", approver=native) as session:
            self.assertIn("Not now.", (await session.call("Write", file_path="c.txt", content="x")).output)
        self.assertIsNot(threads[0], main)
        self.assertIs(threads[1], main)


class AsyncCancelTest(AsyncSessionTest):
    async def test_cancelling_a_task_ends_the_call(self) -> None:
        async with self.session() as session:
            call = asyncio.create_task(session.call("Bash", command="echo x > started; sleep 3600; touch late"))
            while not (self.ws / "started").exists():
                await asyncio.sleep(0.01)
            call.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await call
            shells = (await session.call("ListShells", running=True)).metadata["shells"]
            self.assertEqual(shells, [])

    async def test_many_cancellations_leave_the_session_intact(self) -> None:
        async with self.session() as session:
            calls = [asyncio.create_task(session.call("Grep", pattern=f"hel{i}|hello")) for i in range(100)]
            for i, call in enumerate(calls):
                if i % 3:
                    await asyncio.sleep(0)
                    call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            self.assertIn("hello", (await session.call("Read", file_path="a.txt")).output)

    async def test_a_timeout_cancels_the_call(self) -> None:
        async with self.session() as session:
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(session.call("Bash", command="sleep 3600"), 0.3)
            with self.assertRaises(toolcrib.Timeout):
                await session.request("Bash", {"command": "sleep 3600"}, timeout=0.3)
            self.assertTrue((await session.call("Read", file_path="a.txt")).success)

    async def test_close_ends_running_calls(self) -> None:
        session = self.session()
        await session.call("Read", file_path="a.txt")
        call = asyncio.create_task(session.call("Bash", command="sleep 3600"))
        await asyncio.sleep(0.3)
        await session.close()
        with self.assertRaises(toolcrib.SessionClosed):
            await call
        with self.assertRaises(toolcrib.SessionClosed):
            await session.call("Read", file_path="a.txt")
        await session.close()


class LoopTest(AsyncSessionTest):
    def run_elsewhere(self, run: Any) -> list[str]:
        """Runs a session in a loop of another thread."""
        outputs: list[str] = []

        async def main() -> None:
            async with toolcrib.AsyncSession(self.ws, **self.options) as session:
                outputs.append((await session.call("Bash", command="echo $((6*7))")).output)

        thread = threading.Thread(target=lambda: run(main()))
        thread.start()
        thread.join()
        return outputs

    async def test_a_loop_in_another_thread_works(self) -> None:
        self.assertIn("42", self.run_elsewhere(asyncio.run)[0])

    async def test_uvloop_works(self) -> None:
        try:
            import uvloop
        except ImportError:
            self.skipTest("uvloop is not installed")

        def run(main: Any) -> None:
            loop = uvloop.new_event_loop()
            loop.run_until_complete(main)
            loop.close()

        self.assertIn("42", self.run_elsewhere(run)[0])

    async def test_a_session_belongs_to_one_loop(self) -> None:
        async with self.session() as session:
            errors: list[BaseException] = []

            def use() -> None:
                try:
                    asyncio.run(session.call("Read", file_path="a.txt"))
                except toolcrib.InvalidArgument as error:
                    errors.append(error)

            await asyncio.to_thread(use)
            self.assertEqual(len(errors), 1)
            with self.assertRaisesRegex(toolcrib.InvalidArgument, "belongs to another event loop"):
                await asyncio.to_thread(asyncio.run, session.close())
            self.assertTrue((await session.call("Read", file_path="a.txt")).success)

    def test_a_session_can_be_closed_after_its_loop(self) -> None:
        session = toolcrib.AsyncSession(self.ws, **self.options)
        for _ in range(2):
            self.assertTrue(asyncio.run(session.call("Read", file_path="a.txt")).success)
        asyncio.run(session.close())
        asyncio.run(session.close())
        with self.assertRaisesRegex(toolcrib.SessionClosed, "the session is closed"):
            asyncio.run(session.call("Read", file_path="a.txt"))


if __name__ == "__main__":
    unittest.main()
