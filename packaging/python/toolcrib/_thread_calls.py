"""Requests of threads: sends an operation and waits for its value."""

import contextlib
import queue
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

from ._callbacks import Callbacks
from ._messages import Callback, Event, Invocation, ProgressMessage, Question, ReplyMessage
from ._operations import Operation, Steps
from ._run_callback import run_callback
from ._thread_connection import ThreadConnection
from .cancel import Cancel
from .errors import Timeout, ToolcribError
from .results import Progress

T = TypeVar("T")

CANCEL_SECONDS = 5.0
"""Time that a cancelled request has to end before its caller goes on."""


class Waiter:
    """Hands the messages about a request to the thread that waits for it."""

    def __init__(self) -> None:
        self.inbox: queue.SimpleQueue[ReplyMessage | ToolcribError | Event | Callback] = queue.SimpleQueue()

    def event(self, event: Event) -> None:
        """Progress."""
        self.inbox.put(event)

    def callback(self, callback: Callback) -> bool:
        """A question, which the waiting thread answers."""
        self.inbox.put(callback)
        return True

    def reply(self, reply: ReplyMessage) -> None:
        """The end."""
        self.inbox.put(reply)

    def lost(self, error: ToolcribError) -> None:
        """The end of the session."""
        self.inbox.put(error)


class Calls:
    """The requests of one connection."""

    def __init__(self, connection: ThreadConnection, callbacks: Callbacks) -> None:
        self.connection = connection
        self._callbacks = callbacks

    def run(
        self,
        operation: Operation[T],
        timeout: float | None = None,
        cancel: Cancel | None = None,
        on_progress: Callable[[Progress], object] | None = None,
    ) -> T:
        """The value of an operation. An exception in this thread cancels the request and waits for its end."""
        waiter = Waiter()
        id = self.connection.new_id()
        try:
            self.connection.start(id, operation, waiter)
            with self.cancelled_by(cancel, id):
                return operation.finish(self._wait(waiter, timeout, on_progress))
        except BaseException:
            if self.connection.cancel(id):
                _wait_for_end(waiter)
            raise

    def run_steps(self, steps: Steps[T]) -> T:
        """The value of several operations, one after the other."""
        value: Any = None
        try:
            while True:
                value = self.run(steps.send(value))
        except StopIteration as end:
            result: T = end.value
            return result

    def run_callback(self, callback: Callback) -> None:
        """Runs a function of the user in this thread and sends its outcome."""
        self.connection.send(run_callback(self._callbacks.task(callback)))
        # The function may have forked, and in the fork there is nobody to wait for.
        if self.connection.error is not None:
            raise self.connection.error

    @contextmanager
    def cancelled_by(self, cancel: Cancel | None, id: int) -> Generator[None, None, None]:
        """Lets an object cancel a request."""
        if cancel is None:
            yield
            return
        detach = cancel.attach(lambda: self.connection.cancel(id))
        try:
            yield
        finally:
            detach()

    def _wait(
        self, waiter: Waiter, timeout: float | None, on_progress: Callable[[Progress], object] | None
    ) -> ReplyMessage:
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                item = waiter.inbox.get(timeout=None if end is None else max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise Timeout(f"the call took longer than {timeout} s and was cancelled") from None
            match item:
                case ReplyMessage():
                    return item
                case ToolcribError():
                    raise item
                case ProgressMessage():
                    if on_progress is not None:
                        on_progress(item.progress)
                case Question() | Invocation():
                    self.run_callback(item)
                case _:
                    pass


def _wait_for_end(waiter: Waiter) -> None:
    end = time.monotonic() + CANCEL_SECONDS
    with contextlib.suppress(queue.Empty):
        while not isinstance(waiter.inbox.get(timeout=max(0.0, end - time.monotonic())), (ReplyMessage, ToolcribError)):
            pass
