"""Calls of tools, approvals, cancellation and errors, for threads."""

import asyncio
import os
import pickle
import random
import signal
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from support import SessionTest, needs_operations, toolcrib, wait_until


class CallTest(SessionTest):
    def test_a_call_has_a_reply(self) -> None:
        with self.session() as session:
            reply = session.call("Read", file_path="a.txt")
            self.assertTrue(reply.success)
            self.assertIn("hello", reply.output)
            self.assertEqual(reply.metadata["total_lines"], 1)
            self.assertIs(reply.raise_for_error(), reply)
            self.assertEqual(session.call("Read", {"file_path": "a.txt"}), reply)

    def test_a_failure_is_a_reply_and_can_be_raised(self) -> None:
        with self.session() as session:
            reply = session.call("Read", file_path="none.txt")
            self.assertFalse(reply.success)
            with self.assertRaises(toolcrib.NotFound) as caught:
                reply.raise_for_error()
            self.assertEqual(caught.exception.kind, "not_found")
            self.assertIn("none.txt", str(caught.exception))
            copy = pickle.loads(pickle.dumps(caught.exception))
            self.assertEqual((type(copy), str(copy)), (toolcrib.NotFound, str(caught.exception)))

    def test_a_dry_run_changes_nothing(self) -> None:
        with self.session() as session:
            reply = session.request("Write", {"file_path": "b.txt", "content": "x"}, dry_run=True)
            self.assertTrue(reply.metadata["dry_run"])
            self.assertFalse((self.ws / "b.txt").exists())

    def test_history_and_undo(self) -> None:
        with self.session() as session:
            session.call("Write", file_path="b.txt", content="x").raise_for_error()
            change = session.history()[0]
            self.assertEqual((change.tool, change.files[0].action), ("Write", "created"))
            undone = session.undo()
            self.assertEqual((undone.undone, undone.files), ((change.id,), 1))
            self.assertFalse((self.ws / "b.txt").exists())

    def test_undo_takes_a_number_of_steps_or_an_id(self) -> None:
        with self.session() as session:
            for name in ("b.txt", "c.txt", "d.txt"):
                session.call("Write", file_path=name, content="x").raise_for_error()
            first = session.history()[-1].id
            self.assertEqual(session.undo(id=first).undone, (first,))
            self.assertEqual(session.undo(2).files, 2)
            self.assertEqual(os.listdir(self.ws), ["a.txt"])

    def test_many_threads_share_a_session(self) -> None:
        for i in range(40):
            (self.ws / f"f{i}.txt").write_text(f"content {i}\n")
        with self.session() as session, ThreadPoolExecutor(16) as pool:
            def read(i: int) -> bool:
                return f"content {i}\n" in session.call("Read", file_path=f"f{i}.txt").output

            self.assertTrue(all(pool.map(read, list(range(40)) * 10)))

    def test_large_arguments_and_replies_pass(self) -> None:
        text = "0123456789abcdef\n" * 100_000
        with self.session() as session, ThreadPoolExecutor(4) as pool:
            def write(i: int) -> bool:
                return session.call("Write", file_path=f"big{i}.txt", content=text).success

            self.assertTrue(all(pool.map(write, range(8))))
            self.assertEqual((self.ws / "big3.txt").read_text(), text)

    def test_a_call_outside_a_with_block_starts_the_program(self) -> None:
        session = self.session()
        self.assertIsNone(session.pid)
        self.assertTrue(session.call("Read", file_path="a.txt").success)
        self.assertIsNotNone(session.pid)

    def test_arguments_that_are_not_json_are_refused(self) -> None:
        with self.session() as session:
            with self.assertRaises(toolcrib.InvalidArgument):
                session.call("Read", file_path=b"a.txt")
            self.assertTrue(session.call("Read", file_path="a.txt").success)

    @needs_operations
    def test_progress_is_reported(self) -> None:
        with self.session() as session:
            seen: list[toolcrib.Progress] = []
            reply = session.request("Bash", {"command": "echo working; sleep 3"}, on_progress=seen.append)
            self.assertTrue(reply.success)
            self.assertIn("working", [one.message for one in seen])


