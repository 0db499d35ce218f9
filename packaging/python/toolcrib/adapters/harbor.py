"""Harbor: an environment for trials on this machine."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import Any

from toolcrib import AsyncSession
from toolcrib.program import locate_program

from ._framework import from_package
from ._host_files import async_download_directory, async_upload
from ._os_errors import os_errors
from ._run_command import async_run

with from_package("harbor"):
    from harbor.environments.base import BaseEnvironment, ExecResult
    from harbor.environments.capabilities import EnvironmentCapabilities
    from harbor.environments.definition import COMPOSE_FILE_NAME, DOCKERFILE_NAME

_TASK_DIRECTORIES = ["/logs/agent", "/logs/verifier", "/logs/artifacts", "/tests", "/solution", "/harbor"]


class ToolcribEnvironment(BaseEnvironment):
    """Runs a trial in a session: `EnvironmentConfig(import_path="toolcrib.adapters.harbor:ToolcribEnvironment")`.

    The programs are those of this machine; the image of the task is not used, and commands run as the current user. The
    files in `environment/` are copied into the working directory. `/logs`, `/tests`, `/solution` and the working
    directory belong to the trial: bubblewrap (`bwrap`) mounts them. `EnvironmentConfig.kwargs` can have the arguments
    `profile`, `rules`, `binary` and `extra_args` of `AsyncSession`.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        known = {name: options.pop(name) for name in ("profile", "rules", "binary", "extra_args") if name in options}
        super().__init__(*arguments, **options)
        self._options = known
        self._workdir = self.task_env_config.workdir or "/app"
        self._files: str | None = None
        self._session: AsyncSession | None = None

    @staticmethod
    def type() -> str:
        return "toolcrib"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True)

    @classmethod
    def preflight(cls) -> None:
        if shutil.which("bwrap") is None:
            raise SystemExit("the Toolcrib environment needs bubblewrap: install the package `bubblewrap`")

    def _validate_definition(self) -> None:
        if (self.environment_dir / COMPOSE_FILE_NAME).exists():
            raise ValueError("the Toolcrib environment does not run Docker Compose tasks")

    @property
    def session(self) -> AsyncSession:
        """The session of the trial, for `call`, `snapshot`, `restore` and `undo`."""
        if self._session is None:
            raise RuntimeError("the environment is not started")
        return self._session

    async def start(self, force_build: bool) -> None:
        self.preflight()
        self._files = tempfile.mkdtemp(prefix="toolcrib-harbor-")
        tops = sorted({_top(path) for path in [*_TASK_DIRECTORIES, self._workdir]})
        for path in [*_TASK_DIRECTORIES, self._workdir]:
            os.makedirs(f"{self._files}/root{path}", exist_ok=True)
        network = "none" if self._network_disabled else "all"
        options = {"network": network, **self._options, "binary": self._wrapper(tops)}
        roots = [self._workdir, *(top for top in tops if top != _top(self._workdir))]
        self._session = await AsyncSession(roots, state=f"{self._files}/state", **options).__aenter__()
        if self._enable_environment_dir_upload and self.environment_dir.is_dir():
            await async_upload(self._session, self.environment_dir, self._workdir)
            await self._session.remove(f"{self._workdir}/{DOCKERFILE_NAME}", missing_ok=True)

    def _wrapper(self, tops: list[str]) -> str:
        """A program that starts Toolcrib where `tops` belong to the trial, and other directories are shared."""
        command = ["bwrap", "--die-with-parent", "--bind", f"{self._files}/root", "/"]
        for name in sorted(os.listdir("/")):
            if os.path.isdir(f"/{name}") and f"/{name}" not in tops:
                command += ["--dev-bind", f"/{name}", f"/{name}"]
        command += ["--ro-bind", locate_program(self._options.get("binary")), "/.toolcrib"]
        path = Path(f"{self._files}/toolcrib")
        path.write_text(f'#!/bin/sh\nexec {shlex.join([*command, "--", "/.toolcrib"])} "$@"\n')
        path.chmod(0o700)
        return str(path)

    async def stop(self, delete: bool) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()
        files = self._files
        if delete and files is not None:
            self._files = None
            await asyncio.to_thread(shutil.rmtree, files, ignore_errors=True)

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        done = await async_run(self.session, command, cwd=cwd, env=self._merge_env(env), timeout=timeout_sec)
        stdout, stderr = done.texts()
        if done.timed_out:
            return ExecResult(stdout=stdout, stderr=f"{stderr}\nended after {timeout_sec} s", return_code=124)
        return ExecResult(stdout=stdout, stderr=stderr, return_code=done.status)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        with os_errors(target_path):
            await async_upload(self.session, source_path, target_path)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        with os_errors(target_dir):
            await async_upload(self.session, source_dir, target_dir)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        with os_errors(source_path):
            content = await self.session.read(source_path)
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        Path(target_path).write_bytes(content)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        with os_errors(source_dir):
            await async_download_directory(self.session, source_dir, target_dir)


def _top(path: str) -> str:
    """The first directory of an absolute path."""
    return "/" + path.split("/")[1]
