"""Ray: workspaces on a cluster of two nodes on this machine."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

# Ray and the program keep files in the home directory; the paths of Ray's sockets must be short.
HOME = tempfile.mkdtemp(prefix="r", dir="/tmp")
os.environ.update(HOME=HOME, RAY_TMPDIR=HOME, RAY_USAGE_STATS_ENABLED="0")

import ray  # noqa: E402
import toolcrib  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402
from toolcrib.adapters.ray import GONE, Workspace, find_workspace, open_workspace  # noqa: E402

PATIENCE = 120
"""Seconds until a wait for something that must happen gives up."""

SECOND_DRIVER = """
import ray, sys
from toolcrib.adapters.ray import find_workspace
ray.init(address=sys.argv[1], namespace="another", log_to_driver=False)
workspace = find_workspace("shared-name")
print(ray.get(workspace.read("from.txt")).decode(), ray.get(workspace.place())["node"])
ray.get(workspace.write("answer.txt", "from the second driver"))
"""


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")


def wait_until(condition: Any) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > until:
            raise AssertionError("it did not happen")
        time.sleep(0.1)


class Ray(unittest.TestCase):
    cluster: Any
    first: Any
    second: Any

    @classmethod
    def setUpClass(cls) -> None:
        cls.cluster = Cluster()
        cls.first = cls.cluster.add_node(num_cpus=1, resources={"first": 1}, include_dashboard=False)
        cls.second = cls.cluster.add_node(num_cpus=1, resources={"second": 1})
        ray.init(address=cls.cluster.address, namespace="tests", log_to_driver=False)

    @classmethod
    def tearDownClass(cls) -> None:
        ray.shutdown()
        cls.cluster.shutdown()
        shutil.rmtree(HOME, ignore_errors=True)

    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.top = Path(temporary.name)

    def open(self, name: str, **options: Any) -> Workspace:
        options = {"create": True, "state": str(self.top / f"{name}-state"), **options}
        workspace = open_workspace(name, self.top / name, **options)
        self.addCleanup(workspace.close)
        return workspace

    def test_workspaces_on_both_nodes(self) -> None:
        one = self.open("one", resources={"first": 0.01})
        two = self.open("two", resources={"second": 0.01})
        nodes = [ray.get(workspace.place())["node"] for workspace in (one, two)]
        self.assertEqual(nodes, [self.first.node_id, self.second.node_id])
        ray.get([one.write("a.txt", "one\n"), two.write("a.txt", "two\n")])
        self.assertEqual(ray.get([one.read("a.txt"), two.read("a.txt")]), [b"one\n", b"two\n"])
        reply = ray.get(two.call("Read", file_path="a.txt"))
        self.assertEqual(reply.output, "     1\ttwo\n")
        done = ray.get(one.exec(f"cat a.txt; touch {self.top}/escaped; echo $NAME", env={"NAME": "n"}))
        self.assertEqual(done.stdout, b"one\nn\n")
        self.assertFalse((self.top / "escaped").exists())
        self.assertEqual([entry.name for entry in ray.get(one.list())], ["a.txt"])
        with self.assertRaises(toolcrib.NotFound):
            ray.get(one.read("missing"))

    def test_without_a_choice_the_nodes_share_them(self) -> None:
        workspaces = [self.open(f"any{number}") for number in range(4)]
        self.assertEqual(len({ray.get(workspace.place())["node"] for workspace in workspaces}), 2)

    def test_second_driver_finds_it(self) -> None:
        workspace = self.open("shared-name")
        ray.get(workspace.write("from.txt", "first"))
        command = [sys.executable, "-c", SECOND_DRIVER, self.cluster.address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.stdout.split(), ["first", ray.get(workspace.place())["node"]], done.stderr)
        # The driver has ended; the workspace has not.
        self.assertEqual(ray.get(workspace.read("answer.txt")), b"from the second driver")

    def test_task_uses_it(self) -> None:
        workspace = self.open("for-tasks", resources={"second": 0.01})

        def work(given: Workspace) -> bytes:
            return ray.get(given.read("a.txt"))

        ray.get(workspace.write("a.txt", "read by a task"))
        task: Any = ray.remote(work)
        self.assertEqual(ray.get(task.options(num_cpus=0.1).remote(workspace)), b"read by a task")

    def test_many_calls_at_once(self) -> None:
        workspace = self.open("busy")

        async def calls() -> list[Any]:
            refs = [workspace.exec(f"echo {number}") for number in range(50)]
            return await asyncio.gather(*[asyncio.wrap_future(ref.future()) for ref in refs])

        done = asyncio.run(calls())
        self.assertEqual([result.stdout for result in done], [f"{number}\n".encode() for number in range(50)])

    def test_reset(self) -> None:
        workspace = self.open("reset")
        ray.get(workspace.write("kept.txt", "kept\n"))
        start = ray.get(workspace.snapshot())
        for _ in range(2):
            ray.get(workspace.exec("echo made > made.txt; rm kept.txt")).check()
            ray.get(workspace.write("more.txt", "more"))
            ray.get(workspace.restore(start))
            self.assertEqual([entry.name for entry in ray.get(workspace.list())], ["kept.txt"])

    def test_program_ends_with_the_actor(self) -> None:
        workspace = self.open("ends")
        command = workspace.exec("sleep 1000")
        wait_until(lambda: ray.get(workspace.place())["program"] is not None)
        program = ray.get(workspace.place())["program"]
        self.assertTrue(is_running(program))
        workspace.close()
        wait_until(lambda: not is_running(program))
        with self.assertRaises((toolcrib.ToolcribError, *GONE)):
            ray.get(command)
        with self.assertRaises(ValueError):
            find_workspace("ends")

    def test_restarted_actor_has_the_same_directory(self) -> None:
        workspace = self.open("again")
        ray.get(workspace.write("a.txt", "before\n"))
        point = ray.get(workspace.snapshot())
        ray.get(workspace.write("a.txt", "after\n"))
        before = ray.get(workspace.place())
        os.kill(before["actor"], signal.SIGKILL)
        wait_until(lambda: not is_running(before["program"]))

        def answers() -> bool:
            try:
                return bool(ray.get(workspace.read("a.txt")) == b"after\n")
            except GONE:
                return False

        wait_until(answers)
        after = ray.get(workspace.place())
        self.assertEqual((after["node"], after["root"]), (before["node"], before["root"]))
        self.assertNotEqual(after["actor"], before["actor"])
        ray.get(workspace.restore(point))
        self.assertEqual(ray.get(workspace.read("a.txt")), b"before\n")

    def test_lost_node(self) -> None:
        third = self.cluster.add_node(num_cpus=1, resources={"third": 1})
        own = self.open("on-disk", node=third.node_id)
        shared = self.open("on-network", node=third.node_id, shared=True)
        ray.get(own.write("a.txt", "own"))
        ray.get(shared.write("a.txt", "shared"))
        program = ray.get(own.place())["program"]
        self.cluster.remove_node(third, allow_graceful=False)
        wait_until(lambda: not is_running(program))
        with self.assertRaises(GONE):
            while True:
                # The cluster takes a moment to see that the node is gone.
                ray.get(own.read("a.txt"), timeout=PATIENCE)

        def is_elsewhere() -> bool:
            try:
                return ray.get(shared.place())["node"] != third.node_id
            except GONE:
                return False

        wait_until(is_elsewhere)
        self.assertEqual(ray.get(shared.read("a.txt")), b"shared")

    def test_refused(self) -> None:
        with self.assertRaises(toolcrib.InvalidArgument):
            open_workspace("relative", "somewhere")
        with self.assertRaises(GONE):
            open_workspace("missing", self.top / "missing")
        # The name is free again.
        self.open("missing")
        with self.assertRaises(toolcrib.InvalidArgument):
            open_workspace("missing", self.top)


if __name__ == "__main__":
    unittest.main()
