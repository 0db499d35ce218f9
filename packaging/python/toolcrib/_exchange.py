"""The requests of one connection: their ids, and who receives the messages about them. No I/O."""

import itertools
import threading
from collections.abc import Callable
from typing import Any, Protocol

from ._frames import FrameDecoder, encode
from ._messages import Callback, Complaint, Event, Invocation, InvocationCancelled, Question, ReplyMessage, parse
from ._operations import Operation
from .errors import ToolcribError


class Receiver(Protocol):
    """Receives the messages about one request. Its methods must not block or raise."""

    def event(self, event: Event) -> None:
        """The request goes on."""

    def callback(self, callback: Callback) -> bool:
        """The request needs something of this process. False if someone else is to take care of it."""
        ...

    def reply(self, reply: ReplyMessage) -> None:
        """The request has ended."""

    def lost(self, error: ToolcribError) -> None:
        """There will be no reply."""


class Exchange:
    """Routes messages to receivers. Every receiver gets exactly one `reply` or `lost`."""

    def __init__(
        self, on_unclaimed: Callable[[Callback], None], on_invocation_cancelled: Callable[[Any], None]
    ) -> None:
        self._decoder = FrameDecoder()
        self._ids = itertools.count(1)
        # Reentrant: a signal handler or a finalizer may end the requests while its thread holds the lock.
        self._lock = threading.RLock()
        self._receivers: dict[int, Receiver] = {}
        self._error: ToolcribError | None = None
        self.has_answered = False
        """Whether the program has sent a message."""
        self._on_unclaimed = on_unclaimed
        self._on_invocation_cancelled = on_invocation_cancelled

    def new_id(self) -> int:
        """The id for a request, which the caller knows before it is open and so can always cancel."""
        return next(self._ids)

    def open(self, id: int, operation: Operation[Any], receiver: Receiver) -> list[bytes]:
        """A new request: the bytes to send."""
        parts = encode({"id": id, **operation.fields}, operation.payload)
        with self._lock:
            if self._error is not None:
                raise _copy(self._error)
            self._receivers[id] = receiver
        return parts

    def cancel(self, id: int) -> list[bytes] | None:
        """The bytes that cancel a request; None if it has ended."""
        return encode({"cancel": id}) if id in self._receivers else None

    def feed(self, data: bytes) -> None:
        """Takes bytes of the program."""
        for frame in self._decoder.feed(data):
            self.has_answered = True
            message = parse(frame)
            match message:
                case ReplyMessage():
                    with self._lock:
                        receiver = self._receivers.pop(message.id, None)
                    if receiver is not None:
                        receiver.reply(message)
                case Question() | Invocation():
                    receiver = self._receivers.get(message.call_id)
                    if receiver is None or not receiver.callback(message):
                        self._on_unclaimed(message)
                case InvocationCancelled():
                    self._on_invocation_cancelled(message.invoke)
                case Complaint():
                    # About a cancellation or an answer that came too late.
                    pass
                case _:
                    receiver = self._receivers.get(message.id)
                    if receiver is not None:
                        receiver.event(message)

    def fail(self, error: ToolcribError) -> list[int]:
        """Ends all requests, and those to come. Returns the ids of the former."""
        with self._lock:
            self._error = self._error or error
            lost, self._receivers = self._receivers, {}
        for receiver in lost.values():
            receiver.lost(_copy(error))
        return list(lost)

    @property
    def error(self) -> ToolcribError | None:
        """Why no request can be made."""
        return None if self._error is None else _copy(self._error)


def _copy(error: ToolcribError) -> ToolcribError:
    """A fresh error: each raise of an exception adds to its traceback."""
    return type(error)(error.message, error.hint, kind=error.kind, metadata=error.metadata)
