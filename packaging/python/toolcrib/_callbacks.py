"""What the program asks of this process: approvals, and calls of its own tools. No I/O."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ._frames import encode
from ._messages import Callback, Invocation, Question
from .approvals import Answer, Approval, Approver, answer_from
from .own_tools import OwnTool


@dataclass(frozen=True)
class Task:
    """A function of the user to be called, and how its outcome is sent."""

    function: Callable[[], Any]
    is_async: bool
    finished: Callable[[Any], list[bytes]]
    failed: Callable[[BaseException], list[bytes]]


class Callbacks:
    """The approver and the own tools of a session."""

    def __init__(self, approver: Approver | None) -> None:
        self._approver = approver
        self.tools: dict[str, OwnTool] = {}

    def task(self, callback: Callback) -> Task:
        """The task for a message."""
        return self._decide(callback) if isinstance(callback, Question) else self._invoke(callback)

    def _decide(self, question: Question) -> Task:
        approval = question.approval
        approver: Approver = self._approver or _deny

        def answer(decision: object) -> list[bytes]:
            answer = answer_from(decision, approval)
            fields = {"approve": approval.id, "answer": answer.name}
            # The program does not take a message of another type, and the call would wait.
            return encode({**fields, "message": str(answer.message)} if answer.message else fields)

        def failed(error: BaseException) -> list[bytes]:
            return answer(Answer.no(f"The approver failed: {_shown(error)}"))

        return Task(lambda: approver(approval), _is_async(approver), answer, failed)

    def _invoke(self, invocation: Invocation) -> Task:
        def reply(success: bool, output: str) -> list[bytes]:
            return encode({"invoked": invocation.invoke, "success": success, "output": output})

        def failed(error: BaseException) -> list[bytes]:
            return reply(False, _shown(error))

        tool = self.tools.get(invocation.tool)
        if tool is None:
            message = f"this process has no tool {invocation.tool}"
            return Task(lambda: None, False, lambda _value: reply(False, message), failed)
        return Task(
            lambda: tool.call(invocation.args),
            tool.is_async,
            lambda value: reply(True, tool.text(value)),
            failed,
        )


def _deny(_approval: Approval) -> Answer:
    return Answer.no("No approver is set.")


def _is_async(function: object) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))


def _shown(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
