"""Checks `toolcrib sandboxd` with the client of Kubernetes' agent-sandbox and the stubs of its ProcessService.

Usage: sandboxd.py PATH-OF-TOOLCRIB [--level N]

The client connects to the address of a pod, which is that of this machine here. The checks named `spec_…` have the behaviour
that the project's own tests of its daemon require. N is the sandbox level that is expected. Stops at the first failure and exits with 1.
"""

import datetime
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import quote

import grpc
import requests
from google.protobuf import empty_pb2
from k8s_agent_sandbox.commands._process_stubs import process_pb2, process_pb2_grpc
from k8s_agent_sandbox.commands.command_executor import CommandExecutor
from k8s_agent_sandbox.connector import SandboxConnector
from k8s_agent_sandbox.exceptions import SandboxRequestError
from k8s_agent_sandbox.files.filesystem import Filesystem
from k8s_agent_sandbox.models import SandboxdInClusterConnectionConfig

Code = grpc.StatusCode
RPC_SECONDS = 120
LEVEL: int | None = None


class Server:
    """A running server with a workspace of its own."""

    def __init__(self, program: str, *flags: str, **variables: str) -> None:
        self.program = program
        # Not below /tmp, which commands do not see.
        self.top = tempfile.TemporaryDirectory(dir="/var/lib" if os.geteuid() == 0 else Path.home())
        top = Path(self.top.name).resolve()
        self.root, self.outside, self.state = top / "workspace", top / "outside", top / "state"
        for directory in (self.root, self.outside, top / "home"):
            directory.mkdir()
        self.rest_port, self.grpc_port = free_port(), free_port()
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(top / "home"),
            "SANDBOXD_REST_ADDR": f"localhost:{self.rest_port}",
            "SANDBOXD_GRPC_ADDR": f"localhost:{self.grpc_port}",
            **variables,
        }
        self.words = ["--root", str(self.root), "--state", str(self.state)]
        self.process = subprocess.Popen(
            [program, "sandboxd", *self.words, *flags],
            env=self.environment, cwd=top, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
        )
        lines = []
        while "serving files" not in (line := self.process.stderr.readline()):
            assert line, "".join(lines)
            lines.append(line)
        self.said = line
        self.url = f"http://127.0.0.1:{self.rest_port}/v1"
        self.channel = grpc.insecure_channel(f"127.0.0.1:{self.grpc_port}")
        self.stub = process_pb2_grpc.ProcessServiceStub(self.channel)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        self.top.cleanup()

    def request(self, method: str, path: str, **options: object) -> requests.Response:
        return requests.request(method, f"{self.url}{path}", timeout=RPC_SECONDS, **options)

    def put(self, path: str, content: bytes, **options: object) -> None:
        expect(self.request("PUT", f"/files/{path}", data=content, **options), 204)

    def execute(self, *command: str, **config: object) -> process_pb2.ExecuteResponse:
        request = process_pb2.ExecuteRequest(config=process_pb2.ProcessConfig(command=command, **config))
        return self.stub.Execute(request, timeout=RPC_SECONDS)

    def start(self, *command: str, pty: process_pb2.PTY | None = None, **config: object):
        config = process_pb2.ProcessConfig(command=command, **config)
        return self.stub.Start(process_pb2.StartRequest(config=config, pty=pty), timeout=RPC_SECONDS)

    def signal(self, process: int, number: int) -> None:
        self.stub.SendSignal(process_pb2.SendSignalRequest(process_id=process, signal=number))

    def write(self, process: int, data: bytes | None) -> None:
        payload = {"eof": empty_pb2.Empty()} if data is None else {"input": data}
        self.stub.WriteStdin(process_pb2.WriteStdinRequest(process_id=process, **payload), timeout=RPC_SECONDS)

    def toolcrib(self, *words: str) -> str:
        ran = subprocess.run([self.program, *words, *self.words], env=self.environment, cwd=self.root,
                             capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def expect(response: requests.Response, status: int, code: str | None = None) -> requests.Response:
    assert response.status_code == status, (response.status_code, status, response.text)
    if code is not None:
        body = response.json()
        assert body["code"] == code and body["message"], body
    return response


def refused(code: grpc.StatusCode, call, *arguments: object) -> str:
    try:
        result = call(*arguments)
        if hasattr(result, "__next__"):
            next(result)
    except grpc.RpcError as error:
        assert error.code() == code, (error.code(), code, error.details())
        return error.details()
    raise AssertionError(f"expected {code}")


def init(stream) -> int:
    event = next(stream)
    assert event.WhichOneof("event") == "init" and event.init.process_id > 0, event
    return event.init.process_id


def drain(stream) -> tuple[bytes, bytes, int]:
    """The rest of a stream: stdout, stderr and the exit code, which is its last event."""
    stdout, stderr, code = b"", b"", None
    for event in stream:
        assert code is None, "an event after the exit"
        match event.WhichOneof("event"):
            case "stdout":
                stdout += event.stdout
            case "stderr":
                stderr += event.stderr
            case "exit":
                code = event.exit.exit_code
    assert code is not None, "no exit"
    return stdout, stderr, code


def until(what: str, condition) -> None:
    """Waits for something that happens soon, without an assertion on the time."""
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


# The client of the project.


def client_reads_and_writes_files(server: Server) -> None:
    files = Filesystem(connector(server), None, "test")
    files.write("dir/sub/script.py", b"print(1)\n")
    files.write("notes.txt", "text")
    assert files.read("dir/sub/script.py") == b"print(1)\n"
    assert files.read("/dir/sub/../sub/script.py") == b"print(1)\n"
    assert files.exists("notes.txt") and not files.exists("absent.txt")
    listed = {entry.name: entry for entry in files.list(".")}
    assert listed["dir"].type == "directory" and listed["notes.txt"].type == "file", listed
    assert listed["notes.txt"].size == 4 and listed["notes.txt"].mode == "0644"
    age = datetime.datetime.now(datetime.timezone.utc) - listed["notes.txt"].modified
    assert abs(age) < datetime.timedelta(hours=1), age
    try:
        files.delete("dir")
        raise AssertionError("a directory with entries was removed")
    except SandboxRequestError as error:
        assert error.status_code == 409
    files.delete("dir", recursive=True)
    assert not (server.root / "dir").exists()
    large = os.urandom(20 << 20)
    files.write("large.bin", large)
    assert files.read("large.bin") == large
    assert (server.root / "large.bin").read_bytes() == large


def client_runs_commands(server: Server) -> None:
    commands = CommandExecutor(connector(server), None, "test")
    ran = commands.run("echo out; echo err >&2; exit 3")
    assert (ran.stdout, ran.stderr, ran.exit_code) == ("out\n", "err\n", 3), ran
    (server.root / "below").mkdir()
    ran = commands.run("echo $NAME; pwd", env={"NAME": "it's $HOME"}, cwd="below")
    assert ran.stdout == f"it's $HOME\n{server.root}/below\n", ran
    ran = commands.run("sleep 600", command_timeout=1)
    assert ran.timed_out and ran.exit_code == 124, ran
    try:
        commands.run("true", cwd="../..")
        raise AssertionError("a directory outside was used")
    except RuntimeError as error:
        assert "PERMISSION_DENIED" in str(error), error


def connector(server: Server) -> SandboxConnector:
    config = SandboxdInClusterConnectionConfig(
        mode="in-cluster-pod-ip", rest_port=server.rest_port, grpc_port=server.grpc_port)
    return SandboxConnector("sandbox", "default", config, None, get_pod_ip=lambda: "127.0.0.1")


# What the tests of the project's own daemon require.


def spec_files(server: Server) -> None:
    server.put("hello.txt", b"payload")
    got = expect(server.request("GET", "/files/hello.txt"), 200)
    assert got.headers["content-type"] == "application/octet-stream" and got.content == b"payload"
    server.put("a/b/c/deep.txt", b"x")
    assert (server.root / "a/b/c/deep.txt").is_file()
    server.put("run.sh?mode=0755", b"#!/bin/sh")
    assert (server.root / "run.sh").stat().st_mode & 0o777 == 0o755
    server.put("private.txt?mode=0600", b"x")
    assert (server.root / "private.txt").stat().st_mode & 0o777 == 0o600
    for mode in ("0999", "777", "abcd", "01777"):
        expect(server.request("PUT", f"/files/f.txt?mode={mode}", data=b"x"), 400, "INVALID_ARGUMENT")
    before = set(os.listdir(server.root))
    server.put("hello.txt", b"new")
    assert (server.root / "hello.txt").read_bytes() == b"new" and set(os.listdir(server.root)) == before
    server.put("upload.bin", b"", files={"file": ("x.bin", b"multi\r\n--part")})
    assert (server.root / "upload.bin").read_bytes() == b"multi\r\n--part"
    wrong = server.request("PUT", "/files/f.txt", files={"notfile": ("x", b"x")})
    expect(wrong, 400, "INVALID_ARGUMENT")
    expect(server.request("PUT", "/files/a", data=b"x"), 400, "INVALID_ARGUMENT")
    server.put("dir%2Fsub%2Ffile.txt", b"x")
    assert (server.root / "dir/sub/file.txt").is_file()


def spec_listing(server: Server) -> None:
    empty = expect(server.request("GET", "/files/"), 200)
    assert empty.json()["entries"] == [] and empty.headers["content-type"] == "application/json"
    (server.root / "b.txt").write_bytes(b"bb")
    (server.root / "b.txt").chmod(0o600)
    (server.root / "adir").mkdir()
    (server.outside / "secret.txt").write_text("secret")
    (server.root / "link").symlink_to(server.outside)
    (server.root / "broken").symlink_to("nowhere")
    (server.root / "inside").symlink_to("b.txt")
    for path in ("/files/", "/files"):
        listing = expect(server.request("GET", path), 200).json()
        assert listing["path"] == "/"
        names = [(entry["name"], entry["type"], entry["size"]) for entry in listing["entries"]]
        assert [name for name in names if name[0] != "adir"] == [("b.txt", "file", 2), ("inside", "file", 2)], names
        assert names[0][:2] == ("adir", "directory")
        mode = {entry["name"]: entry["mode"] for entry in listing["entries"]}
        assert mode["b.txt"] == mode["inside"] == "0600"
        for entry in listing["entries"]:
            datetime.datetime.strptime(entry["modified_at"], "%Y-%m-%dT%H:%M:%SZ")


def spec_existence_and_removal(server: Server) -> None:
    (server.root / "f.txt").write_bytes(b"12345")
    head = expect(server.request("HEAD", "/files/f.txt"), 200)
    assert head.content == b"" and head.headers["content-length"] == "5"
    for method in ("GET", "HEAD", "DELETE"):
        code = None if method == "HEAD" else "NOT_FOUND"
        expect(server.request(method, "/files/absent.txt"), 404, code)
        expect(server.request(method, "/files/f.txt/below"), 404, code)
    expect(server.request("DELETE", "/files/f.txt?recursive=banana"), 400, "INVALID_ARGUMENT")
    expect(server.request("DELETE", "/files/f.txt"), 204)
    (server.root / "d").mkdir()
    (server.root / "d/f.txt").write_text("x")
    expect(server.request("DELETE", "/files/d"), 409, "CONFLICT")
    expect(server.request("DELETE", "/files/d?recursive=true"), 204)
    assert not (server.root / "d").exists()
    (server.root / "f.txt").write_text("x")
    (server.root / "d/e").mkdir(parents=True)
    expect(server.request("DELETE", "/files/"), 409, "CONFLICT")
    expect(server.request("DELETE", "/files/?recursive=true"), 204)
    assert os.listdir(server.root) == []


def spec_processes(server: Server) -> None:
    ran = server.execute("echo", "hello")
    assert (ran.stdout, ran.stderr, ran.exit_code) == (b"hello\n", b"", 0), ran
    assert server.execute("sh", "-c", "exit 3").exit_code == 3
    refused(Code.INVALID_ARGUMENT, server.execute)
    refused(Code.PERMISSION_DENIED, lambda: server.execute("pwd", cwd="../.."))
    stream = server.start("sh", "-c", "echo out; echo err 1>&2; exit 7")
    init(stream)
    assert drain(stream) == (b"out\n", b"err\n", 7)
    stream = server.start("cat")
    process = init(stream)
    server.write(process, b"piped-")
    server.write(process, b"through")
    server.write(process, None)
    assert drain(stream) == (b"piped-through", b"", 0)
    refused(Code.NOT_FOUND, server.write, 424242, b"x")
    refused(Code.NOT_FOUND, server.signal, 424242, 15)
    refused(Code.NOT_FOUND, server.stub.ResizeTTY, process_pb2.ResizeTTYRequest(process_id=424242))


def spec_signals(server: Server) -> None:
    for number in (2, 9, 15):
        stream = server.start("sleep", "600")
        process = init(stream)
        refused(Code.INVALID_ARGUMENT, server.signal, process, 0)
        resize = process_pb2.ResizeTTYRequest(process_id=process, cols=80, rows=24)
        refused(Code.FAILED_PRECONDITION, server.stub.ResizeTTY, resize)
        server.signal(process, number)
        assert drain(stream)[2] == 128 + number
        refused(Code.NOT_FOUND, server.signal, process, number)


def spec_terminal(server: Server) -> None:
    stream = server.start("sh", "-c", "stty size", pty=process_pb2.PTY(cols=80, rows=24))
    init(stream)
    stdout, _, code = drain(stream)
    assert b"24 80" in stdout and code == 0, stdout
    script = "trap 'stty size; exit 5' WINCH; echo ready; while :; do sleep 0.1; done"
    stream = server.start("bash", "-c", script, pty=process_pb2.PTY(cols=80, rows=24))
    process = init(stream)
    assert b"ready" in next(stream).stdout
    too_large = process_pb2.ResizeTTYRequest(process_id=process, cols=70_000, rows=40)
    refused(Code.INVALID_ARGUMENT, server.stub.ResizeTTY, too_large)
    server.stub.ResizeTTY(process_pb2.ResizeTTYRequest(process_id=process, cols=120, rows=40))
    stdout, _, code = drain(stream)
    assert b"40 120" in stdout and code == 5, (stdout, code)


# What is ours.


def paths_do_not_escape(server: Server) -> None:
    (server.outside / "secret").write_text("s")
    (server.root / "link").symlink_to(server.outside)
    (server.root / "file-link").symlink_to(server.outside / "secret")
    (server.root / "tmp-link").symlink_to("/tmp")
    (server.root / "etc-link").symlink_to("/etc")
    (server.root / "chain").symlink_to("link")
    paths = ["link/secret", "file-link", "link", "tmp-link/x", "etc-link/passwd", "etc-link", "chain/secret"]
    for path in paths:
        for method in ("GET", "HEAD"):
            response = server.request(method, f"/files/{path}")
            assert response.status_code == 403, (method, path, response.status_code, response.text)
    for path in [path for path in paths if "/" in path]:
        for method in ("PUT", "DELETE"):
            expect(server.request(method, f"/files/{path}", data=b"x"), 403, "PERMISSION_DENIED")
    for path in ("%2E%2E/%2E%2E/etc/passwd", "..%2F..%2Fetc%2Fpasswd", "a/%2e%2e/%2e%2e/x"):
        for method in ("GET", "PUT", "DELETE"):
            expect(raw(server, method, f"/v1/files/{path}"), 403, "PERMISSION_DENIED")
    # As an absolute path it is in the workspace, where it does not exist.
    expect(server.request("GET", f"/files/{quote('/etc/passwd', safe='')}"), 404, "NOT_FOUND")
    for path in ("a%00b", "%ff", "x" * 5_000):
        expect(server.request("GET", f"/files/{path}"), 400, "INVALID_ARGUMENT")
    for cwd in ("link", "etc-link", "tmp-link", "chain"):
        refused(Code.PERMISSION_DENIED, lambda: server.execute("pwd", cwd=cwd))
    refused(Code.NOT_FOUND, lambda: server.execute("pwd", cwd="absent"))
    assert (server.outside / "secret").read_text() == "s" and os.listdir(server.outside) == ["secret"]


def raw(server: Server, method: str, path: str) -> requests.Response:
    """A request whose path is sent as it is."""
    session = requests.Session()
    request = requests.Request(method, f"http://127.0.0.1:{server.rest_port}/", data=b"x").prepare()
    request.url = f"http://127.0.0.1:{server.rest_port}{path}"
    return session.send(request, timeout=RPC_SECONDS)


def commands_are_confined(server: Server) -> None:
    ran = server.execute("sh", "-c", f"echo x > {server.outside}/written; cat {server.state}/* ; echo $?")
    assert b"1" in ran.stdout and os.listdir(server.outside) == [], ran
    connect = f"exec 3<>/dev/tcp/127.0.0.1/{server.rest_port} && echo reached"
    ran = server.execute("bash", "-c", connect)
    assert b"reached" not in ran.stdout, "a command reaches the server"


def changes_are_in_the_journal(server: Server) -> None:
    server.put("a.txt", b"one\n")
    server.put("a.txt", b"two\n")
    server.execute("sh", "-c", "echo three > a.txt; echo new > b.txt")
    expect(server.request("DELETE", "/files/a.txt"), 204)
    assert not (server.root / "a.txt").exists()
    server.toolcrib("undo", "--yes")
    assert (server.root / "a.txt").read_text() == "three\n"
    server.toolcrib("undo", "--yes")
    assert (server.root / "a.txt").read_text() == "two\n" and not (server.root / "b.txt").exists()
    changes = json.loads(server.toolcrib("log", "--json"))
    assert len(changes if isinstance(changes, list) else changes["changes"]) >= 4, changes


def sizes_are_bounded(server: Server) -> None:
    head = f"PUT /v1/files/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: {300 << 20}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.rest_port)) as connection:
        connection.sendall(head.encode())
        assert connection.recv(4_096).startswith(b"HTTP/1.1 413 ")
    assert not (server.root / "x").exists()
    refused(Code.OUT_OF_RANGE, lambda: server.execute("echo", "x" * (5 << 20)))
    details = refused(Code.RESOURCE_EXHAUSTED, lambda: server.execute("sh", "-c", "yes | head -c 50000000"))
    assert "Start" in details, details
    refused(Code.INVALID_ARGUMENT, lambda: server.execute("echo", "a\0b"))
    # A stream has no limit.
    stream = server.start("sh", "-c", "yes | head -c 50000000")
    init(stream)
    stdout, _, code = drain(stream)
    assert len(stdout) == 50_000_000 and code == 0


def cancelled_streams_end_their_processes(server: Server) -> None:
    marker = server.root / "beats"
    loop = "while :; do echo x >> beats; sleep 0.05; done"
    for stop in ("cancel", "close"):
        channel = grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}", options=[("grpc.use_local_subchannel_pool", 1)])
        stub = process_pb2_grpc.ProcessServiceStub(channel)
        config = process_pb2.ProcessConfig(command=["sh", "-c", loop])
        stream = stub.Start(process_pb2.StartRequest(config=config))
        process = init(stream)
        until("the process writes", marker.exists)
        stream.cancel() if stop == "cancel" else channel.close()
        until("the process ends", lambda: is_gone(server, process))
        size = marker.stat().st_size
        time.sleep(0.3)
        assert marker.stat().st_size == size, "it still writes"
        marker.unlink()
        channel.close()
    # A call without a stream, whose client goes away.
    call = server.stub.Execute.future(process_pb2.ExecuteRequest(config=config))
    until("the process writes", marker.exists)
    call.cancel()

    def is_still() -> bool:
        size = marker.stat().st_size
        time.sleep(0.5)
        return marker.stat().st_size == size

    until("the process ends", is_still)
    # A client that does not read makes the process wait, and others are served.
    stalled = server.start("sh", "-c", "yes")
    init(stalled)
    assert server.execute("echo", "served").stdout == b"served\n"
    stalled.cancel()
    # Its deadline ends a process, too.
    try:
        config = process_pb2.ProcessConfig(command=["sleep", "600"])
        server.stub.Execute(process_pb2.ExecuteRequest(config=config), timeout=1)
        raise AssertionError("no deadline")
    except grpc.RpcError as error:
        assert error.code() == Code.DEADLINE_EXCEEDED, error