class ApprovalTest(SessionTest):
    def ask(self, decide: toolcrib.Approver) -> tuple[list[toolcrib.Approval], toolcrib.Reply]:
        asked: list[toolcrib.Approval] = []

        def approver(approval: toolcrib.Approval) -> object:
            asked.append(approval)
            return decide(approval)

        with self.session(profile="cautious", approver=approver) as session:
            return asked, session.call("Write", file_path="b.txt", content="x\n")

    def test_a_question_has_the_facts(self) -> None:
        asked, reply = self.ask(lambda _approval: toolcrib.Answer.yes())
        self.assertTrue(reply.success)
        [approval] = asked
        self.assertEqual(approval.tool, "Write")
        self.assertEqual(approval.paths, (toolcrib.PathAccess("write", str(self.ws / "b.txt")),))
        self.assertIn("+x", approval.diff or "")
        self.assertIn("yes", approval.answers)
        self.assertTrue(approval.rule and approval.why)
        self.assertIn("[[rule]]", approval.always or "")

    def test_answers_take_several_forms(self) -> None:
        async def later(_approval: toolcrib.Approval) -> toolcrib.Answer:
            return toolcrib.Answer.session()

        for decide in (lambda _a: True, lambda _a: "yes", lambda _a: toolcrib.Answer.session(), later):
            self.assertTrue(self.ask(decide)[1].success)

    def test_an_async_approver_works_while_a_loop_runs(self) -> None:
        async def approver(_approval: toolcrib.Approval) -> bool:
            await asyncio.sleep(0)
            return True

        async def main() -> toolcrib.Reply:
            return self.ask(approver)[1]

        self.assertTrue(asyncio.run(main()).success)

    def test_a_denial_reaches_the_agent(self) -> None:
        _asked, reply = self.ask(lambda _approval: toolcrib.Answer.no("Use another file."))
        self.assertEqual(reply.error and reply.error.kind, "denied")
        self.assertIn("Use another file.", reply.output)

    def test_a_failing_or_wrong_approver_denies_and_says_so(self) -> None:
        def fail(_approval: toolcrib.Approval) -> bool:
            raise RuntimeError("broken")

        self.assertIn("RuntimeError: broken", self.ask(fail)[1].output)
        self.assertIn("maybe", self.ask(lambda _approval: "maybe")[1].output)
        self.assertIn("not an answer", self.ask(lambda _approval: None)[1].output)
        self.assertIn("7", self.ask(lambda _approval: toolcrib.Answer.no(7))[1].output)

    def test_always_adds_the_rule(self) -> None:
        asked, reply = self.ask(lambda _approval: "always")
        self.assertTrue(reply.success)
        self.assertIn((asked[0].always or "").strip(), (self.top / "rules.toml").read_text())

    def test_the_approver_runs_in_the_thread_of_the_call(self) -> None:
        threads: list[threading.Thread] = []
        self.ask(lambda _approval: threads.append(threading.current_thread()) or True)
        self.assertEqual(threads, [threading.current_thread()])

    def test_without_an_approver_the_call_is_denied(self) -> None:
        with self.session(profile="cautious") as session:
            reply = session.call("Write", file_path="b.txt", content="x")
            self.assertEqual(reply.error and reply.error.kind, "denied")

    def test_an_approver_may_use_the_session(self) -> None:
        seen: list[str] = []
        with self.session(profile="cautious", approver=lambda _approval: look()) as session:

            def look() -> bool:
                seen.append(session.call("ListShells").output)
                return True

            self.assertTrue(session.call("Write", file_path="b.txt", content="x").success)
        self.assertEqual(len(seen), 1)


