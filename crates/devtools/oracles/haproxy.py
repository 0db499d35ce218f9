"""Tests packaging/haproxy with HAProxy, two nodes that serve different workspaces, and the official Python client; then two nodes
with a store in PostgreSQL.

Takes the path of the binary. Stops at the first failure.
"""

import asyncio
import http.client
import json
import logging
import os
import signal
import ssl
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from haproxy_fleet import PATIENCE, PLACES, QUOTA, Answer, Fleet
from haproxy_store import check_store
from mcp.shared.exceptions import MCPError

BINARY = Path(sys.argv[1]).resolve()


def text(result) -> str:
    assert not result.is_error, result
    return result.content[0].text


def check_error(answer: Answer, status: int) -> None:
    """The body has the shape of an error of JSON-RPC."""
    assert answer[0] == status and answer[1]["content-type"] == "application/json", answer
    body = json.loads(answer[2])
    assert body["jsonrpc"] == "2.0" and body["id"] is None and body["error"]["message"], body
    assert body["error"]["data"]["status"] == status, body
    if status in (429, 503):
        assert int(answer[1]["retry-after"]) > 0, answer


async def check_routes(fleet: Fleet, mode: str) -> None:
    for workspace in ["alice", "bob"]:
        async with fleet.client(workspace, mode) as client:
            read = await client.call_tool("Read", {"file_path": "who.txt"})
            assert text(read) == f"     1\t{workspace} on {PLACES[workspace]}\n", read
            other = fleet.b if workspace == "alice" else fleet.a
            refused = await client.call_tool("Read", {"file_path": str(other.workspaces)})
            assert refused.is_error, refused


async def check_sessions(fleet: Fleet) -> None:
    """A client keeps its session, and no other client gets it."""
    pwd = {"command": "basename $PWD"}
    async with fleet.client("alice", "legacy") as one, fleet.client("alice", "legacy") as two:
        text(await one.call_tool("Bash", {"command": "cd sub"}))
        for _ in range(3):
            assert text(await two.call_tool("Bash", pwd)) == "alice\n"
            assert text(await one.call_tool("Bash", pwd)) == "sub\n"


def check_connections(fleet: Fleet) -> None:
    """Without `initialize` a connection is a session, and so it is behind the router."""
    one, two = fleet.connect(), fleet.connect()
    assert fleet.call(one, "alice", "Bash", {"command": "cd sub"})[0] == 200
    for _ in range(3):
        for connection, directory in [(two, b"alice"), (one, b"sub")]:
            answer = fleet.call(connection, "alice", "Bash", {"command": "basename $PWD"})
            assert b'"' + directory + b"\\n" in answer[2], answer
    for connection in [fleet.connect(), fleet.connect()]:
        answer = fleet.call(connection, "alice", "Bash", {"command": "pwd; cd sub"}, **{"Toolcrib-Session": "shared"})
    assert b"/alice/sub" in answer[2], answer


async def check_events(fleet: Fleet, mode: str) -> None:
    """The command ends only after the client has got the event about its first output."""
    go = fleet.b.workspaces / "bob" / f"go-{mode}"
    command = f"echo first; while ! test -e {go.name}; do sleep 0.05; done; echo last"
    seen = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append(message)
        go.touch()

    async with fleet.client("bob", mode) as client:
        call = client.call_tool("Bash", {"command": command}, progress_callback=on_progress)
        assert text(await asyncio.wait_for(call, PATIENCE)) == "first\nlast\n"
    assert seen


async def failed_call(fleet: Fleet, mode: str, break_it) -> str:
    """The error of a call whose node is broken while the call runs."""
    started = fleet.b.workspaces / "bob" / "started"
    started.unlink(missing_ok=True)
    async with fleet.client("bob", mode) as client:
        call = asyncio.create_task(client.call_tool("Bash", {"command": "touch started; sleep 300"}))
        until = time.monotonic() + PATIENCE
        while not started.exists():
            assert time.monotonic() < until
            await asyncio.sleep(0.05)
        break_it()
        try:
            raise AssertionError(await asyncio.wait_for(call, PATIENCE))
        except MCPError as error:
            return str(error)


