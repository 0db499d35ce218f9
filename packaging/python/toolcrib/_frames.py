"""Frames: a line of JSON, and the payload that may follow it. No I/O."""

import json
from dataclasses import dataclass
from typing import Any

from .errors import InvalidArgument, ProtocolError

JsonObject = dict[str, Any]

MAX_LINE_BYTES = 256 << 20
"""Longest line that is accepted from the program. Its replies are much shorter."""

MAX_PAYLOAD_BYTES = 256 << 20
"""Longest payload that is accepted from the program. It sends at most 16 MiB."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A message with its payload; None if it has none."""

    fields: JsonObject
    payload: bytes | None


def encode(fields: JsonObject, payload: bytes | None = None) -> list[bytes]:
    """The bytes of a frame, in parts, so that a large payload is not copied."""
    if payload is not None:
        fields = {**fields, "bytes": len(payload)}
    try:
        # A lone surrogate, as in a file name that is not UTF-8, fails here.
        line = json.dumps(fields, separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode("utf-8") + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(f"the request cannot be written as JSON: {error}") from None
    if payload is None:
        return [line]
    if len(payload) <= 2048:
        return [line + payload]
    return [line, payload]


class FrameDecoder:
    """Turns pieces of a byte stream into frames."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._line_bytes = 0
        self._fields: JsonObject | None = None
        self._payload: list[bytes] = []
        self._missing = 0

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are complete with `data`."""
        frames: list[Frame] = []
        position = 0
        while True:
            if self._fields is not None:
                position = self._take_payload(data, position)
                if self._missing:
                    return frames
                frames.append(Frame(self._fields, b"".join(self._payload)))
                self._fields, self._payload = None, []
            end = data.find(b"\n", position)
            if end < 0:
                self._keep_line(data[position:])
                return frames
            self._keep_line(data[position:end])
            position = end + 1
            frame = self._finish_line()
            if frame is not None:
                frames.append(frame)

    def _take_payload(self, data: bytes, position: int) -> int:
        taken = data[position : position + self._missing]
        self._payload.append(taken)
        self._missing -= len(taken)
        return position + len(taken)

    def _keep_line(self, part: bytes) -> None:
        if part:
            self._line.append(part)
            self._line_bytes += len(part)
            if self._line_bytes > MAX_LINE_BYTES:
                raise ProtocolError(f"the program wrote a line of more than {MAX_LINE_BYTES} bytes")

    def _finish_line(self) -> Frame | None:
        line = b"".join(self._line)
        self._line, self._line_bytes = [], 0
        if not line.strip():
            return None
        try:
            fields: object = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ProtocolError(f"the program wrote a line that is not JSON: {_shown(line)} ({error})") from None
        if not isinstance(fields, dict):
            raise ProtocolError(f"the program wrote a line that is not an object: {_shown(line)}")
        message: JsonObject = fields  # pyright: ignore[reportUnknownVariableType]
        size: object = message.get("bytes")
        if size is None:
            return Frame(message, None)
        if not isinstance(size, int) or not 0 <= size <= MAX_PAYLOAD_BYTES:
            raise ProtocolError(f"the program announced a payload of {size!r} bytes")
        self._fields, self._missing = message, size
        return None


def _shown(line: bytes) -> str:
    return repr(line[:200].decode("utf-8", "replace"))
