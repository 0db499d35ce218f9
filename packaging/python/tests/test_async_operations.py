"""Raw operations for asyncio. What both kinds of session share is tested for threads."""

import asyncio
import os
import unittest
from typing import Any

from support import AsyncSessionTest, needs_operations, toolcrib


class AsyncExecTest(AsyncSessionTest):
    @needs_operations
    async def test_commands_run_side_by_side(self) -> None:
        async with self.session() as session:
            done = await asyncio.gather(*[session.exec(f"sleep 0.2; echo {i}") for i in range(8)])
            self.assertEqual([one.stdout for one in done], [b"%d\n" % i for i in range(8)])

    @needs_operations
    async def test_chunks_are_passed_to_functions_of_both_kinds(self) -> None:
        async with self.session() as session:
            out: list[bytes] = []

            async def later(data: bytes) -> None:
                await asyncio.sleep(0)
                out.append(data)

            await session.exec("echo 1; echo 2 >&2", on_stdout=later, on_stderr=out.append)
            self.assertEqual(sorted(out), [b"1\n", b"2\n"])

    @needs_operations
    async def test_cancelling_the_task_ends_the_command(self) -> None:
        async with self.session() as session:
            command = asyncio.create_task(session.exec("touch started; sleep 3600"))
            while not (self.ws / "started").exists():
                await asyncio.sleep(0.01)
            command.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await command
            self.assertEqual((await session.exec(["true"])).exit_code, 0)

    @needs_operations
    async def test_output_beyond_the_limit_ends_the_command(self) -> None:
        async with self.session() as session:
            with self.assertRaises(toolcrib.LimitExceeded):
                await session.exec(["yes"], max_output=1 << 20)

    @needs_operations
    async def test_an_approver_is_asked(self) -> None:
        async def deny(_approval: toolcrib.Approval) -> bool:
            return False

        async with self.session(profile="cautious", approver=deny) as session:
            with self.assertRaises(toolcrib.Denied):
                await session.exec("touch b.txt")


class AsyncProcessTest(AsyncSessionTest):
    @needs_operations
    async def test_a_dialogue_with_a_process(self) -> None:
        async with self.session() as session, await session.spawn(["cat"]) as process:
            await process.stdin.write("one\n")
            self.assertEqual(await process.stdout.__anext__(), b"one\n")
            self.assertIsNone(process.poll())
            with self.assertRaises(toolcrib.Timeout):
                await process.wait(0.1)
            await process.stdin.close()
            self.assertEqual((await process.wait(60)).exit_code, 0)
            self.assertEqual([chunk async for chunk in process.stdout], [])

    @needs_operations
    async def test_signals_and_kill(self) -> None:
        async with self.session() as session:
            process = await session.spawn("trap 'exit 5' INT; echo ready; while :; do sleep 0.1; done")
            await process.stdout.__anext__()
            await process.signal("SIGINT")
            self.assertEqual((await process.wait(60)).exit_code, 5)
            process = await session.spawn(["sleep", "3600"])
            await process.kill()
            self.assertEqual((await process.wait(60)).signal, 9)
            await process.kill()

    @needs_operations
    async def test_both_streams_in_their_order(self) -> None:
        async with self.session() as session:
            process = await session.spawn("echo 1; sleep 0.2; echo 2 >&2; sleep 0.2; echo 3")
            seen = [chunk async for chunk in process.output()]
            self.assertEqual(seen, [("stdout", b"1\n"), ("stderr", b"2\n"), ("stdout", b"3\n")])

    @needs_operations
    async def test_the_death_of_the_program_ends_the_process(self) -> None:
        async with self.session() as session:
            process = await session.spawn(["sleep", "3600"])
            assert session.pid
            os.kill(session.pid, 9)
            with self.assertRaises(toolcrib.SessionClosed):
                await process.wait(60)


class AsyncFileTest(AsyncSessionTest):
    @needs_operations
    async def test_files_and_snapshots(self) -> None:
        async with self.session() as session:
            snapshot = await session.snapshot()
            await session.write("x/b.bin", b"\x00\xff")
            self.assertEqual(await session.read("x/b.bin"), b"\x00\xff")
            self.assertEqual((await session.stat("x/b.bin")).size, 2)
            self.assertEqual([one.name for one in await session.list("x")], ["b.bin"])
            await session.mkdir("y")
            await session.move("x/b.bin", "y/b.bin")
            self.assertTrue((await session.realpath("y/b.bin")).endswith("/y/b.bin"))
            await session.remove("y", recursive=True)
            await session.restore(snapshot)
            self.assertFalse((self.ws / "x/b.bin").exists())
            self.assertEqual((await session.info()).protocol, 1)

    @needs_operations
    async def test_other_types_are_refused_before_anything_is_sent(self) -> None:
        wrong: Any = 5
        async with self.session() as session:
            for write in (session.write("a.txt", wrong), session.exec("cat > a.txt", stdin=wrong)):
                with self.assertRaisesRegex(TypeError, "must be bytes or text, not int"):
                    await write
            self.assertEqual(await session.read("a.txt"), b"hello\n")

    @needs_operations
    async def test_a_large_file(self) -> None:
        data = os.urandom(1 << 20) * 20
        async with self.session() as session:
            await session.write("large", data)
            self.assertEqual(await session.read("large"), data)


if __name__ == "__main__":
    unittest.main()
