"""verifiers: a runtime for rollouts."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from typing import Any

from toolcrib import AsyncProcess, AsyncSession, ToolcribError

from ._framework import from_package
from ._os_errors import os_errors
from ._run_command import async_run, shell_status

with from_package("verifiers"):
    from verifiers.v1.errors import SandboxError
    from verifiers.v1.runtimes import ProgramResult, Runtime, RuntimeProcess, SubprocessConfig, SubprocessRuntimeInfo


class ToolcribRuntime(Runtime):
    """A box for `agent.run(task, runtime=box)`, on this machine; use it in place of `SubprocessRuntime`.

    Without `root` it is a temporary directory, which `stop` removes. `options` are the arguments of `AsyncSession`. The
    network is on, because the program of the harness calls the model at an address on the loopback of this machine.
    """

    def __init__(self, root: str | os.PathLike[str] | None = None, name: str | None = None, **options: Any) -> None:
        super().__init__(name)
        self.config = SubprocessConfig()
        self.info = SubprocessRuntimeInfo()
        self._root = None if root is None else os.path.abspath(root)
        self._temporary: str | None = None
        self._options = {"network": "all", **options}
        self._session: AsyncSession | None = None
        self._background: list[AsyncProcess] = []

    @property
    def session(self) -> AsyncSession:
        """The session of this box, for `call`, `snapshot`, `restore` and `undo`."""
        if self._session is None:
            raise SandboxError("the runtime is not started")
        return self._session

    async def __aenter__(self) -> ToolcribRuntime:
        await self.start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.stop()

    async def start(self) -> None:
        if self._root is None:
            self._temporary = self._root = tempfile.mkdtemp(prefix="toolcrib-verifiers-")
        self._session = await AsyncSession(self._root, **self._options).__aenter__()
        self.info.id = self._root

    async def teardown(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()
        self.cleanup()

    def cleanup(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def process_env(self, env: dict[str, str]) -> dict[str, str]:
        # The cache of the user is not writable in the sandbox.
        return {"UV_CACHE_DIR": "/tmp/uv-cache", **super().process_env(env)}

    async def run(self, argv: list[str], env: dict[str, str]) -> ProgramResult:
        done = await async_run(self.session, argv, env=self.process_env(env))
        stdout, stderr = done.texts()
        return ProgramResult(exit_code=done.status, stdout=stdout, stderr=stderr)

    async def open_process(self, argv: list[str], env: dict[str, str]) -> RuntimeProcess:
        return _Process(await self.session.spawn(argv, env=self.process_env(env)))

    async def run_background(self, argv: list[str], env: dict[str, str], log: str) -> None:
        redirected = ["sh", "-c", 'exec > "$0" 2>&1; exec "$@"', log, *argv]
        self._background.append(await self.session.spawn(redirected, env=self.process_env(env), stdin=b""))

    async def _read(self, path: str, max_bytes: int | None = None) -> bytes:
        if max_bytes is None:
            with os_errors(path):
                return await self.session.read(path)
        try:
            return await self.session.read(path, limit=max_bytes)
        except ToolcribError as error:
            raise SandboxError(f"read {path!r}: {error}") from error

    async def write(self, path: str, data: bytes) -> None:
        with os_errors(path):
            await self.session.write(path, data)


class _Process(RuntimeProcess):
    def __init__(self, process: AsyncProcess) -> None:
        self._process = process
        self.stdout: AsyncIterator[bytes] = process.stdout
        self.stderr: AsyncIterator[bytes] = process.stderr

    async def write(self, data: bytes) -> None:
        await self._process.stdin.write(data)

    async def wait(self) -> int:
        end = await self._process.wait()
        return shell_status(end.exit_code, end.signal)

    async def poll(self) -> int | None:
        end = self._process.poll()
        return None if end is None else shell_status(end.exit_code, end.signal)

    async def terminate(self) -> None:
        await self._signal("TERM")

    async def kill(self) -> None:
        await self._signal("KILL")

    async def _signal(self, name: str) -> None:
        if self._process.poll() is None:
            await self._process.signal(name)
