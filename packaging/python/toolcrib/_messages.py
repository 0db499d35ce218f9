"""Messages of the program, as typed values. No I/O."""

from dataclasses import dataclass
from typing import Any, Literal

from ._frames import Frame, JsonObject
from .approvals import Approval
from .errors import ProtocolError, ToolcribError, error_of_kind
from .results import Progress

StreamName = Literal["stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class ReplyMessage:
    """The end of a request."""

    id: int
    fields: JsonObject
    payload: bytes | None

    def error(self) -> ToolcribError | None:
        """The error of the reply, if it has one."""
        if self.fields.get("success"):
            return None
        error: JsonObject = self.fields.get("error") or {}
        message = error.get("message") or self.fields.get("output") or "the request failed"
        metadata: JsonObject = self.fields.get("metadata") or {}
        return error_of_kind(error.get("kind", "internal"), message, error.get("hint", ""), metadata)


@dataclass(frozen=True, slots=True)
class Started:
    """A command was started."""

    id: int


@dataclass(frozen=True, slots=True)
class Output:
    """Output of a command."""

    id: int
    stream: StreamName
    data: bytes


@dataclass(frozen=True, slots=True)
class ProgressMessage:
    """Progress of a call."""

    id: int
    progress: Progress


@dataclass(frozen=True, slots=True)
class Question:
    """A call needs approval."""

    call_id: Any
    approval: Approval


@dataclass(frozen=True, slots=True)
class Invocation:
    """A call of a tool of this process."""

    call_id: Any
    invoke: Any
    tool: str
    args: JsonObject


@dataclass(frozen=True, slots=True)
class InvocationCancelled:
    """An invocation is no longer wanted."""

    invoke: Any


@dataclass(frozen=True, slots=True)
class Complaint:
    """The program could not use a message that has no reply."""

    fields: JsonObject


Event = Started | Output | ProgressMessage
Callback = Question | Invocation
Message = ReplyMessage | Event | Callback | InvocationCancelled | Complaint


def parse(frame: Frame) -> Message:
    """The message in a frame."""
    fields = frame.fields
    try:
        if "approval" in fields:
            approval = Approval.from_fields(fields["approval"])
            return Question(approval.call_id, approval)
        if "invoke" in fields:
            return Invocation(fields.get("call_id"), fields["invoke"], fields["tool"], fields.get("args") or {})
        if "invoke_cancelled" in fields:
            return InvocationCancelled(fields["invoke_cancelled"])
        if "event" in fields:
            return _event(fields, frame.payload)
        if isinstance(fields.get("id"), int) and "success" in fields:
            return ReplyMessage(fields["id"], fields, frame.payload)
    except (KeyError, TypeError, AttributeError) as error:
        raise ProtocolError(f"the program wrote a message without its fields: {error!r}") from None
    return Complaint(fields)


def _event(fields: JsonObject, payload: bytes | None) -> Event | Complaint:
    match fields["event"]:
        case "output":
            return Output(fields["id"], fields["stream"], payload or b"")
        case "started":
            return Started(fields["id"])
        case "progress":
            progress = Progress(fields["done"], fields.get("total"), fields.get("message") or "")
            return ProgressMessage(fields["id"], progress)
        case _:
            # A later version of the program may have more events.
            return Complaint(fields)