def is_gone(server: Server, process: int) -> bool:
    try:
        server.stub.WriteStdin(process_pb2.WriteStdinRequest(process_id=process))
        return False
    except grpc.RpcError as error:
        return error.code() == Code.NOT_FOUND


def input_waits_for_its_reader(server: Server) -> None:
    stream = server.start("sh", "-c", "read -r line; cat > /dev/null; echo $line")
    process = init(stream)
    writers = [threading.Thread(target=server.write, args=(process, b"line\n" * 200_000)) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    server.write(process, None)
    assert drain(stream) == (b"line\n", b"", 0)
    stream = server.start("sh", "-c", "exec <&-; echo closed; sleep 600")
    process = init(stream)
    next(stream)
    refused(Code.FAILED_PRECONDITION, server.write, process, b"x" * (1 << 20))
    server.signal(process, 9)
    drain(stream)


def many_processes_have_a_limit(server: Server) -> None:
    streams = [server.start("sleep", "600") for _ in range(64)]
    for stream in streams:
        init(stream)
    refused(Code.RESOURCE_EXHAUSTED, lambda: server.execute("true"))
    expect(server.request("GET", "/files/"), 200)
    for stream in streams:
        stream.cancel()

    def has_room() -> bool:
        try:
            return server.execute("true").exit_code == 0
        except grpc.RpcError as error:
            assert error.code() == Code.RESOURCE_EXHAUSTED, error
            return False

    until("places are free again", has_room)


def metadata_has_no_secrets(program: str) -> None:
    variables = {"SANDBOX_ID": "sbx-1", "SANDBOX_API_TOKEN": "no", "SANDBOX_SSH_KEY": "no", "OTHER": "no"}
    with Server(program, "--trust-network", **variables) as server:
        metadata = expect(server.request("GET", "/metadata"), 200).json()
        assert metadata["env"] == {"SANDBOX_ID": "sbx-1"}, metadata
        level = metadata["toolcrib"]["sandbox"]["level"]
        assert level >= 2 if LEVEL is None else level == LEVEL, metadata
        health = expect(server.request("GET", "/health"), 200).json()
        assert health["status"] == "ok" and health["uptime_seconds"] >= 0
        expect(server.request("POST", "/health"), 405)
        expect(server.request("GET", "/nothing"), 404, "NOT_FOUND")
        expect(server.request("PATCH", "/files/x"), 405)
        for headers in ({"Origin": "http://localhost"}, {"Sec-Fetch-Site": "same-origin"}, {"Host": "evil.example"}):
            expect(server.request("GET", "/files/", headers=headers), 403, "PERMISSION_DENIED")


def a_token_is_needed(program: str) -> None:
    with Server(program) as server:
        token = Path(server.said.split("the token is in ")[1].strip()).read_text().strip()
        expect(server.request("GET", "/health"), 200)
        bearer = {"Authorization": f"Bearer {token}"}
        for headers in ({}, {"Authorization": "Bearer " + "x" * 64}):
            for path in ("/files/", "/metadata"):
                expect(server.request("GET", path, headers=headers), 401, "UNAUTHENTICATED")
        expect(server.request("GET", "/files/", headers=bearer), 200)
        refused(Code.UNAUTHENTICATED, server.execute, "true")
        refused(Code.UNAUTHENTICATED, server.start, "true")
        config = process_pb2.ProcessConfig(command=["true"])
        metadata = [("authorization", bearer["Authorization"])]
        ran = server.stub.Execute(process_pb2.ExecuteRequest(config=config), metadata=metadata)
        assert ran.exit_code == 0
    for flag in ("--rest", "--grpc"):
        ran = subprocess.run([program, "sandboxd", flag, "0.0.0.0:0"], capture_output=True, text=True)
        assert ran.returncode == 2 and "--trust-network" in ran.stderr, ran


def the_end_is_told(program: str) -> None:
    with Server(program, "--trust-network") as server:
        stubborn = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
        streams = [server.start("sleep", "600"), server.start("sh", "-c", stubborn)]
        for stream in streams:
            init(stream)
        next(streams[1])
        server.process.send_signal(signal.SIGTERM)
        until("the health check fails", lambda: server.request("GET", "/health").status_code == 503)
        assert drain(streams[0])[2] == 128 + 15
        try:
            drain(streams[1])
        except grpc.RpcError as error:
            assert error.code() in (Code.CANCELLED, Code.UNAVAILABLE), error
        assert server.process.wait() == 0


def main() -> None:
    program = str(Path(sys.argv[1]).resolve())
    if sys.argv[2:3] == ["--level"]:
        global LEVEL
        LEVEL = int(sys.argv[3])
    with_server = [
        client_reads_and_writes_files, client_runs_commands, spec_files, spec_listing, spec_existence_and_removal,
        spec_processes, spec_signals, spec_terminal, paths_do_not_escape, commands_are_confined,
        changes_are_in_the_journal, sizes_are_bounded, cancelled_streams_end_their_processes,
        input_waits_for_its_reader, many_processes_have_a_limit,
    ]
    for check in with_server:
        with Server(program, "--trust-network") as server:
            check(server)
        print(f"ok: {check.__name__}")
    for check in (metadata_has_no_secrets, a_token_is_needed, the_end_is_told):
        check(program)
        print(f"ok: {check.__name__}")


if __name__ == "__main__":
    main()
