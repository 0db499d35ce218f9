"""SWE-ReX: the runtime, with the requests that SWE-agent makes."""

import tempfile
import unittest
from pathlib import Path

from swerex.exceptions import (
    BashIncorrectSyntaxError,
    CommandTimeoutError,
    DeploymentNotStartedError,
    NonZeroExitCodeError,
    SessionDoesNotExistError,
    SessionExistsError,
)
from swerex.runtime.abstract import (
    BashAction,
    BashInterruptAction,
    CloseBashSessionRequest,
    Command,
    CreateBashSessionRequest,
    ReadFileRequest,
    UploadRequest,
    WriteFileRequest,
)
from toolcrib.adapters.swe_rex import ToolcribDeployment


class SweRex(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.outside = Path(temporary.name)
        self.root = self.outside / "project"
        self.root.mkdir()
        self.deployment = ToolcribDeployment(self.root)
        with self.assertRaises(DeploymentNotStartedError):
            self.deployment.runtime
        self.assertFalse(await self.deployment.is_alive())
        await self.deployment.start()
        self.runtime = self.deployment.runtime
        self.assertTrue(await self.deployment.is_alive())

    async def asyncTearDown(self) -> None:
        await self.deployment.stop()
        self.assertFalse(await self.deployment.is_alive())

    async def output(self, command: str, session: str = "default") -> str:
        return (await self.runtime.run_in_session(BashAction(command=command, session=session))).output

    async def test_state_of_a_session_carries_over(self) -> None:
        (self.root / "start.sh").write_text("echo sourced; FROM_START=1\n")
        started = await self.runtime.create_session(
            CreateBashSessionRequest(startup_source=[str(self.root / "start.sh")], startup_timeout=60)
        )
        self.assertEqual(started.output, "sourced\n")
        await self.output("mkdir sub && cd sub; export EXPORTED='a b'; plain=2; f() { echo function; }; alias g=f")
        self.assertEqual(
            await self.output("pwd; echo $FROM_START $EXPORTED $plain; f; g"),
            f"{self.root}/sub\n1 a b 2\nfunction\nfunction\n",
        )
        self.assertEqual(await self.output("echo out; echo err >&2"), "out\nerr\n")
        await self.runtime.create_session(CreateBashSessionRequest(session="other"))
        self.assertEqual(await self.output("pwd; echo $plain", "other"), f"{self.root}\n\n")
        with self.assertRaises(SessionExistsError):
            await self.runtime.create_session(CreateBashSessionRequest())
        await self.runtime.close_session(CloseBashSessionRequest())
        with self.assertRaises(SessionDoesNotExistError):
            await self.output("true")

    async def test_exit_codes(self) -> None:
        await self.runtime.create_session(CreateBashSessionRequest())
        silent = await self.runtime.run_in_session(BashAction(command="(exit 3)", check="silent"))
        self.assertEqual(silent.exit_code, 3)
        ignored = await self.runtime.run_in_session(BashAction(command="false", check="ignore"))
        self.assertIsNone(ignored.exit_code)
        with self.assertRaises(NonZeroExitCodeError):
            await self.output("ls /does-not-exist")
        with self.assertRaises(BashIncorrectSyntaxError):
            await self.output("touch made; if")
        self.assertFalse((self.root / "made").exists())

    async def test_timeout_keeps_the_session(self) -> None:
        await self.runtime.create_session(CreateBashSessionRequest())
        await self.output("kept=1")
        with self.assertRaisesRegex(CommandTimeoutError, "begun"):
            await self.runtime.run_in_session(BashAction(command="echo begun; sleep 3600", timeout=10))
        await self.runtime.run_in_session(BashInterruptAction())
        self.assertEqual(await self.output("echo $kept"), "1\n")

    async def test_execute(self) -> None:
        done = await self.runtime.execute(Command(command=["sh", "-c", "printf out; printf err >&2; exit 4"]))
        self.assertEqual((done.stdout, done.stderr, done.exit_code), ("out", "err", 4))
        merged = await self.runtime.execute(
            Command(command="printf $NAME; printf err >&2", shell=True, env={"NAME": "n"}, merge_output_streams=True)
        )
        self.assertEqual((sorted(merged.stdout), merged.stderr), (sorted("nerr"), ""))
        with self.assertRaises(NonZeroExitCodeError):
            await self.runtime.execute(Command(command=["false"], check=True))
        with self.assertRaises(CommandTimeoutError):
            await self.runtime.execute(Command(command=["sleep", "3600"], timeout=1))
        await self.runtime.execute(Command(command=["touch", str(self.outside / "escaped")]))
        self.assertFalse((self.outside / "escaped").exists())

    async def test_files(self) -> None:
        path = str(self.root / "sub" / "a.txt")
        await self.runtime.write_file(WriteFileRequest(path=path, content="é\n"))
        self.assertEqual((await self.runtime.read_file(ReadFileRequest(path=path))).content, "é\n")
        with self.assertRaises(FileNotFoundError):
            await self.runtime.read_file(ReadFileRequest(path=str(self.root / "missing")))
        source = self.outside / "upload"
        (source / "bin").mkdir(parents=True)
        (source / "bin" / "run").write_text("#!/bin/sh\necho ran\n")
        (source / "bin" / "run").chmod(0o755)
        await self.runtime.upload(UploadRequest(source_path=str(source), target_path=str(self.root / "tools")))
        ran = await self.runtime.execute(Command(command=["tools/bin/run"]))
        self.assertEqual(ran.stdout, "ran\n")
        await self.runtime.upload(UploadRequest(source_path=path, target_path=str(self.root / "b.txt")))
        self.assertEqual((self.root / "b.txt").read_text(), "é\n")


if __name__ == "__main__":
    unittest.main()
