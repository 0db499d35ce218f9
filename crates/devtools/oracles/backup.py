"""Checks `toolcrib serve --backup` and `toolcrib backup` with moto, a server with the interface of S3.

Usage: backup.py PROGRAM [ROUNDS] [SEED]

First the scenarios, then ROUNDS rounds of random changes by tools and commands, with kills of the program at random moments and a
network that fails. After each kill the backup is restored, and each file in it must be one that the workspace had at the time that
the backup names, or later. After each round the restored files must equal the workspace, byte by byte, and undo must work in both.
"""

import hashlib
import http.client
import json
import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time

# The first requests make the user; all later ones need a right signature.
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "4"
os.environ["AWS_ACCESS_KEY_ID"] = os.environ["AWS_SECRET_ACCESS_KEY"] = "setup"
os.environ["AWS_DEFAULT_REGION"] = "us-east-1"

import logging  # noqa: E402

import boto3  # noqa: E402
from moto.server import ThreadedMotoServer  # noqa: E402

# It logs each request.
logging.getLogger("werkzeug").setLevel(logging.ERROR)

BUCKET = "backups"


class Network:
    """A port between the program and the server, which can fail."""

    def __init__(self, port):
        self.server = port
        self.down = False
        self.cut_after = None  # Bytes of a connection before it is cut.
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            if self.down:
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self.server))
            except OSError:
                client.close()
                continue
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self.relay, args=(one, other), daemon=True).start()

    def relay(self, one, other):
        passed = 0
        try:
            while data := one.recv(65536):
                passed += len(data)
                if self.down or (self.cut_after is not None and passed > self.cut_after):
                    break
                other.sendall(data)
        except OSError:
            pass
        for end in (one, other):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Store:
    def __init__(self):
        self.moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self.moto.start()
        _, port = self.moto.get_host_and_port()
        self.network = Network(port)
        url = f"http://127.0.0.1:{port}"
        iam = boto3.client("iam", endpoint_url=url)
        iam.create_user(UserName="u")
        allow = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Resource": "*", "Action": ["s3:*"]}]}
        iam.put_user_policy(UserName="u", PolicyName="p", PolicyDocument=json.dumps(allow))
        key = iam.create_access_key(UserName="u")["AccessKey"]
        self.keys = (key["AccessKeyId"], key["SecretAccessKey"])
        boto3.client("s3", endpoint_url=url).create_bucket(Bucket=BUCKET)
        self.s3 = boto3.client(
            "s3", endpoint_url=url, aws_access_key_id=self.keys[0], aws_secret_access_key=self.keys[1]
        )

    def names(self, prefix):
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return [one["Key"] for page in pages for one in page.get("Contents", [])]

    def get(self, name):
        return self.s3.get_object(Bucket=BUCKET, Key=name)["Body"].read()

    def put(self, name, body):
        self.s3.put_object(Bucket=BUCKET, Key=name, Body=body)


class Machine:
    """A home, a workspace and a state directory."""

    def __init__(self, top, name, store, program):
        self.top = os.path.join(top, name)
        self.home = os.path.join(self.top, "home")
        self.workspace = os.path.join(self.top, "ws")
        self.state = os.path.join(self.top, "state")
        self.program = program
        for directory in (self.home, self.workspace):
            os.makedirs(directory)
        keep = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        self.environment = keep | {
            "HOME": self.home,
            "AWS_ACCESS_KEY_ID": store.keys[0],
            "AWS_SECRET_ACCESS_KEY": store.keys[1],
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{store.network.port}",
        }

    def command(self, *arguments, workspace=None):
        root = ["--root", workspace or self.workspace, "--state", self.state]
        return [self.program, *root, *arguments]

    def run(self, *arguments, workspace=None, environment=None):
        """The exit code, and what was printed."""
        done = subprocess.run(
            self.command(*arguments, workspace=workspace),
            env=environment or self.environment,
            cwd=self.top,
            capture_output=True,
            text=True,
            timeout=300,
        )
        return done.returncode, done.stdout + done.stderr

    def ok(self, *arguments, **options):
        code, said = self.run(*arguments, **options)
        assert code == 0, (arguments, code, said)
        return said

    def refused(self, *arguments, **options):
        code, said = self.run(*arguments, **options)
        assert code != 0, (arguments, said)
        return said


