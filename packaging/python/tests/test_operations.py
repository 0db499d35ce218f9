"""Raw operations: commands, files, snapshots."""

import os
import stat
import subprocess
import threading
import time
import unittest
from typing import Any

from support import SessionTest, needs_operations, toolcrib
from toolcrib.program import locate_program


class ExecTest(SessionTest):
    @needs_operations
    def test_arguments_are_not_interpreted_and_output_is_exact(self) -> None:
        with self.session() as session:
            done = session.exec(["printf", "%s|", "a b", "$HOME", "*"])
            self.assertEqual((done.exit_code, done.stdout, done.stderr), (0, b"a b|$HOME|*|", b""))
            self.assertTrue(done.success)
            done = session.exec(["cat"], stdin=bytes(range(256)))
            self.assertEqual(done.stdout, bytes(range(256)))

    @needs_operations
    def test_a_text_is_run_by_bash(self) -> None:
        with self.session() as session:
            done = session.exec("echo out; echo err >&2; exit 3")
            self.assertEqual((done.exit_code, done.stdout, done.stderr), (3, b"out\n", b"err\n"))
            with self.assertRaisesRegex(toolcrib.CommandFailed, "exited with 3"):
                done.check()

    @needs_operations
    def test_directory_and_variables_can_be_given(self) -> None:
        (self.ws / "sub").mkdir()
        with self.session() as session:
            done = session.exec('pwd; echo "$WORD"', cwd="sub", env={"WORD": "a  b"})
            self.assertEqual(done.text, f"{self.ws / 'sub'}\na  b\n")

    @needs_operations
    def test_a_missing_program_exits_with_127(self) -> None:
        with self.session() as session:
            done = session.exec(["no-such-program-here"])
            self.assertEqual(done.exit_code, 127)
            self.assertIn(b"no-such-program-here", done.stderr)

    @needs_operations
    def test_a_timeout_kills_all_processes_and_keeps_the_output(self) -> None:
        with self.session() as session:
            done = session.exec("echo before; sleep 3600 & sleep 3600", timeout=1)
            self.assertTrue(done.timed_out)
            self.assertEqual((done.exit_code, done.stdout), (None, b"before\n"))
            self.assertIn(done.signal, (9, 15))

    @needs_operations
    def test_chunks_are_passed_on_while_the_command_runs(self) -> None:
        with self.session() as session:
            out: list[bytes] = []
            err: list[bytes] = []
            done = session.exec(
                "for i in 1 2 3; do echo o$i; echo e$i >&2; done", on_stdout=out.append, on_stderr=err.append
            )
            self.assertEqual((b"".join(out), b"".join(err)), (b"o1\no2\no3\n", b"e1\ne2\ne3\n"))
            self.assertEqual((done.stdout, done.stderr), (b"o1\no2\no3\n", b"e1\ne2\ne3\n"))
            self.assertEqual(session.exec("echo x", on_stdout=out.append, capture=False).stdout, b"")

    @needs_operations
    def test_much_output_is_complete(self) -> None:
        with self.session() as session:
            done = session.exec(["seq", "1", "1000000"])
            self.assertEqual(done.stdout, b"".join(b"%d\n" % i for i in range(1, 1_000_001)))

    @needs_operations
    def test_output_beyond_the_limit_ends_the_command(self) -> None:
        with self.session() as session:
            with self.assertRaises(toolcrib.LimitExceeded):
                session.exec(["yes"], max_output=1 << 20)
            self.assertEqual(session.exec(["true"]).exit_code, 0)

    @needs_operations
    def test_an_exception_in_a_callback_ends_the_command(self) -> None:
        with self.session() as session:
            with self.assertRaises(ZeroDivisionError):
                session.exec("echo x; sleep 3600", on_stdout=lambda _data: 1 / 0)
            self.assertEqual(session.exec(["true"]).exit_code, 0)

    @needs_operations
    def test_a_command_can_be_cancelled(self) -> None:
        with self.session() as session:
            cancel = toolcrib.Cancel()
            with self.assertRaises(toolcrib.Cancelled):
                session.exec("echo x; sleep 3600", on_stdout=lambda _data: cancel.cancel(), cancel=cancel)

    @needs_operations
    def test_changes_of_a_command_can_be_undone(self) -> None:
        with self.session() as session:
            done = session.exec("echo new > a.txt")
            self.assertIsInstance(done.change, int)
            session.undo(id=done.change)
            self.assertEqual((self.ws / "a.txt").read_text(), "hello\n")

    @needs_operations
    def test_no_change_is_not_the_last_change(self) -> None:
        with self.session() as session:
            session.exec("echo new > a.txt")
            nothing = session.exec("true").change
            self.assertIsNone(nothing)
            with self.assertRaisesRegex(TypeError, "id is None"):
                session.undo(id=nothing)
            with self.assertRaisesRegex(TypeError, "since is None"):
                session.undo(since=nothing)
            self.assertEqual((self.ws / "a.txt").read_text(), "new\n")
            session.undo()
            self.assertEqual((self.ws / "a.txt").read_text(), "hello\n")

    @needs_operations
    def test_refused_accesses_are_named(self) -> None:
        with self.session() as session:
            done = session.exec(["touch", "/etc/toolcrib-test"])
            self.assertNotEqual(done.exit_code, 0)
            self.assertTrue(any("/etc/toolcrib-test" in one for one in done.refused), done.refused)

    @needs_operations
    def test_an_empty_command_is_refused(self) -> None:
        with self.session() as session:
            for command in ("", []):
                with self.assertRaises(toolcrib.InvalidArgument):
                    session.exec(command)

    @needs_operations
    def test_a_missing_directory_is_an_error(self) -> None:
        with self.session() as session:
            with self.assertRaises(toolcrib.NotFound):
                session.exec(["true"], cwd="missing")

    @needs_operations
    def test_an_approver_is_asked_about_a_command(self) -> None:
        asked: list[toolcrib.Approval] = []
        with self.session(profile="cautious", approver=lambda one: asked.append(one) or "no") as session:
            with self.assertRaises(toolcrib.Denied):
                session.exec("touch b.txt")
            with self.assertRaises(toolcrib.Denied):
                session.spawn(["touch", "b.txt"])
            self.assertIn("touch b.txt", asked[0].command or "")
            self.assertFalse((self.ws / "b.txt").exists())


