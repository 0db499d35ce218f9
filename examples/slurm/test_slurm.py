#!/usr/bin/env python3
"""Runs workspaces.sbatch on a Slurm cluster of one node, which is made in a temporary directory. Needs root.

    python3 test_slurm.py path/to/toolcrib

Needs slurmctld, slurmd and munged. Prints one line if everything is fine, and stops at the first failure.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORKSPACES = 8
PATIENCE = 120
"""Seconds until a wait for something that must happen gives up."""

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={top}/munge.sock
StateSaveLocation={top}/controller
SlurmdSpoolDir={top}/spool
SlurmctldPidFile={top}/slurmctld.pid
SlurmdPidFile={top}/slurmd.pid
SlurmctldLogFile={top}/slurmctld.log
SlurmdLogFile={top}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Cluster:
    """munged, slurmctld and slurmd, in the foreground, so that they end with this program."""

    def __init__(self, top: Path, exit: ExitStack) -> None:
        self.top, self.exit = top, exit
        host = socket.gethostname().split(".")[0]
        for name in ["controller", "spool"]:
            (top / name).mkdir()
        key = top / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o600)
        configuration = top / "slurm.conf"
        facts = {"controller": free_port(), "daemon": free_port(), "cpus": os.cpu_count() or 1}
        configuration.write_text(CONFIGURATION.format(top=top, host=host, **facts))
        self.env = {**os.environ, "SLURM_CONF": str(configuration)}
        files = {"key-file": key, "socket": top / "munge.sock", "pid-file": top / "munged.pid"}
        files |= {"log-file": top / "munged.log", "seed-file": top / "munge.seed"}
        self.start("munged", "--foreground", "--force", *[f"--{name}={file}" for name, file in files.items()])
        self.wait(lambda: (top / "munge.sock").exists())
        self.start("slurmctld", "-D", "-f", str(configuration))
        self.start("slurmd", "-D", "-f", str(configuration), "-N", host)
        self.wait(lambda: b"idle" in self.run("sinfo", "-h", "-o", "%t", check=False).stdout)

    def start(self, *words: str) -> None:
        log = self.exit.enter_context((self.top / f"{words[0]}.out").open("wb"))
        process = subprocess.Popen(words, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.exit.callback(lambda: (process.terminate(), process.wait()))

    def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(words, env=self.env, capture_output=True, check=check, timeout=PATIENCE)

    def wait(self, condition) -> None:
        until = time.monotonic() + PATIENCE
        while not condition():
            logs = [file.read_text()[-1000:] for file in sorted(self.top.glob("*.out"))]
            assert time.monotonic() < until, logs
            time.sleep(0.2)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def write_tasks(top: Path, outside: Path) -> None:
    """Each task writes a file, runs a command, looks for the workspaces of others, and tries to leave its own."""
    (top / "source").mkdir()
    (top / "source" / "given.txt").write_text("given\n")
    (top / "tasks").mkdir()
    for number in range(WORKSPACES):
        calls = [
            {"tool": "Write", "args": {"file_path": "number.txt", "content": f"{number}\n"}},
            {"tool": "Bash", "args": {"command": "cat given.txt number.txt > both.txt && pwd"}},
            {"tool": "Bash", "args": {"command": "ls ../.."}},
            {"tool": "Bash", "args": {"command": f"touch {outside}/escaped-{number}"}},
            {"tool": "Write", "args": {"file_path": f"{outside}/escaped-{number}", "content": "x"}},
        ]
        lines = [json.dumps({"id": at, "wait": True, **call}) for at, call in enumerate(calls)]
        (top / "tasks" / f"{number}.jsonl").write_text("".join(f"{line}\n" for line in lines))


def check_results(top: Path, outside: Path) -> None:
    directories = set()
    for number in range(WORKSPACES):
        replies = [json.loads(line) for line in (top / "results" / f"{number}.jsonl").read_text().splitlines()]
        assert [reply["success"] for reply in replies] == [True, True, True, False, False], replies
        assert len(replies[2]["output"].split()) == 1, replies[2]
        directories.add(replies[1]["output"].splitlines()[0])
        with tarfile.open(top / "results" / f"{number}.tar") as files:
            both = files.extractfile("./both.txt")
            assert both is not None and both.read() == f"given\n{number}\n".encode()
    assert len(directories) == WORKSPACES, directories
    assert not list(outside.iterdir())
    assert not any(Path(directory).exists() for directory in directories)


def collect(top: Path) -> tuple[int, list[str], str]:
    words = [sys.executable, str(HERE / "collect.py"), str(top / "tasks"), str(top / "results")]
    done = subprocess.run(words, capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines(), done.stderr


def main(binary: Path) -> None:
    with ExitStack() as exit:
        top = Path(exit.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
        # The sandbox has its own /var/tmp.
        outside = Path(exit.enter_context(tempfile.TemporaryDirectory(prefix=".toolcrib-slurm-", dir=Path.home())))
        (top / "scratch").mkdir()
        write_tasks(top, outside)
        (top / "cluster").mkdir()
        cluster = Cluster(top / "cluster", exit)
        variables = {"SOURCE": top / "source", "TASKS": top / "tasks", "RESULTS": top / "results"}
        variables |= {"SCRATCH": top / "scratch", "TOOLCRIB": binary}
        export = "--export=ALL," + ",".join(f"{name}={value}" for name, value in variables.items())
        script = str(HERE / "workspaces.sbatch")
        started = time.monotonic()
        cluster.run("sbatch", f"--array=0-{WORKSPACES - 1}", "--wait", export, script)
        seconds = time.monotonic() - started
        check_results(top, outside)
        assert not list((top / "scratch").iterdir())
        code, lines, errors = collect(top)
        assert (code, len(lines), errors) == (0, WORKSPACES, ""), (code, lines, errors)
        assert json.loads(lines[3]) == {"task": 3, "calls": 5, "failed": json.loads(lines[3])["failed"]}

        (top / "tasks" / f"{WORKSPACES}.jsonl").write_text("")
        (top / "results" / "2.jsonl").unlink()
        code, lines, errors = collect(top)
        assert (code, errors) == (1, f"no result: --array=2,{WORKSPACES}\n"), errors
        cluster.run("sbatch", errors.split()[-1], "--wait", export, script)
        assert collect(top)[0] == 0
        print(f"Slurm: {WORKSPACES} workspaces in {seconds:.1f} s, and 2 again: fine")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve())
