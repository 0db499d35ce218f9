"""Commands of an OpenAI sandbox session that go on while the agent works."""

from __future__ import annotations

import asyncio
import time
from collections import deque

from agents.sandbox.errors import PtySessionNotFoundError
from agents.sandbox.session.pty_output import collect_pty_output
from agents.sandbox.session.pty_types import (
    PTY_PROCESSES_MAX,
    PtyExecUpdate,
    allocate_pty_process_id,
    clamp_pty_yield_time_ms,
    process_id_to_prune_from_meta,
    resolve_pty_write_yield_time_ms,
)
from toolcrib import AsyncProcess, ToolcribError

from ._run_command import shell_status


class RunningCommands:
    """The commands by the number that the model gives to `write_stdin`."""

    def __init__(self) -> None:
        self._commands: dict[int, _Command] = {}

    async def start(
        self, process: AsyncProcess, tty: bool, yield_time_s: float | None, max_output_tokens: int | None
    ) -> PtyExecUpdate:
        if len(self._commands) >= PTY_PROCESSES_MAX:
            meta = [(key, each.last_used, each.has_ended.is_set()) for key, each in self._commands.items()]
            oldest = process_id_to_prune_from_meta(meta)
            if oldest is not None:
                await self._commands.pop(oldest).process.stop()
        number = allocate_pty_process_id(set(self._commands))
        self._commands[number] = _Command(process, tty)
        milliseconds = clamp_pty_yield_time_ms(10_000 if yield_time_s is None else int(yield_time_s * 1000))
        return await self._update(number, milliseconds, max_output_tokens)

    async def write(
        self, number: int, chars: str, yield_time_s: float | None, max_output_tokens: int | None
    ) -> PtyExecUpdate:
        if number not in self._commands:
            raise PtySessionNotFoundError(session_id=number)
        command = self._commands[number]
        if chars and not command.has_ended.is_set():
            if not command.tty:
                raise RuntimeError("stdin is not available for this process")
            await command.process.stdin.write(chars)
        milliseconds = resolve_pty_write_yield_time_ms(
            yield_time_ms=250 if yield_time_s is None else int(yield_time_s * 1000), input_empty=not chars
        )
        return await self._update(number, milliseconds, max_output_tokens)

    async def end_all(self) -> None:
        commands, self._commands = self._commands, {}
        for command in commands.values():
            await command.process.stop()
            await command.reading

    async def _update(self, number: int, milliseconds: int, max_output_tokens: int | None) -> PtyExecUpdate:
        command = self._commands[number]
        command.last_used = time.monotonic()
        output, tokens, is_complete = await collect_pty_output(
            output_chunks=command.chunks,
            output_lock=command.lock,
            output_notify=command.changed,
            is_done=command.has_ended.is_set,
            yield_time_ms=milliseconds,
            max_output_tokens=max_output_tokens,
        )
        if not is_complete:
            return PtyExecUpdate(number, output, None, tokens)
        self._commands.pop(number, None)
        end = command.process.poll()
        code = -1 if end is None else shell_status(end.exit_code, end.signal)
        return PtyExecUpdate(None, output, code, tokens)


class _Command:
    def __init__(self, process: AsyncProcess, tty: bool) -> None:
        self.process = process
        self.tty = tty
        self.last_used = time.monotonic()
        self.chunks: deque[bytes] = deque()
        self.lock = asyncio.Lock()
        self.changed = asyncio.Event()
        self.has_ended = asyncio.Event()
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            async for _, data in self.process.output():
                async with self.lock:
                    self.chunks.append(data)
                self.changed.set()
        except ToolcribError:
            pass  # The command was ended, or the session is closed.
        finally:
            self.has_ended.set()
            self.changed.set()