class ProcessTest(SessionTest):
    @needs_operations
    def test_a_dialogue_with_a_process(self) -> None:
        with self.session() as session, session.spawn(["cat"]) as process:
            for word in (b"one\n", b"two\n"):
                process.stdin.write(word)
                self.assertEqual(next(process.stdout), word)
            self.assertIsNone(process.poll())
            with self.assertRaises(toolcrib.Timeout):
                process.wait(0.1)
            process.stdin.close()
            self.assertEqual(process.wait(60).exit_code, 0)
            self.assertEqual(list(process.stdout), [])

    @needs_operations
    def test_much_input_passes(self) -> None:
        data = os.urandom(5 << 20)
        with self.session() as session, session.spawn(["wc", "-c"]) as process:
            process.stdin.write(data)
            process.stdin.close()
            self.assertEqual(process.stdout.read().strip(), b"%d" % len(data))

    @needs_operations
    def test_signals_reach_the_processes(self) -> None:
        with self.session() as session:
            process = session.spawn("trap 'echo caught; exit 5' TERM; echo ready; while :; do sleep 0.1; done")
            self.assertEqual(next(process.stdout), b"ready\n")
            process.signal("TERM")
            self.assertEqual(process.stdout.read(), b"caught\n")
            self.assertEqual(process.wait(60).exit_code, 5)
            process = session.spawn(["sleep", "3600"])
            process.kill()
            self.assertEqual(process.wait(60).signal, 9)
            process.kill()

    @needs_operations
    def test_a_terminal_has_a_size_and_can_be_resized(self) -> None:
        with self.session() as session:
            with session.spawn("stty size; read x; stty size", pty=(40, 100)) as process:
                seen = next(process.stdout)
                self.assertEqual(seen.strip(), b"40 100")
                process.resize(50, 120)
                process.stdin.write(b"\n")
                self.assertIn(b"50 120", process.stdout.read())

    @needs_operations
    def test_streams_can_be_read_by_two_threads(self) -> None:
        with self.session() as session:
            process = session.spawn("for i in $(seq 100); do echo o; echo e >&2; done")
            seen: list[bytes] = []
            thread = threading.Thread(target=lambda: seen.append(process.stderr.read()))
            thread.start()
            self.assertEqual(process.stdout.read(), b"o\n" * 100)
            thread.join(60)
            self.assertEqual(seen, [b"e\n" * 100])

    @needs_operations
    def test_the_end_of_the_block_ends_the_process(self) -> None:
        with self.session() as session:
            with session.spawn("sleep 3600; touch late") as process:
                pass
            with self.assertRaises(toolcrib.Cancelled):
                process.wait(60)

    @needs_operations
    def test_the_end_of_the_session_ends_the_process(self) -> None:
        with self.session() as session:
            process = session.spawn(["sleep", "3600"])
        with self.assertRaises(toolcrib.SessionClosed):
            process.wait(60)


