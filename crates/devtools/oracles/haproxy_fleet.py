"""A router, two nodes with different workspaces, and HAProxy in front of each: the fleet that haproxy.py tests."""

import http.client
import json
import os
import secrets
import socket
import ssl
import subprocess
import time
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

CONFIGURATIONS = Path(__file__).resolve().parents[3] / "packaging" / "haproxy"
PLACES = {"alice": "node-a", "carol": "node-a", "busy": "node-a", "bob": "node-b", "lost": "node-z"}
QUOTA = 300
"""Requests of a token in 10 seconds: more than a check here makes, except the one that exceeds it."""
PATIENCE = 60
"""Seconds until a wait for something that must happen gives up."""


Answer = tuple[int, dict[str, str], bytes]
"""Status, headers and body."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def openssl(top: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=top, check=True, capture_output=True)


def make_authority(top: Path) -> None:
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "ca.key"]
    openssl(top, "req", "-x509", *key, "-out", "ca.pem", "-days", "2", "-subj", "/CN=fleet")


def make_certificate(top: Path, host: str, file: Path) -> None:
    """A certificate for a host name, and its key, in one file as HAProxy reads them."""
    extensions = top / f"{host}.ext"
    extensions.write_text(f"subjectAltName=DNS:{host}\nbasicConstraints=critical,CA:FALSE\n")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{host}.key"]
    openssl(top, "req", *key, "-out", f"{host}.csr", "-subj", f"/CN={host}")
    signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", str(extensions)]
    openssl(top, "x509", "-req", "-in", f"{host}.csr", "-out", f"{host}.crt", *signed)
    file.write_text((top / f"{host}.crt").read_text() + (top / f"{host}.key").read_text())


class Node:
    """A `toolcrib serve --workspaces` at a socket, and the HAProxy in front of it."""

    def __init__(self, fleet: "Fleet", name: str) -> None:
        self.fleet, self.name = fleet, name
        self.directory = fleet.top / name
        self.workspaces = self.directory / "all"
        tokens = self.directory / "tokens"
        tokens.mkdir(parents=True, mode=0o700)
        own = [workspace for workspace, node in fleet.places.items() if node == name]
        (tokens / "tokens.txt").write_text("".join(f"{workspace} {fleet.tokens[workspace]}\n" for workspace in own))
        (tokens / "tokens.txt").chmod(0o600)
        for workspace in own:
            (self.workspaces / workspace / "sub").mkdir(parents=True)
            (self.workspaces / workspace / "who.txt").write_text(f"{workspace} on {name}\n")
        make_certificate(fleet.top, name, self.directory / "node.pem")
        (self.directory / "ca.pem").write_bytes((fleet.top / "ca.pem").read_bytes())
        self.port = free_port()
        self.server: subprocess.Popen[bytes] | None = None
        self.start()
        fleet.proxy(
            "node.cfg", FLEET=self.directory, FLEET_NODE_BIND=f"127.0.0.1:{self.port}", FLEET_SOCKET=self.socket
        )

    @property
    def socket(self) -> Path:
        return self.directory / "mcp.sock"

    def start(self) -> None:
        self.socket.unlink(missing_ok=True)
        words = ["--http", f"unix:{self.socket}", "--allow-host", "tools.example:8443"]
        words += ["--workspaces", str(self.workspaces), "--state", str(self.directory / "state")]
        words += ["--workspace-tokens", str(self.directory / "tokens" / "tokens.txt"), *self.fleet.more]
        server = subprocess.Popen([self.fleet.binary, "serve", *words], stderr=subprocess.PIPE)
        self.fleet.ended_at_exit(server)
        assert b"serving MCP" in server.stderr.readline()
        self.server = server

    def stop(self) -> None:
        self.server.kill()
        self.server.wait()

    def add_token(self, workspace: str) -> None:
        with (self.directory / "tokens" / "tokens.txt").open("a") as tokens:
            tokens.write(f"{workspace} {self.fleet.tokens[workspace]}\n")


class Fleet:
    """A router and two nodes, which get more arguments."""

    def __init__(
        self, binary: Path, top: Path, exit: ExitStack, places: dict[str, str] = PLACES, more: tuple[str, ...] = ()
    ) -> None:
        self.binary, self.top, self.exit, self.places, self.more = str(binary), top, exit, places, more
        self.tokens = {workspace: secrets.token_hex(32) for workspace in places}
        make_authority(top)
        make_certificate(top, "localhost", top / "router.pem")
        self.map = top / "workspaces.map"
        self.map.write_text("".join(f"{workspace} {node}\n" for workspace, node in places.items()))
        self.a, self.b = Node(self, "node-a"), Node(self, "node-b")
        self.port = free_port()
        self.proxy(
            "router.cfg",
            FLEET=top,
            FLEET_BIND=f"127.0.0.1:{self.port}",
            FLEET_NODE_A=f"127.0.0.1:{self.a.port}",
            FLEET_NODE_B=f"127.0.0.1:{self.b.port}",
            FLEET_QUOTA=QUOTA,
        )
        self.trust = ssl.create_default_context(cafile=str(top / "ca.pem"))
        for workspace in ["alice", "bob"]:
            self.wait_for_status(workspace, 200)

    def ended_at_exit(self, process: subprocess.Popen[bytes]) -> None:
        self.exit.callback(lambda: (process.kill(), process.wait()))

    def proxy(self, configuration: str, **variables: object) -> None:
        env = {**os.environ, **{name: str(value) for name, value in variables.items()}}
        words = ["haproxy", "-db", "-f", str(CONFIGURATIONS / configuration)]
        log = self.exit.enter_context((self.top / f"{configuration}.log").open("ab"))
        self.ended_at_exit(subprocess.Popen(words, env=env, stdout=log, stderr=log))

    def change_map(self, command: str) -> None:
        """A command for the socket of the router."""
        with socket.socket(socket.AF_UNIX) as admin:
            admin.connect(str(self.top / "router.sock"))
            admin.sendall(command.encode() + b"\n")
            answer = admin.recv(4096)
            assert answer.strip() == b"", answer

    def connect(self) -> http.client.HTTPSConnection:
        connection = http.client.HTTPSConnection("localhost", self.port, context=self.trust, timeout=PATIENCE)
        self.exit.callback(connection.close)
        return connection

    def request(self, workspace: str, path: str | None = None, **headers: str) -> Answer:
        """A Read of `who.txt` on a new connection."""
        connection = self.connect()
        try:
            return self.call(connection, workspace, "Read", {"file_path": "who.txt"}, path, **headers)
        finally:
            connection.close()

    def call(
        self,
        connection: http.client.HTTPSConnection,
        workspace: str,
        tool: str,
        arguments: dict[str, str],
        path: str | None = None,
        **headers: str,
    ) -> Answer:
        """A call without a client library."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": tool, "arguments": arguments, "_meta": meta}
        body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
        usual = {
            "Authorization": f"Bearer {self.tokens.get(workspace, 'x' * 43)}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        }
        connection.request("POST", path or f"/w/{workspace}/mcp", body, {**usual, **headers})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()

    def wait_for_status(self, workspace: str, expected: int) -> None:
        until = time.monotonic() + PATIENCE
        status: object = None
        while status != expected:
            assert time.monotonic() < until, (workspace, expected, status, self.log())
            try:
                status = self.request(workspace)[0]
            except OSError as error:
                status = error
            time.sleep(0.1)

    def log(self) -> str:
        return (self.top / "router.cfg.log").read_text()[-2000:]

    @asynccontextmanager
    async def client(self, workspace: str, mode: str):
        headers = {"Authorization": f"Bearer {self.tokens[workspace]}"}
        url = f"https://localhost:{self.port}/w/{workspace}/mcp"
        async with httpx2.AsyncClient(headers=headers, verify=self.trust, timeout=PATIENCE) as session:
            async with Client(streamable_http_client(url, http_client=session), mode=mode) as client:
                yield client
