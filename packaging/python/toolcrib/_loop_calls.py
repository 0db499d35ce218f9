"""Requests of tasks: sends an operation and waits for its value."""

import asyncio
import contextlib
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from ._loop_connection import LoopConnection
from ._messages import Callback, Event, ProgressMessage, ReplyMessage
from ._operations import Operation, Steps
from .errors import Timeout, ToolcribError
from .results import Progress

T = TypeVar("T")

CANCEL_SECONDS = 5.0
"""Time that a cancelled request has to end before its task goes on."""


class Waiter:
    """Hands the messages about a request to the task that waits for it."""

    def __init__(self) -> None:
        self.inbox: asyncio.Queue[ReplyMessage | ToolcribError | Event] = asyncio.Queue()
        self.ended = asyncio.Event()

    def event(self, event: Event) -> None:
        """Progress."""
        self.inbox.put_nowait(event)

    def callback(self, callback: Callback) -> bool:
        """A question, which gets a task of its own."""
        return False

    def reply(self, reply: ReplyMessage) -> None:
        """The end."""
        self.ended.set()
        self.inbox.put_nowait(reply)

    def lost(self, error: ToolcribError) -> None:
        """The end of the session."""
        self.ended.set()
        self.inbox.put_nowait(error)


class AsyncCalls:
    """The requests of one connection."""

    def __init__(self, connection: LoopConnection) -> None:
        self.connection = connection

    async def run(
        self,
        operation: Operation[T],
        timeout: float | None = None,
        on_progress: Callable[[Progress], Any] | None = None,
    ) -> T:
        """The value of an operation. If the task is cancelled, so is the request, and its end is awaited."""
        waiter = Waiter()
        id = await self.connection.start(operation, waiter)
        try:
            waiting = self._wait(waiter, on_progress)
            reply = await (waiting if timeout is None else asyncio.wait_for(waiting, timeout))
        except BaseException as error:
            if self.connection.cancel(id):
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(waiter.ended.wait(), CANCEL_SECONDS)
            if isinstance(error, asyncio.TimeoutError):
                raise Timeout(f"the call took longer than {timeout} s and was cancelled") from None
            raise
        return operation.finish(reply)

    async def run_steps(self, steps: Steps[T]) -> T:
        """The value of several operations, one after the other."""
        value: Any = None
        try:
            while True:
                value = await self.run(steps.send(value))
        except StopIteration as end:
            result: T = end.value
            return result

    async def _wait(self, waiter: Waiter, on_progress: Callable[[Progress], Any] | None) -> ReplyMessage:
        while True:
            item = await waiter.inbox.get()
            match item:
                case ReplyMessage():
                    return item
                case ToolcribError():
                    raise item
                case ProgressMessage():
                    if on_progress is not None:
                        seen = on_progress(item.progress)
                        if inspect.isawaitable(seen):
                            await seen
                case _:
                    pass
