"""Checks Toolcrib in gVisor: `outer = "gvisor"` is verified, commands run in it, and replies name it.

Usage: gvisor.py PATH-OF-TOOLCRIB PATH-OF-RUNSC

Stops at the first failure and exits with 1.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SANDBOXD = """
import json, os, signal, subprocess, sys, time, urllib.request
program, root, state = sys.argv[1:]
flags = ["--outer", "gvisor", "--network-access", "all", "--rest", "8080", "--grpc", "9090", "--trust-network"]
server = subprocess.Popen([program, "sandboxd", "--root", root, "--state", state, *flags], stderr=subprocess.PIPE)
server.stderr.readline()
url = "http://127.0.0.1:8080/v1"
put = urllib.request.Request(url + "/files/dir/a.txt", data=b"content", method="PUT")
urllib.request.urlopen(put).close()
read = urllib.request.urlopen(url + "/files/dir/a.txt").read().decode()
metadata = json.load(urllib.request.urlopen(url + "/metadata"))["toolcrib"]
server.send_signal(signal.SIGTERM)
print(json.dumps({"read": read, "metadata": metadata, "exit": server.wait()}))
"""


def main() -> None:
    program, runsc = (str(Path(argument).resolve()) for argument in sys.argv[1:])
    with tempfile.TemporaryDirectory() as top:
        root, state = Path(top) / "workspace", Path(top) / "state"
        root.mkdir()
        (Path(top) / "home").mkdir()
        environment = {**os.environ, "HOME": f"{top}/home"}
        words = ["--root", str(root), "--state", str(state)]
        inside = [runsc, "--network=none", "--ignore-cgroups", f"--root={top}/runsc", "--platform=ptrace",
                  "do", "-force-overlay=false"]

        def run(*arguments: str, around: list[str] = inside) -> subprocess.CompletedProcess:
            return subprocess.run([*around, *arguments], capture_output=True, text=True, env=environment, timeout=600)

        def bash(command: str, *flags: str, around: list[str] = inside) -> dict:
            arguments = json.dumps({"command": command})
            ran = run(program, *words, *flags, "call", "--json", "Bash", arguments, around=around)
            assert ran.stdout, ran.stderr
            return json.loads(ran.stdout)

        outer = ["--outer", "gvisor"]
        elsewhere = run(program, *words, *outer, "call", "LS", "{}", around=[])
        assert elsewhere.returncode == 2 and "not in gVisor" in elsewhere.stderr, elsewhere
        print("ok: refused where there is no gVisor")

        refused = bash("echo x")
        assert not refused["success"] and refused["error"]["kind"] == "unsupported", refused
        refused = bash("echo x", *outer)
        assert not refused["success"] and 'network = "all"' in refused["error"]["hint"], refused
        print("ok: refused without the declaration, and with a network that cannot be switched off")

        outer += ["--network-access", "all"]
        ran = bash("echo hi > a.txt; cat a.txt; ulimit -c; grep NoNewPrivs /proc/self/status", *outer)
        assert ran["success"] and ran["output"].startswith("hi\n0\n"), ran
        assert ran["metadata"]["sandbox"] == "outer gvisor" and ran["metadata"]["network"] == "all", ran
        assert "gVisor" in ran["output"] and "Changes by commands cannot be undone" in ran["output"], ran
        assert (root / "a.txt").read_text() == "hi\n"
        failed = bash("exit 3", *outer)
        assert not failed["success"] and failed["metadata"]["exit_code"] == 3, failed
        print("ok: commands run, and the reply names gVisor")

        arguments = json.dumps({"file_path": "b.txt", "content": "one\n"})
        written = run(program, *words, *outer, "call", "Write", arguments)
        assert written.returncode == 0, written
        undone = run(program, *words, *outer, "undo", "--yes")
        assert undone.returncode == 0 and not (root / "b.txt").exists(), undone
        print("ok: file tools and Undo work")

        doctor = run(program, *words, *outer, "doctor")
        assert "This system is in gVisor, as declared" in doctor.stdout, doctor
        print("ok: doctor names gVisor")

        request = json.dumps({"id": 1, "op": "exec", "args": {"argv": ["sh", "-c", "cat; exit 5"]}, "bytes": 3})
        info = json.dumps({"id": 2, "op": "info"})
        ran = subprocess.run([*inside, program, *words, *outer, "run"], input=f"{request}\nabc{info}\n",
                             capture_output=True, text=True, env=environment, timeout=600)
        assert '"bytes":3}\nabc' in ran.stdout and '"exit_code":5' in ran.stdout, ran
        assert '"outer":"gvisor"' in ran.stdout, ran
        print("ok: raw operations run commands")

        served = run(sys.executable, "-c", SANDBOXD, program, str(root), str(state))
        assert served.returncode == 0, served
        served = json.loads(served.stdout)
        assert served["read"] == "content" and served["exit"] == 0, served
        assert served["metadata"]["outer"] == "gvisor" and served["metadata"]["sandbox"] is None, served
        print("ok: sandboxd serves files")


if __name__ == "__main__":
    main()