class Session:
    """`toolcrib run` with a backup."""

    def __init__(self, machine, address):
        self.process = subprocess.Popen(
            machine.command("run", "--no-monitor", "--backup", address),
            env=machine.environment,
            cwd=machine.top,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.number = 0
        self.notes = []
        threading.Thread(target=self.read_notes, daemon=True).start()

    def read_notes(self):
        for line in self.process.stderr:
            self.notes.append(line)

    def call(self, tool, **arguments):
        self.number += 1
        request = {"id": self.number, "tool": tool, "args": arguments}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        while line := self.process.stdout.readline():
            reply = json.loads(line)
            if reply.get("id") == self.number:
                return reply
        raise AssertionError(f"no reply: {self.notes}")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)


def snapshot(directory, leave_out=(), times=True):
    """What is at each path."""
    found = {}
    top = os.fsencode(directory)

    def walk(path, relative):
        for entry in os.scandir(path):
            name = os.path.join(relative, entry.name) if relative else entry.name
            if name in leave_out:
                continue
            status = entry.stat(follow_symlinks=False)
            mode = stat.S_IMODE(status.st_mode)
            if entry.is_symlink():
                found[name] = ("link", os.readlink(entry.path))
            elif entry.is_dir():
                found[name] = ("directory", mode)
                walk(entry.path, name)
            elif entry.is_file():
                with open(entry.path, "rb") as file:
                    digest = hashlib.sha256(file.read()).hexdigest()
                found[name] = ("file", mode, digest) + ((status.st_mtime_ns,) if times else ())

    walk(top, b"")
    return found


def same(expected, actual, what):
    paths = sorted(path for path in expected.keys() | actual.keys() if expected.get(path) != actual.get(path))
    assert not paths, (what, [(path, expected.get(path), actual.get(path)) for path in paths[:5]])


