"""Questions about calls that need approval, and their answers."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Answer:
    """An answer to an approval question."""

    name: str
    message: str = ""

    @staticmethod
    def yes() -> "Answer":
        """Allows this call."""
        return Answer("yes")

    @staticmethod
    def session() -> "Answer":
        """Allows this call, and the same until the session ends."""
        return Answer("session")

    @staticmethod
    def always() -> "Answer":
        """Allows this call and adds the rule `Approval.always` to the rules file."""
        return Answer("always")

    @staticmethod
    def always_directory() -> "Answer":
        """Allows this call and adds the rule `Approval.always_directory` to the rules file."""
        return Answer("always_directory")

    @staticmethod
    def no(message: str = "") -> "Answer":
        """Denies this call. The message is shown to the agent."""
        return Answer("no", message)

    @staticmethod
    def never(message: str = "") -> "Answer":
        """Denies this call and adds the rule `Approval.never` to the rules file."""
        return Answer("never", message)


@dataclass(frozen=True)
class PathAccess:
    """A file that a call uses. `path` is None for files that are not known before the call runs."""

    access: str
    path: str | None


@dataclass(frozen=True)
class Approval:
    """A call that needs approval.

    `command` is not escaped: escape control characters before you display it. `always`, `always_directory` and `never`
    are the rules that the answers of these names add; None if such an answer is not offered. `cut` names the fields that
    were too long.
    """

    id: str
    call_id: Any
    tool: str
    answers: tuple[str, ...]
    rule: str
    why: str
    command: str | None = None
    cwd: str | None = None
    description: str | None = None
    paths: tuple[PathAccess, ...] = ()
    reaches: tuple[str, ...] = ()
    diff: str | None = None
    always: str | None = None
    always_directory: str | None = None
    never: str | None = None
    cut: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @staticmethod
    def from_fields(fields: Mapping[str, Any]) -> "Approval":
        """The question in the fields of a message."""
        texts = ("command", "cwd", "description", "diff", "always", "always_directory", "never")
        return Approval(
            id=fields["id"],
            call_id=fields.get("call_id"),
            tool=fields.get("tool", ""),
            answers=tuple(fields.get("answers", ())),
            rule=fields.get("rule", ""),
            why=fields.get("why", ""),
            paths=tuple(PathAccess(one["access"], one["path"]) for one in fields.get("paths", ())),
            reaches=tuple(fields.get("reaches", ())),
            cut=tuple(fields.get("cut", ())),
            fields=fields,
            **{name: fields.get(name) for name in texts},
        )


Decision = Answer | str | bool
"""What an approver returns: an `Answer`, the name of one, or whether this call is allowed."""

Approver = Callable[[Approval], Decision | Awaitable[Decision]]
"""A function that decides on calls. It may be `async`."""


def answer_from(decision: object, approval: Approval) -> Answer:
    """The answer that is sent. A decision that the question does not take denies the call and says so."""
    if isinstance(decision, bool):
        decision = Answer.yes() if decision else Answer.no()
    if isinstance(decision, str):
        decision = Answer(decision)
    if not isinstance(decision, Answer):
        return Answer.no(f"The approver returned {decision!r}, which is not an answer.")
    if decision.name not in approval.answers:
        offered = ", ".join(approval.answers)
        return Answer.no(f"The approver answered {decision.name!r}; this question takes {offered}.")
    return decision
