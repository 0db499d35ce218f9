"""Two nodes behind HAProxy with a store in PostgreSQL: the quota of a tenant, and a question that outlives its node."""

import json
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from haproxy_fleet import PATIENCE, Answer, Fleet
from mcp.shared.exceptions import MCPError
from postgres_server import Store

ASKS = '[[rule]]\ndecision = "ask"\nkind = "edit"\npaths = ["asked*"]\n'
ASKED = {"file_path": "asked.txt", "content": "x\n"}
LIMIT = "calls-per-minute"


def wait_for(wanted):
    """Waits until a function returns something, and returns that."""
    until = time.monotonic() + PATIENCE
    while not (found := wanted()):
        assert time.monotonic() < until
        time.sleep(0.2)
    return found


def request_with_status(fleet: Fleet, workspace: str, status: int) -> Answer | None:
    answer = fleet.request(workspace)
    return answer if answer[0] == status else None


async def check_tenant_quota(fleet: Fleet, store: Store) -> None:
    """A limit in the store holds on both nodes, and its 429 comes through both proxies."""
    store.toolcrib("quota", store.owner, "--tenant", "acme", "--set", f"{LIMIT}=0")
    for workspace in ["alice", "bob"]:
        status, headers, body = wait_for(lambda: request_with_status(fleet, workspace, 429))
        assert headers["content-type"] == "application/json", headers
        assert 1 <= int(headers["retry-after"]) <= 60, headers
        message = json.loads(body)
        # It is the answer to this request, and not the router's own.
        assert message["id"] == 7 and f"{LIMIT}=0" in message["error"]["message"], message
        expected = {"status": status, "limit": LIMIT, "retry_after_seconds": int(headers["retry-after"])}
        assert message["error"]["data"] == expected, message
    for mode in ["legacy", "2026-07-28"]:
        async with fleet.client("alice", mode) as client:
            assert (await client.list_tools()).tools
            try:
                raise AssertionError(await client.call_tool("Read", {"file_path": "who.txt"}))
            except MCPError as error:
                assert f"{LIMIT}=0" in str(error), error
    store.toolcrib("quota", store.owner, "--tenant", "acme", "--clear")
    for workspace in ["alice", "bob"]:
        wait_for(lambda: request_with_status(fleet, workspace, 200))


def waiting(store: Store) -> list[str]:
    """The ids of the questions that wait."""
    listed = json.loads(store.toolcrib("approvals", store.tenant, "--json"))
    return [question["id"] for question in listed["approvals"]]


def write(fleet: Fleet) -> Answer:
    connection = fleet.connect()
    try:
        return fleet.call(connection, "carol", "Write", ASKED)
    finally:
        connection.close()


@contextmanager
def question(fleet: Fleet, store: Store):
    """A call that waits for its answer, and the id of the question."""
    with ThreadPoolExecutor() as pool:
        call = pool.submit(write, fleet)
        (asked,) = wait_for(lambda: waiting(store))
        yield call, asked


def check_moved_question(fleet: Fleet, store: Store) -> None:
    """A question of a node that has died is answered, and the answer is for one call on the next node."""
    with question(fleet, store) as (call, asked):
        fleet.a.stop()
        status, _, body = call.result(PATIENCE)
        assert status == 502 and b"may have had effects" in body, (status, body)
    store.toolcrib("approve", store.tenant, asked)
    (old, new) = (fleet.a.workspaces / "carol", fleet.b.workspaces / "carol")
    assert not (old / "asked.txt").exists()
    shutil.copytree(old, new)
    fleet.b.add_token("carol")
    fleet.change_map(f"set map {fleet.map} carol node-b")

    def retried() -> Answer | None:
        # The lease of the node that has died ends after some time.
        answer = write(fleet)
        assert answer[0] == 200, answer
        return None if b"does not have its lease" in answer[2] else answer

    answer = wait_for(retried)
    assert b'"isError":true' not in answer[2] and (new / "asked.txt").read_text() == "x\n", answer
    assert waiting(store) == []
    fence = store.psql("SELECT fence FROM toolcrib.leases WHERE workspace = 'carol'").stdout
    assert fence.strip() == "2", fence
    # Once: the same call is a new question.
    (new / "asked.txt").unlink()
    with question(fleet, store) as (call, again):
        assert again != asked
        store.toolcrib("deny", store.tenant, again)
        answer = call.result(PATIENCE)
        assert b'"isError":true' in answer[2] and not (new / "asked.txt").exists(), answer
    used = store.psql("SELECT count(*) FROM toolcrib.approvals WHERE answer = 'yes' AND used IS NOT NULL").stdout
    assert used.strip() == "1", used


async def check_store(binary: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory, ExitStack() as exit:
        top = Path(directory)
        store = Store(str(binary), top, exit)
        rules = top / "rules.toml"
        rules.write_text(ASKS)
        (top / "fleet").mkdir()
        places = {"alice": "node-a", "carol": "node-a", "bob": "node-b"}
        more = ("--store", str(store.tenant), "--lease", "--rules", str(rules))
        fleet = Fleet(binary, top / "fleet", exit, places, more)
        await check_tenant_quota(fleet, store)
        print("HAProxy: the quota of a tenant is fine")
        check_moved_question(fleet, store)
        print("HAProxy: a question that outlives its node is fine")