def check_refusals(fleet: Fleet) -> None:
    check_error(fleet.request("nobody"), 404)
    check_error(fleet.request("lost"), 503)
    token = f"Bearer {fleet.tokens['alice']}"
    for path in ["/", "/mcp", "/w/alice", "/w/alice/mcp/", "/w//alice/mcp", "/w/alice%2e/mcp", "/w/.alice/mcp", "/W/alice/mcp"]:
        check_error(fleet.request("alice", path), 404)
    assert fleet.request("bob", Authorization=token)[0] == 401
    assert fleet.request("alice", Authorization="")[0] == 401
    for name, status in [("tools.example:8443", 200), ("tools.example", 403), ("evil.example", 403)]:
        assert fleet.request("alice", Host=name)[0] == status, name
    for origin, status in [("https://tools.example:8443", 200), ("https://evil.example", 403), ("null", 403)]:
        assert fleet.request("alice", Origin=origin)[0] == status, origin


def check_certificates(fleet: Fleet) -> None:
    """A node does not talk to a program without a certificate."""
    trust = ssl.create_default_context(cafile=str(fleet.top / "ca.pem"))
    trust.check_hostname = False
    connection = http.client.HTTPSConnection("127.0.0.1", fleet.a.port, context=trust, timeout=PATIENCE)
    try:
        connection.request("GET", "/")
        raise AssertionError(connection.getresponse().status)
    except OSError:
        pass
    finally:
        connection.close()


def check_quota(fleet: Fleet) -> None:
    answers = [fleet.request("busy") for _ in range(QUOTA)]
    # The rate is that of a sliding window, so how many pass depends on the time that they take.
    until = time.monotonic() + PATIENCE
    while answers[-1][0] != 429:
        assert answers[-1][0] == 200 and time.monotonic() < until, answers[-1]
        answers.append(fleet.request("busy"))
    check_error(answers[-1], 429)
    assert fleet.request("alice")[0] == 200


def check_move(fleet: Fleet) -> None:
    """A workspace gets another node without a reload."""
    new = fleet.b.workspaces / "carol"
    (fleet.a.workspaces / "carol").rename(new)
    fleet.b.add_token("carol")
    assert fleet.request("carol")[0] == 404
    fleet.change_map(f"set map {fleet.map} carol node-b")
    assert fleet.request("carol")[0] == 200
    fleet.change_map(f"del map {fleet.map} carol")
    check_error(fleet.request("carol"), 404)


async def check_failures(fleet: Fleet, mode: str) -> None:
    # With `initialize` the response has begun before the call ends, so that only its end can tell.
    expected = "stream ended" if mode == "legacy" else "may have had effects"
    error = await failed_call(fleet, mode, fleet.b.stop)
    assert expected in error, error
    fleet.wait_for_status("bob", 503)
    check_error(fleet.request("bob"), 503)
    assert fleet.request("alice")[0] == 200
    fleet.b.start()
    fleet.wait_for_status("bob", 200)

    error = await failed_call(fleet, mode, lambda: os.kill(fleet.b.server.pid, signal.SIGSTOP))
    assert expected in error, error
    check_error(fleet.request("bob"), 503)
    os.kill(fleet.b.server.pid, signal.SIGCONT)
    fleet.wait_for_status("bob", 200)


async def main() -> None:
    # It warns about a session that ended with 202, or whose node is gone.
    logging.getLogger("mcp").setLevel(logging.ERROR)
    # Not in /tmp, which the sandbox replaces.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory, ExitStack() as exit:
        fleet = Fleet(BINARY, Path(directory), exit)
        for mode in ["legacy", "2026-07-28"]:
            await check_routes(fleet, mode)
            await check_events(fleet, mode)
            print(f"HAProxy, {mode}: routes and events are fine")
        await check_sessions(fleet)
        check_connections(fleet)
        check_refusals(fleet)
        check_certificates(fleet)
        check_quota(fleet)
        check_move(fleet)
        print("HAProxy: sessions, refusals, certificates, quota and a moved workspace are fine")
        for mode in ["legacy", "2026-07-28"]:
            await check_failures(fleet, mode)
            print(f"HAProxy, {mode}: a node that ends or hangs is fine")
    await check_store(BINARY)


asyncio.run(main())
