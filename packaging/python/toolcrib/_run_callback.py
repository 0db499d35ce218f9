"""Runs functions of the user in threads."""

import asyncio
import inspect
import threading
from collections.abc import Awaitable
from typing import Any

from ._callbacks import Task


def run_callback(task: Task) -> list[bytes]:
    """Runs a task in this thread. Returns the bytes to send."""
    try:
        value = task.function()
        if inspect.isawaitable(value):
            value = _run_to_end(value)
        return task.finished(value)
    except Exception as error:
        return task.failed(error)


def _run_to_end(awaitable: Awaitable[Any]) -> Any:
    async def result() -> Any:
        return await awaitable

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(result())
    # This thread has a running loop, and a loop cannot be run within another.
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.extend([True, asyncio.run(result())])
        except BaseException as error:
            outcome.extend([False, error])

    thread = threading.Thread(target=run, name="toolcrib-callback", daemon=True)
    thread.start()
    thread.join()
    if outcome[0]:
        return outcome[1]
    raise outcome[1]