class CancelTest(SessionTest):
    def test_another_thread_cancels_a_call(self) -> None:
        with self.session() as session:
            cancel = toolcrib.Cancel()
            timer = threading.Timer(0.3, cancel.cancel)
            timer.start()
            reply = session.request("Bash", {"command": "sleep 60"}, cancel=cancel)
            self.assertEqual(reply.error and reply.error.kind, "cancelled")
            timer.join()
            again = session.request("Bash", {"command": "sleep 60"}, cancel=cancel)
            self.assertEqual(again.error and again.error.kind, "cancelled")
            self.assertTrue(session.call("Read", file_path="a.txt").success)

    def test_a_timeout_cancels_the_call(self) -> None:
        with self.session() as session:
            with self.assertRaises(toolcrib.Timeout):
                session.request("Bash", {"command": "sleep 60; touch late"}, timeout=0.3)
            self.assertTrue(session.call("Read", file_path="a.txt").success)
            self.assertFalse((self.ws / "late").exists())

    def test_a_keyboard_interrupt_cancels_the_call(self) -> None:
        # A shell starts programs in the background with this signal ignored. Other launchers block it.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        self.addCleanup(signal.pthread_sigmask, signal.SIG_SETMASK, mask)
        with self.session() as session:
            session.call("Read", file_path="a.txt")
            timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
            timer.start()
            with self.assertRaises(KeyboardInterrupt):
                session.call("Bash", command="sleep 3600")
            timer.join()
            running = session.call("ListShells", running=True).raise_for_error().metadata["shells"]
            self.assertEqual(running, [])
            self.assertTrue(session.call("Read", file_path="a.txt").success)

    def test_interrupts_at_any_time_leave_the_session_intact(self) -> None:
        class Interrupt(Exception):
            pass

        def interrupt(*_signal: object) -> None:
            raise Interrupt

        before = signal.signal(signal.SIGALRM, interrupt)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        chance = random.Random(1)
        text = "0123456789abcdef\n" * 20_000
        interrupts = 0
        with self.session() as session:
            session.call("Read", file_path="a.txt")
            pid = session.pid
            for number in range(150):
                content = text if number % 2 else "short\n"
                try:
                    signal.setitimer(signal.ITIMER_REAL, chance.choice([0.0001, 0.0005, 0.002, 0.005, 0.02]))
                    session.call("Write", file_path=f"f{number}.txt", content=content)
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except Interrupt:
                    interrupts += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            self.assertIn("hello", session.call("Read", file_path="a.txt").output)
            self.assertEqual(session.pid, pid)
        self.assertGreater(interrupts, 10)

    def test_a_signal_handler_may_close_the_session(self) -> None:
        session = self.session()
        before = signal.signal(signal.SIGALRM, lambda *_signal: session.close())
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with self.assertRaises(toolcrib.SessionClosed):
            while True:
                session.call("Read", file_path="a.txt")

    def test_close_ends_running_calls(self) -> None:
        session = self.session()
        session.call("Read", file_path="a.txt")
        errors: list[BaseException] = []

        def call() -> None:
            try:
                session.call("Bash", command="sleep 3600")
            except toolcrib.SessionClosed as error:
                errors.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        time.sleep(0.3)
        session.close()
        thread.join(60)
        self.assertEqual(len(errors), 1)
        self.assertFalse(wait_until(thread.is_alive, 0))


class JobTest(SessionTest):
    def test_a_job_is_an_iterator_of_output(self) -> None:
        with self.session() as session:
            job = session.start_job("for i in 1 2 3; do echo line $i; sleep 0.2; done; exit 3")
            self.assertEqual("".join(job), "line 1\nline 2\nline 3\n")
            self.assertEqual((job.status, job.exit_code), ("failed", 3))

    def test_a_job_can_be_awaited_and_killed(self) -> None:
        with self.session() as session:
            job = session.start_job("echo ready; sleep 3600")
            with self.assertRaises(toolcrib.Timeout):
                job.wait(0.2)
            job.kill()
            job.wait(60)
            self.assertEqual(job.status, "killed")
            with self.assertRaises(toolcrib.NotFound):
                session.job("sh_99").read()


if __name__ == "__main__":
    unittest.main()