class FileTest(SessionTest):
    @needs_operations
    def test_bytes_are_exact(self) -> None:
        data = bytes(range(256)) * 10
        with self.session() as session:
            written = session.write("sub/b.bin", data)
            self.assertTrue(written.created)
            self.assertEqual((self.ws / "sub/b.bin").read_bytes(), data)
            self.assertEqual(session.read("sub/b.bin"), data)
            self.assertEqual(session.read("sub/b.bin", offset=10, limit=5), data[10:15])
            self.assertEqual(session.read("sub/b.bin", offset=99_999), b"")
            self.assertEqual(session.read("sub/b.bin", limit=0), b"")
            self.assertFalse(session.write("sub/b.bin", b"end", append=True).created)
            self.assertEqual(session.read("sub/b.bin"), data + b"end")
            session.write("empty", b"")
            self.assertEqual(session.read("empty"), b"")

    @needs_operations
    def test_other_types_are_refused_before_anything_is_sent(self) -> None:
        with self.session() as session:
            session.write("keep.bin", bytearray(b"keep"))
            session.write("keep.bin", memoryview(b" this"), append=True)
            wrong: list[Any] = [5, [1, 2], None, {"a": 1}, True]
            for data in wrong:
                with self.assertRaisesRegex(TypeError, "`data` must be bytes or text, not "):
                    session.write("keep.bin", data)
                with self.assertRaisesRegex(TypeError, "`stdin` must be bytes or text, not "):
                    session.exec(["touch", "ran"], stdin=data)
                if data is not None:
                    with self.assertRaisesRegex(TypeError, "`stdin` must be bytes or text, not "):
                        session.spawn(["touch", "ran"], stdin=data)
            with session.spawn(["cat"]) as process:
                with self.assertRaisesRegex(TypeError, "`data` must be bytes or text, not int"):
                    process.stdin.write(wrong[0])
                process.stdin.close()
                self.assertEqual(process.stdout.read(), b"")
            self.assertEqual(session.read("keep.bin"), b"keep this")
            self.assertFalse((self.ws / "ran").exists())

    @needs_operations
    def test_large_files_are_read_and_written_in_parts(self) -> None:
        data = os.urandom(1 << 20) * 40
        with self.session() as session:
            change = session.write("large", data).change
            self.assertEqual(session.stat("large").size, len(data))
            self.assertEqual(session.read("large"), data)
            self.assertEqual(session.read("large", offset=5, limit=20 << 20), data[5 : 5 + (20 << 20)])
            session.undo(since=change)
            self.assertFalse((self.ws / "large").exists())

    @needs_operations
    def test_executable_sets_the_mode(self) -> None:
        with self.session() as session:
            session.write("run.sh", "#!/bin/sh\necho ran\n", executable=True)
            self.assertEqual(session.exec(["./run.sh"]).stdout, b"ran\n")
            session.write("run.sh", "#!/bin/sh\necho again\n")
            self.assertTrue(stat.S_IXUSR & session.stat("run.sh").mode)
            session.write("run.sh", "", executable=False)
            self.assertFalse(stat.S_IXUSR & session.stat("run.sh").mode)

    @needs_operations
    def test_paths_are_described_and_listed(self) -> None:
        (self.ws / "sub").mkdir()
        os.symlink("a.txt", self.ws / "link")
        with self.session() as session:
            self.assertEqual((session.stat("a.txt").kind, session.stat("a.txt").size), ("file", 6))
            self.assertEqual(session.stat("a.txt").modified_ns, (self.ws / "a.txt").stat().st_mtime_ns)
            self.assertEqual(session.stat("sub").kind, "directory")
            self.assertEqual(session.stat("link").kind, "file")
            self.assertEqual((session.stat("link", follow=False).kind, session.stat("link", follow=False).target),
                             ("symlink", "a.txt"))
            entries = session.list()
            self.assertEqual([(one.name, one.kind) for one in entries],
                             [("a.txt", "file"), ("link", "symlink"), ("sub", "directory")])
            self.assertFalse(entries.truncated)
            self.assertEqual(session.realpath("link"), str(self.ws / "a.txt"))

    @needs_operations
    def test_directories_are_made_moved_and_removed(self) -> None:
        with self.session() as session:
            self.assertTrue(session.mkdir("x/y"))
            self.assertFalse(session.mkdir("x/y"))
            session.write("x/y/f", b"1")
            session.move("x", "z")
            self.assertEqual(session.read("z/y/f"), b"1")
            with self.assertRaises(toolcrib.NotEmpty):
                session.remove("z")
            self.assertEqual(session.remove("z", recursive=True), 3)
            self.assertEqual(session.remove("z", missing_ok=True), 0)

    @needs_operations
    def test_errors_have_classes(self) -> None:
        (self.ws / "sub").mkdir()
        with self.session() as session:
            for error, function in (
                (toolcrib.NotFound, lambda: session.read("missing")),
                (toolcrib.NotFound, lambda: session.stat("missing")),
                (toolcrib.NotFound, lambda: session.remove("missing")),
                (toolcrib.IsDirectory, lambda: session.read("sub")),
                (toolcrib.NotADirectory, lambda: session.list("a.txt")),
                (toolcrib.AlreadyExists, lambda: session.mkdir("sub", exist_ok=False)),
                (toolcrib.NotFound, lambda: session.mkdir("p/q", parents=False)),
                (toolcrib.AlreadyExists, lambda: session.move("a.txt", "sub")),
                (toolcrib.Denied, lambda: session.write("/etc/toolcrib-test", b"x")),
            ):
                with self.assertRaises(error) as caught:
                    function()
                self.assertTrue(caught.exception.message)

    @needs_operations
    def test_the_tmp_of_the_session_is_shared_with_commands(self) -> None:
        with self.session() as session:
            session.write("/tmp/from-python", b"x")
            self.assertEqual(session.exec(["cat", "/tmp/from-python"]).stdout, b"x")