def write(path, content, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
    os.chmod(path, mode)


def git(directory, *arguments):
    environment = os.environ | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    done = subprocess.run(["git", *who, *arguments], cwd=directory, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def wait_until(condition, what, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.1)


class Scenarios:
    def __init__(self, top, store, program):
        self.top, self.store, self.program = top, store, program
        self.count = 0

    def machine(self):
        self.count += 1
        return Machine(self.top, f"machine-{self.count}", self.store, self.program)

    def all_kinds_of_files(self):
        """Files of all kinds come back, and those that are documented are left out."""
        machine, address = self.machine(), f"s3://{BUCKET}/kinds/a=1"
        top = machine.workspace
        write(f"{top}/a.txt", b"one\n")
        write(f"{top}/run.sh", b"#!/bin/sh\n", 0o755)
        write(f"{top}/empty", b"")
        write(f"{top}/large.bin", random.Random(1).randbytes(40 << 20))
        write(f"{top}/.gitignore", b"target/\n*.log\nobjects\n")
        write(f"{top}/target/out", b"made again")
        write(f"{top}/debug.log", b"an ignored file")
        os.makedirs(f"{top}/empty-directory")
        os.makedirs(f"{top}/closed")
        write(f"{top}/closed/inside", b"x")
        os.chmod(f"{top}/closed", 0o555)
        os.symlink("/etc/passwd", f"{top}/outside")
        os.symlink("a.txt", f"{top}/inside")
        os.symlink("missing", f"{top}/dangling")
        write(os.fsdecode(os.fsencode(top) + b"/\xff\xfe name"), b"any bytes")
        os.mkfifo(f"{top}/fifo")
        git(top, "init", "-q")
        git(top, "add", "a.txt")
        git(top, "commit", "-q", "-m", "one")
        said = machine.ok("backup", "now", address, "--json")
        left_out = json.loads(said)["left_out"]
        assert (left_out["ignored_directories"], left_out["special"], left_out["unreadable"]) == (1, 1, 0), said
        assert json.loads(machine.ok("backup", "now", address, "--json"))["new"] is False
        other = self.machine()
        shutil.rmtree(other.workspace)
        machine.ok("backup", "verify", address)
        other.ok("backup", "restore", address, other.workspace, workspace=other.home)
        same(snapshot(top, {b"target", b"fifo"}), snapshot(other.workspace), "all kinds of files")
        assert git(other.workspace, "log", "--format=%s") == "one\n"
        git(other.workspace, "fsck", "--strict")
        said = other.refused("backup", "restore", address, other.workspace, workspace=other.home)
        assert "missing or empty" in said, said
        assert "no backup" in machine.refused("backup", "status", f"s3://{BUCKET}/nothing"), said

    def history(self):
        """History and undo work in the restored workspace, beside another workspace with the same state directory."""
        machine, address = self.machine(), f"s3://{BUCKET}/history"
        write(f"{machine.workspace}/a.txt", b"one\n")
        session = Session(machine, address)
        assert session.call("Read", file_path="a.txt")
        session.call("Edit", file_path="a.txt", old_string="one", new_string="two")
        session.call("Write", file_path="new/b.txt", content="b\n")
        session.call("Bash", command="printf three > c.txt; rm a.txt")
        session.end()
        other = self.machine()
        own = Session(other, f"s3://{BUCKET}/history-own")
        own.call("Write", file_path="x.txt", content="x\n")
        own.end()
        restored = os.path.join(other.top, "restored")
        other.ok("backup", "restore", address, restored)
        same(snapshot(machine.workspace), snapshot(restored), "history")
        before = json.loads(machine.ok("log", "--json"))
        after = json.loads(other.ok("log", "--json", workspace=restored))
        shown = lambda log: [(one["tool"], [file["action"] for file in one["files"]]) for one in log["changes"]]
        assert shown(before) == shown(after) and len(shown(after)) == 3, (before, after)
        other.ok("undo", "--yes", workspace=restored)
        with open(f"{restored}/a.txt") as file:
            assert file.read() == "two\n"
        assert not os.path.exists(f"{restored}/c.txt")
        other.ok("undo", "--yes", "--path", f"{restored}/a.txt", workspace=restored)
        with open(f"{restored}/a.txt") as file:
            assert file.read() == "one\n"
        assert len(json.loads(other.ok("log", "--json"))["changes"]) == 1

    def one_writer(self):
        """Two machines never write the same backup."""
        first, second, address = self.machine(), self.machine(), f"s3://{BUCKET}/writer"
        write(f"{first.workspace}/a.txt", b"one\n")
        write(f"{second.workspace}/other.txt", b"another workspace\n")
        first.ok("backup", "now", address)
        assert "has segment 1" in second.refused("backup", "now", address)
        taken = os.path.join(second.top, "taken")
        second.ok("backup", "restore", address, taken, "--take-over")
        write(f"{first.workspace}/late.txt", b"after the end\n")
        said = first.refused("backup", "now", address)
        assert "which this machine has not written" in said, said
        assert "which this machine has not written" in first.refused("backup", "status")
        write(f"{taken}/b.txt", b"two\n")
        second.ok("backup", "now", address, workspace=taken)
        third = os.path.join(first.top, "third")
        first.ok("backup", "restore", address, third)
        same(snapshot(taken), snapshot(third), "one writer")
        # A restored copy without --take-over does not continue the backup.
        assert "has segment 3" in first.refused("backup", "now", address, workspace=third)

    def damage(self):
        """Truncated, garbled and missing objects are found, and nothing is left of a failed restore."""
        machine, address = self.machine(), f"s3://{BUCKET}/damage"
        for number in range(3):
            write(f"{machine.workspace}/f{number}", b"content %d\n" % number * 50)
            machine.ok("backup", "now", address)
        names = self.store.names("damage/")
        assert len(names) == 6, names
        place = os.path.join(machine.top, "restored")
        for name in names:
            content = self.store.get(name)
            changed = bytearray(content)
            changed[len(changed) // 2] ^= 0x20
            for broken in (content[:-1], b"", bytes(changed), content + b"x", None):
                if broken is None:
                    self.store.s3.delete_object(Bucket=BUCKET, Key=name)
                else:
                    self.store.put(name, broken)
                restored, said = machine.run("backup", "restore", address, place)
                # Without its last segment, a backup is one of an earlier time.
                if broken is None and name.endswith("3"):
                    assert restored == 0, said
                    shutil.rmtree(place)
                else:
                    assert restored != 0, (name, broken)
                    assert not [one for one in os.listdir(machine.top) if "restored" in one], name
                    machine.refused("backup", "verify", address)
            self.store.put(name, content)
        machine.ok("backup", "verify", address)
        machine.ok("backup", "restore", address, place)
        # The last segment was lost: the machine that wrote it notices.
        self.store.s3.delete_object(Bucket=BUCKET, Key=names[-1])
        assert "missing or was changed" in machine.refused("backup", "now", address)

    def secrets(self):
        """Commands see no keys, by variable or by file, and wrong keys are refused."""
        machine, address = self.machine(), f"s3://{BUCKET}/secrets"
        keys = machine.environment["AWS_SECRET_ACCESS_KEY"]
        session = Session(machine, address)
        reply = session.call("Bash", command="env; cat /proc/self/environ | tr '\\0' '\\n'; true")
        text = json.dumps(reply)
        assert keys not in text and "AWS_SECRET_ACCESS_KEY=" not in text, text
        assert machine.environment["AWS_ACCESS_KEY_ID"] not in text, text
        session.end()
        environment = dict(machine.environment)
        del environment["AWS_SECRET_ACCESS_KEY"]
        assert "no keys" in machine.refused("backup", "now", address, environment=environment)
        keys_file = os.path.join(machine.top, "keys", "file")
        write(keys_file, f"[default]\naws_access_key_id = {machine.environment['AWS_ACCESS_KEY_ID']}\naws_secret_access_key = {keys}\n".encode(), 0o600)
        environment["AWS_SHARED_CREDENTIALS_FILE"] = keys_file
        del environment["AWS_ACCESS_KEY_ID"]
        machine.ok("backup", "now", address, environment=environment)
        machine.environment = environment
        session = Session(machine, address)
        for tool, arguments in (("Read", {"file_path": keys_file}), ("Bash", {"command": f"cat {keys_file}"})):
            assert keys not in json.dumps(session.call(tool, **arguments)), tool
        session.end()
        wrong = environment | {"AWS_ACCESS_KEY_ID": self.store.keys[0], "AWS_SECRET_ACCESS_KEY": "wrong"}
        said = machine.refused("backup", "status", address, environment=wrong)
        assert "403" in said and keys not in said, said

    def network_failure(self):
        """Calls go on without the network, `status` says so, and the backup catches up."""
        machine, address = self.machine(), f"s3://{BUCKET}/failure"
        self.store.network.down = True
        session = Session(machine, address)
        for number in range(5):
            reply = session.call("Write", file_path=f"f{number}", content=f"{number}\n")
            assert "error" not in reply, reply
        problem = lambda: json.loads(machine.run("backup", "status", "--json")[1])["backups"]
        wait_until(lambda: problem() and problem()[0]["problem"], "no problem is reported")
        wait_until(lambda: any("not being copied" in note for note in session.notes), session.notes)
        assert "and then" in machine.run("doctor")[1]
        self.store.network.down = False
        wait_until(lambda: problem() and problem()[0]["problem"] is None, "the backup does not go on")
        wait_until(lambda: any("again" in note for note in session.notes), session.notes)
        session.kill()
        restored = os.path.join(machine.top, "restored")
        machine.ok("backup", "restore", address, restored)
        same(snapshot(machine.workspace), snapshot(restored), "after a failure of the network")


    def earlier_states(self):
        """Any earlier segment can be restored, and a removed workspace does not empty its backup."""
        machine, address = self.machine(), f"s3://{BUCKET}/earlier"
        states = []
        for number in range(3):
            write(f"{machine.workspace}/f{number}", b"x%d" % number)
            machine.ok("backup", "now", address)
            states.append(snapshot(machine.workspace))
        session = Session(machine, address)
        session.call("Bash", command="rm f0")
        wait_until(lambda: json.loads(machine.ok("backup", "status", address, "--json"))["segment"] == 4, "no segment 4")
        shutil.move(machine.workspace, f"{machine.top}/moved")
        session.end()
        states.append(snapshot(f"{machine.top}/moved"))
        for number, expected in enumerate(states, 1):
            place = f"{machine.top}/at-{number}"
            machine.ok("backup", "restore", address, place, "--segment", str(number), workspace=machine.home)
            same(expected, snapshot(place), f"segment {number}")
        machine.refused("backup", "restore", address, f"{machine.top}/x", "--segment", "5", workspace=machine.home)

    def many_workspaces(self):
        """With `serve --workspaces`, each workspace has its own backup."""
        machine, address = self.machine(), f"s3://{BUCKET}/many"
        top = os.path.join(machine.top, "workspaces")
        for name in ("alice", "bob"):
            write(f"{top}/{name}/{name}.txt", name.encode())
        port = socket.create_server(("127.0.0.1", 0))
        number = port.getsockname()[1]
        port.close()
        arguments = ["serve", "--http", str(number), "--workspaces", top, "--backup", address, "--no-tools", "Bash"]
        command = [machine.program, "--state", machine.state, *arguments]
        server = subprocess.Popen(command, env=machine.environment, cwd=machine.top, stderr=subprocess.PIPE, text=True)
        said = server.stderr.readline()
        assert "serving MCP" in said, said
        with open(os.path.join(machine.state, "http-token")) as file:
            token = file.read().strip()
        version = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
        for name in ("alice", "bob"):
            arguments = {"file_path": "new.txt", "content": f"new of {name}"}
            params = {"name": "Write", "arguments": arguments, "_meta": version}
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
            headers = {
                "Authorization": f"Bearer {token}",
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": "2026-07-28",
                "Mcp-Method": "tools/call",
                "Mcp-Name": "Write",
            }
            connection = http.client.HTTPConnection("127.0.0.1", number)
            connection.request("POST", f"/w/{name}/mcp", body, headers)
            answer = connection.getresponse()
            assert answer.status == 200, (answer.status, answer.read())
            answer.read()
        for name in ("alice", "bob"):
            there = f"{address}/{name}"
            wait_until(lambda: machine.run("backup", "status", there)[0] == 0, f"no backup of {name}")
            done = lambda: json.loads(machine.ok("backup", "status", there, "--json"))["entries"] == 2
            wait_until(done, f"the new file of {name} is not in the backup")
            place = f"{machine.top}/restored-{name}"
            machine.ok("backup", "restore", there, place)
            same(snapshot(f"{top}/{name}"), snapshot(place), name)
            changes = json.loads(machine.ok("log", "--json", workspace=place))["changes"]
            assert len(changes) == 1, changes
        server.kill()
        server.wait()


class Rounds:
    """Random changes, kills and failures."""

    def __init__(self, machine, store, address, seed):
        self.machine, self.store, self.address = machine, store, address
        self.random = random.Random(seed)
        self.states = [(time.time(), snapshot(machine.workspace))]
        self.number = 0

    def name(self):
        return self.random.choice(["a", "b", "c", "d/e", "d/f", "d/g/h", "i.txt", "j k"])

    def act(self, session):
        pick = self.random.random()
        content = f"{self.random.random()}\n" * self.random.choice([1, 3, 200])
        name, other = self.name(), self.name()
        if pick < 0.45:
            session.call("Write", file_path=name, content=content)
        elif pick < 0.6:
            session.call("Bash", command=f"rm -rf '{name}'")
        elif pick < 0.75:
            session.call("Bash", command=f"mkdir -p d/g; printf '{content[:9]}' > '{name}'; chmod {self.random.choice([600, 644, 755])} '{name}'")
        elif pick < 0.85:
            session.call("Bash", command=f"mkdir -p d/g; mv -T '{name}' '{other}' 2> /dev/null; true")
        elif pick < 0.92:
            session.call("Bash", command=f"ln -sfn '{other}' link-{self.random.randrange(3)}")
        else:
            # By another program.
            write(os.path.join(self.machine.workspace, f"by-others-{self.random.randrange(3)}"), content.encode())
        self.states.append((time.time(), snapshot(self.machine.workspace)))

    def check_restored(self):
        """Each file is as it was at the time that the backup names, or later."""
        self.number += 1
        place = os.path.join(self.machine.top, f"restored-{self.number}")
        state = os.path.join(self.machine.top, f"state-{self.number}")
        code, said = self.machine.run("--json", "backup", "restore", self.address, place, "--state", state)
        if code != 0:
            assert "there is no backup" in said, said
            return None
        told = json.loads(said.splitlines()[-1])["time_ms"] / 1000
        found = snapshot(place)
        done = [at for at, (when, _) in enumerate(self.states) if when <= told]
        later = self.states[done[-1] if done else 0 :]
        for path in found.keys() | {path for _, one in later for path in one}:
            versions = [one.get(path) for _, one in later]
            assert found.get(path) in versions, (path, found.get(path), versions)
        shutil.rmtree(state, ignore_errors=True)
        subprocess.run(["chmod", "-R", "u+rwx", place])
        shutil.rmtree(place)
        return found

    def round(self):
        session = Session(self.machine, self.address)
        kills = 0
        for _ in range(self.random.randrange(4, 16)):
            self.act(session)
            chance = self.random.random()
            if chance < 0.15:
                time.sleep(self.random.random() * 2)
            elif chance < 0.25:
                self.store.network.cut_after = self.random.choice([100, 1_000, 5_000])
            elif chance < 0.32:
                self.store.network.down = True
            elif chance < 0.5:
                self.store.network.down, self.store.network.cut_after = False, None
            if chance > 0.85:
                time.sleep(self.random.random())
                session.kill()
                kills += 1
                self.states.append((time.time(), snapshot(self.machine.workspace)))
                self.store.network.down, self.store.network.cut_after = False, None
                self.check_restored()
                session = Session(self.machine, self.address)
                self.states.append((time.time(), snapshot(self.machine.workspace)))
        self.store.network.down, self.store.network.cut_after = False, None
        if self.random.random() < 0.5:
            session.end()
        else:
            session.kill()
            kills += 1
        self.states.append((time.time(), snapshot(self.machine.workspace)))
        self.machine.ok("backup", "now", self.address)
        self.states = [(time.time(), snapshot(self.machine.workspace))]
        same(self.states[0][1], self.check_restored(), "after a round")
        return kills

    def undo_everywhere(self):
        """Undo does the same in the restored workspace as in the original."""
        place, state = os.path.join(self.machine.top, "undone"), os.path.join(self.machine.top, "undone-state")
        self.machine.ok("backup", "restore", self.address, place, "--state", state)
        for _ in range(10):
            here = self.machine.run("undo", "--yes")
            there = self.machine.run("undo", "--yes", "--state", state, workspace=place)
            assert here[0] == there[0], (here, there)
            same(snapshot(self.machine.workspace, times=False), snapshot(place, times=False), "undo")


def main():
    program = os.path.abspath(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    top = tempfile.mkdtemp(prefix="toolcrib-backup-", dir="/var/tmp")
    try:
        store = Store()
        scenarios = Scenarios(top, store, program)
        for scenario in ("all_kinds_of_files", "history", "one_writer", "damage", "secrets", "network_failure", "earlier_states", "many_workspaces"):
            began = time.monotonic()
            getattr(scenarios, scenario)()
            print(f"ok: {scenario.replace('_', ' ')} ({time.monotonic() - began:.1f} s)", flush=True)
        machine = scenarios.machine()
        runs = Rounds(machine, store, f"s3://{BUCKET}/rounds", seed)
        kills = 0
        for number in range(rounds):
            kills += runs.round()
            if (number + 1) % 10 == 0:
                print(f"{number + 1} rounds, {kills} kills", flush=True)
        runs.undo_everywhere()
        machine.ok("backup", "verify", f"s3://{BUCKET}/rounds")
        print(f"ok: {rounds} rounds with {kills} kills, seed {seed}")
    finally:
        subprocess.run(["chmod", "-R", "u+rwx", top])
        shutil.rmtree(top, ignore_errors=True)


main()
