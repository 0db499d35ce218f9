"""The protocol without I/O."""

import json
import random
import unittest

from support import toolcrib
from toolcrib._frames import FrameDecoder, encode
from toolcrib._messages import Complaint, Output, Question, ReplyMessage, parse
from toolcrib._output_buffer import OutputBuffer


class FrameTest(unittest.TestCase):
    def test_frames_survive_any_split(self) -> None:
        frames = [({"id": 1}, None), ({"id": 2}, b"\n{}\n"), ({"id": 3}, b""), ({"a": "ä\u2028"}, b"x" * 5000)]
        stream = b"".join(b"".join(encode(fields, payload)) for fields, payload in frames)
        for seed in range(50):
            chance = random.Random(seed)
            decoder, seen, position = FrameDecoder(), [], 0
            while position < len(stream):
                size = chance.choice([1, 2, 7, 100, 6000])
                seen += decoder.feed(stream[position : position + size])
                position += size
            self.assertEqual([one.payload for one in seen], [payload for _, payload in frames])
            self.assertEqual([{k: v for k, v in one.fields.items() if k != "bytes"} for one in seen],
                             [fields for fields, _ in frames])

    def test_blank_lines_are_ignored(self) -> None:
        self.assertEqual(FrameDecoder().feed(b"\n \r\n"), [])

    def test_other_text_is_a_protocol_error(self) -> None:
        for text in (b"hello\n", b"[1]\n", b'{"bytes": -1}\n', b'{"bytes": "1"}\n', b'{"bytes": 99999999999}\n',
                     b"\xff\n", b"[" * 100_000 + b"\n"):
            with self.assertRaises(toolcrib.ProtocolError, msg=text[:40]):
                FrameDecoder().feed(text)

    def test_values_without_json_form_are_refused(self) -> None:
        for value in (float("nan"), object(), b"bytes"):
            with self.assertRaises(toolcrib.InvalidArgument):
                encode({"x": value})

    def test_messages_are_told_apart(self) -> None:
        def message(text: str, payload: bytes = b"") -> object:
            return parse(FrameDecoder().feed(text.encode() + b"\n" + payload)[0])

        self.assertIsInstance(message('{"id": 1, "success": true}'), ReplyMessage)
        self.assertIsInstance(message('{"approval": {"id": "a1", "answers": ["yes"]}}'), Question)
        self.assertIsInstance(message('{"cancel": 1, "success": false}'), Complaint)
        self.assertIsInstance(message('{"id": 1, "event": "unknown"}'), Complaint)
        output = message('{"id": 1, "event": "output", "stream": "stderr", "bytes": 3}', b"a\nb")
        self.assertEqual(output, Output(1, "stderr", b"a\nb"))
        with self.assertRaises(toolcrib.ProtocolError):
            message('{"approval": {}}')

    def test_a_reply_of_a_null_id_is_no_reply(self) -> None:
        line = json.dumps({"id": None, "success": False}).encode() + b"\n"
        self.assertIsInstance(parse(FrameDecoder().feed(line)[0]), Complaint)


class EncodeTest(unittest.TestCase):
    def test_a_lone_surrogate_is_not_sent(self) -> None:
        for payload in (None, b"x"):
            with self.assertRaises(toolcrib.InvalidArgument):
                encode({"id": 1, "args": {"path": "\udc80"}}, payload)
        self.assertIn("ä😀".encode(), encode({"id": "ä😀"})[0])


class OutputBufferTest(unittest.TestCase):
    def test_chunks_are_taken_per_stream_or_in_order(self) -> None:
        buffer = OutputBuffer(100)
        for stream, data in (("stdout", b"1"), ("stderr", b"2"), ("stdout", b"3"), ("stderr", b"4")):
            buffer.put(stream, data)
        self.assertEqual(buffer.take("stderr"), ("stderr", b"2"))
        self.assertEqual([buffer.take(None) for _ in range(4)],
                         [("stdout", b"1"), ("stdout", b"3"), ("stderr", b"4"), None])

    def test_the_limit_is_reported_once(self) -> None:
        buffer = OutputBuffer(10)
        self.assertTrue(buffer.put("stdout", b"12345"))
        self.assertFalse(buffer.put("stdout", b"1234567"))
        self.assertTrue(buffer.put("stdout", b"1"))
        self.assertIsNotNone(buffer.error)


if __name__ == "__main__":
    unittest.main()
