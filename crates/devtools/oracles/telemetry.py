"""Checks the telemetry of `toolcrib serve` with OpenTelemetry's own protocol definitions.

Usage: telemetry.py PATH-OF-TOOLCRIB

A receiver on loopback parses every request into the messages of `opentelemetry-proto`; a field that the protocol does not
have is an error. The calls come from a plain MCP client. Stops at the first failure and exits with 1.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

MESSAGES = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}
IDS = {"traceId": 16, "spanId": 8, "parentSpanId": 8}
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


class Receiver:
    """A collector that keeps what it gets."""

    def __init__(self, status: int = 200, hangs: bool = False) -> None:
        self.requests: list[tuple[str, dict, object]] = []
        self.problems: list[str] = []
        self.release = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if hangs:
                    receiver.release.wait()
                try:
                    message = parse(self.path, body, self.headers)
                    receiver.requests.append((self.path, dict(self.headers), message))
                except Exception as error:
                    receiver.problems.append(f"{self.path}: {error!r}: {body[:500]!r}")
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def messages(self, path: str) -> list:
        assert not self.problems, self.problems
        return [message for other, _, message in self.requests if other == path]

    def spans(self) -> list:
        return [
            span
            for message in self.messages("/v1/traces")
            for resource in message.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def metrics(self) -> dict:
        last = self.messages("/v1/metrics")[-1]
        return {metric.name: metric for metric in last.resource_metrics[0].scope_metrics[0].metrics}


def parse(path: str, body: bytes, headers: object) -> object:
    """The message of a request. Ids are hexadecimal in OTLP, and base64 in the general mapping."""
    assert headers["content-type"] == "application/json"

    def convert(value: object) -> object:
        if isinstance(value, list):
            return [convert(item) for item in value]
        if not isinstance(value, dict):
            return value
        converted = {key: convert(item) for key, item in value.items()}
        for key, length in IDS.items():
            if key in converted:
                id = bytes.fromhex(converted[key])
                assert len(id) == length and any(id), (key, converted[key])
                converted[key] = base64.b64encode(id).decode()
        return converted

    return json_format.ParseDict(convert(json.loads(body)), MESSAGES[path]())


class Server:
    """`toolcrib serve`, as a client starts it."""

    def __init__(self, program: str, variables: dict[str, str]) -> None:
        self.place = tempfile.TemporaryDirectory()
        top = Path(self.place.name)
        (top / "ws").mkdir()
        (top / "ws" / "a.txt").write_text("private content\n")
        kept = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
        words = [program, "serve", "--root", str(top / "ws"), "--state", str(top / "state"), "--no-monitor"]
        self.process = subprocess.Popen(
            words,
            env=kept | variables | {"XDG_CONFIG_HOME": str(top / "config")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.calls = 0

    def call(self, tool: str, arguments: dict, **meta: str) -> str:
        self.calls += 1
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "judge", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        } | meta
        params = {"name": tool, "arguments": arguments, "_meta": meta}
        call = {"jsonrpc": "2.0", "id": self.calls, "method": "tools/call", "params": params}
        self.process.stdin.write(json.dumps(call) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert answer["id"] == self.calls, answer
        return answer["result"]["content"][0]["text"]

    def end(self) -> str:
        self.process.stdin.close()
        said = self.process.stderr.read()
        assert self.process.wait() == 0
        self.place.cleanup()
        return said


def attributes(holder: object) -> dict:
    values = {}
    for pair in holder.attributes:
        kind = pair.value.WhichOneof("value")
        assert kind is not None, pair
        values[pair.key] = getattr(pair.value, kind)
    return values


def variables(receiver: Receiver, **more: str) -> dict[str, str]:
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
        "OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20secret%20value",
        "OTEL_SERVICE_NAME": "judged",
        "OTEL_RESOURCE_ATTRIBUTES": "team=a",
    } | more


def check_spans_and_metrics(program: str) -> None:
    receiver = Receiver()
    server = Server(program, variables(receiver))
    server.call("Read", {"file_path": "a.txt"}, traceparent=f"00-{TRACE}-{SPAN}-01", tracestate="x=y")
    server.call("Read", {"file_path": "missing.txt"})
    server.call("NoSuchTool", {})
    server.call("Read", {"file_path": "a.txt"}, traceparent=f"00-{TRACE}-{SPAN}-00")
    server.call("Read", {"file_path": "a.txt"}, traceparent="nonsense")
    shown = server.call("Bash", {"command": "env | grep OTEL_EXPORTER; echo end"})
    assert "OTEL_EXPORTER" not in shown and "end" in shown, shown
    server.end()

    spans = receiver.spans()
    assert len(spans) == 5, "the call that its caller does not sample has no span"
    first, failed, unknown, alone, _ = spans
    assert first.name == "tools/call Read" and first.kind == 2, first
    assert first.trace_id.hex() == TRACE and first.parent_span_id.hex() == SPAN and first.trace_state == "x=y"
    assert 0 < first.start_time_unix_nano <= first.end_time_unix_nano
    values = attributes(first)
    for key, value in {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "Read",
        "mcp.protocol.version": "2026-07-28",
        "jsonrpc.request.id": "1",
        "network.transport": "pipe",
        "toolcrib.client": "judge 1",
        "toolcrib.decision": "allow",
    }.items():
        assert values.get(key) == value, (key, values)
    assert first.status.code == 0 and "error.type" not in values
    assert failed.status.code == 2 and attributes(failed)["error.type"] == "tool_error", failed
    assert attributes(failed)["toolcrib.error.kind"] == "not_found" == failed.status.message
    assert unknown.name == "tools/call _OTHER" and attributes(unknown)["gen_ai.tool.name"] == "_OTHER"
    assert alone.trace_id.hex() != TRACE and not alone.parent_span_id
    assert len({span.span_id for span in spans}) == 5
    for _, headers, message in receiver.requests:
        assert headers.get("api-key") == "a secret value", headers
        for word in ["private content", "a.txt", "missing.txt", "secret value"]:
            assert word not in str(message), word
    resource = attributes(receiver.messages("/v1/traces")[0].resource_spans[0].resource)
    assert resource["service.name"] == "judged" and resource["team"] == "a" and resource["service.version"]

    metrics = receiver.metrics()
    duration = metrics["mcp.server.operation.duration"]
    assert duration.unit == "s" and duration.histogram.aggregation_temporality == 2
    points = {
        (values["gen_ai.tool.name"], values.get("error.type")): point
        for point in duration.histogram.data_points
        if (values := attributes(point))
    }
    assert points[("Read", None)].count == 3, "calls without a span are measured, too"
    assert points[("Read", "tool_error")].count == 1 and points[("_OTHER", "tool_error")].count == 1
    for point in points.values():
        assert sum(point.bucket_counts) == point.count
        assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
        assert point.explicit_bounds[0] == 0.01 and point.min <= point.max <= point.sum + 1e-9 or point.count > 1
    assert metrics["toolcrib.telemetry.dropped_spans"].sum.data_points[0].as_int == 0


def check_content(program: str) -> None:
    receiver = Receiver()
    content = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"}
    server = Server(program, variables(receiver, **content))
    server.call("Bash", {"command": f"echo {TOKEN}", "description": "print it"})
    server.end()
    (span,) = receiver.spans()
    arguments = json.loads(attributes(span)["gen_ai.tool.call.arguments"])
    assert arguments["command"].startswith("echo "), arguments
    assert TOKEN not in str(receiver.requests), "secrets are masked"


def check_slow_receiver(program: str) -> None:
    """Calls do not wait for a receiver that does not answer, and what does not fit is counted."""
    receiver = Receiver(hangs=True)
    limits = {"OTEL_BSP_MAX_QUEUE_SIZE": "2", "OTEL_BSP_SCHEDULE_DELAY": "1"}
    server = Server(program, variables(receiver, **limits, OTEL_METRICS_EXPORTER="none"))
    for _ in range(20):
        server.call("Read", {"file_path": "a.txt"})
    assert not receiver.requests
    receiver.release.set()
    server.end()
    assert 0 < len(receiver.spans()) < 20


def check_absent_and_refusing_receiver(program: str) -> None:
    refusing = Receiver(status=400)
    server = Server(program, variables(refusing))
    server.call("Read", {"file_path": "a.txt"})
    assert "telemetry cannot be exported: HTTP status 400" in server.end()
    dropped = refusing.metrics()["toolcrib.telemetry.dropped_spans"]
    assert dropped.sum.data_points[0].as_int == 1
    server = Server(program, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"})
    server.call("Read", {"file_path": "a.txt"})
    assert "telemetry cannot be exported" in server.end()
    server = Server(program, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
    server.call("Read", {"file_path": "a.txt"})
    assert "no telemetry is sent" in server.end()


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    checks = [check_spans_and_metrics, check_content, check_slow_receiver, check_absent_and_refusing_receiver]
    for check in checks:
        began = time.monotonic()
        check(sys.argv[1])
        print(f"{check.__name__}: {time.monotonic() - began:.1f} s")


main()
