"""deepagents: a sandbox backend."""

from __future__ import annotations

from toolcrib import Session, ToolcribError

from ._framework import from_package
from ._run_command import run

with from_package("deepagents"):
    from deepagents.backends.protocol import (
        ExecuteResponse,
        FileDownloadResponse,
        FileUploadResponse,
        WriteResult,
    )
    from deepagents.backends.sandbox import BaseSandbox

_FILE_ERRORS = {
    "not_found": "file_not_found",
    "is_directory": "is_directory",
    "not_a_directory": "invalid_path",
    "invalid": "invalid_path",
    "permission": "permission_denied",
    "denied": "permission_denied",
    "protected": "permission_denied",
    "hidden": "permission_denied",
    "outside_workspace": "permission_denied",
}


class ToolcribBackend(BaseSandbox):
    """Runs commands and changes files in a session; use it in place of `LocalShellBackend`.

    `timeout` ends commands for which the agent gives none, in seconds.
    """

    def __init__(self, session: Session, *, timeout: float | None = 120) -> None:
        self._session = session
        self._timeout = timeout
        self._id = f"toolcrib:{session.info().roots[0]}"

    @property
    def id(self) -> str:
        return self._id

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Runs a bash command. A `timeout` of 0 means none."""
        seconds = self._timeout if timeout is None else timeout or None
        done = run(self._session, command, timeout=seconds)
        output = done.both.decode(errors="replace")
        if done.timed_out:
            return ExecuteResponse(output=f"{output}\nThe command was ended after {seconds:g} s.", exit_code=124)
        return ExecuteResponse(output=output, exit_code=done.status)

    def write(self, file_path: str, content: str) -> WriteResult:
        try:
            self._session.write(file_path, content.encode())
        except ToolcribError as error:
            return WriteResult(error=f"Failed to write file '{file_path}': {error}")
        return WriteResult(path=file_path)

    async def awrite(self, file_path: str, content: str) -> WriteResult:
        (response,) = await self.aupload_files([(file_path, content.encode())])
        if response.error:
            return WriteResult(error=f"Failed to write file '{file_path}': {response.error}")
        return WriteResult(path=file_path)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return [FileUploadResponse(path=path, error=self._upload(path, content)) for path, content in files]

    def _upload(self, path: str, content: bytes) -> str | None:
        if not path.startswith("/"):
            return "invalid_path"
        try:
            self._session.write(path, content)
        except ToolcribError as error:
            return _FILE_ERRORS.get(error.kind, error.message)
        return None

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return [self._download(path) for path in paths]

    def _download(self, path: str) -> FileDownloadResponse:
        if not path.startswith("/"):
            return FileDownloadResponse(path=path, error="invalid_path")
        try:
            return FileDownloadResponse(path=path, content=self._session.read(path))
        except ToolcribError as error:
            return FileDownloadResponse(path=path, error=_FILE_ERRORS.get(error.kind, error.message))
