"""Toolcrib: the tools of an AI coding agent, with undo and a sandbox.

`Session` is for threads and `AsyncSession` for asyncio. Both start the `toolcrib` program, which this package carries.

    with toolcrib.Session("project") as session:
        print(session.call("Grep", pattern="TODO").output)
"""

from .approvals import Answer, Approval, Approver, Decision, PathAccess
from .async_job import AsyncJob
from .async_process import AsyncProcess
from .async_session import AsyncSession
from .cancel import Cancel
from .errors import (
    AlreadyExists,
    Cancelled,
    CommandFailed,
    Conflict,
    Denied,
    Hidden,
    InternalError,
    InvalidArgument,
    IoError,
    IsDirectory,
    LimitExceeded,
    NotADirectory,
    NotEmpty,
    NotFound,
    OutsideWorkspace,
    PermissionDenied,
    Protected,
    ProtocolError,
    SessionClosed,
    Stale,
    StartFailed,
    Timeout,
    ToolcribError,
    Unsupported,
)
from .job import Job
from .process import Process
from .program import find_program
from .results import (
    Change,
    Completed,
    Entry,
    Exit,
    FileChange,
    Info,
    Listing,
    Progress,
    Reply,
    ReplyError,
    Restored,
    Stat,
    Written,
)
from .session import Session

__all__ = [
    "AlreadyExists",
    "Answer",
    "Approval",
    "Approver",
    "AsyncJob",
    "AsyncProcess",
    "AsyncSession",
    "Cancel",
    "Cancelled",
    "Change",
    "CommandFailed",
    "Completed",
    "Conflict",
    "Decision",
    "Denied",
    "Entry",
    "Exit",
    "FileChange",
    "Hidden",
    "Info",
    "InternalError",
    "InvalidArgument",
    "IoError",
    "IsDirectory",
    "Job",
    "LimitExceeded",
    "Listing",
    "NotADirectory",
    "NotEmpty",
    "NotFound",
    "OutsideWorkspace",
    "PathAccess",
    "PermissionDenied",
    "Process",
    "Progress",
    "Protected",
    "ProtocolError",
    "Reply",
    "ReplyError",
    "Restored",
    "Session",
    "SessionClosed",
    "Stale",
    "StartFailed",
    "Stat",
    "Timeout",
    "ToolcribError",
    "Unsupported",
    "Written",
    "find_program",
]