class SnapshotTest(SessionTest):
    @needs_operations
    def test_restore_reverts_tools_commands_and_raw_writes(self) -> None:
        with self.session() as session:
            session.write("kept.txt", b"kept")
            snapshot = session.snapshot()
            session.write("a.txt", b"raw")
            session.call("Write", file_path="tool.txt", content="tool").raise_for_error()
            session.exec("mkdir d; echo command > d/command.txt; rm kept.txt")
            restored = session.restore(snapshot)
            self.assertEqual(len(restored.undone), 3)
            self.assertEqual(sorted(one.name for one in self.ws.iterdir() if one.is_file()), ["a.txt", "kept.txt"])
            self.assertEqual((self.ws / "a.txt").read_text(), "hello\n")
            self.assertEqual(session.restore(snapshot).undone, ())

    @needs_operations
    def test_a_restore_after_an_edit_by_others_is_a_conflict(self) -> None:
        with self.session() as session:
            snapshot = session.snapshot()
            session.write("a.txt", b"mine\n")
            time.sleep(0.02)
            (self.ws / "a.txt").write_text("yours\n")
            with self.assertRaises(toolcrib.Conflict):
                session.restore(snapshot)
            self.assertEqual((self.ws / "a.txt").read_text(), "yours\n")

    @needs_operations
    def test_a_raw_write_can_be_undone(self) -> None:
        with self.session() as session:
            change = session.write("a.txt", b"raw").change
            self.assertEqual(session.history()[0].id, change)
            session.undo()
            self.assertEqual((self.ws / "a.txt").read_text(), "hello\n")


class InfoTest(SessionTest):
    @needs_operations
    def test_info_describes_the_session(self) -> None:
        with self.session() as session:
            info = session.info()
            self.assertEqual((info.protocol, info.roots), (1, (str(self.ws),)))
            self.assertRegex(info.version, r"^\d+\.\d+")
            self.assertTrue(info.tmp.startswith("/"))
            self.assertIsInstance(info.sandbox_level, int)

    @needs_operations
    def test_the_network_option_is_accepted(self) -> None:
        help = subprocess.run([locate_program(None), "--help"], capture_output=True, text=True, check=True)
        if "--network-access" not in help.stdout:
            self.skipTest("the program has no option --network-access")
        with self.session(network="none") as session:
            self.assertTrue(session.call("Read", file_path="a.txt").success)


if __name__ == "__main__":
    unittest.main()
