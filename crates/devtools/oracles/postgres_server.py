"""A PostgreSQL server in a temporary directory, with a store of Toolcrib and one tenant."""

import os
import pwd
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

PASSWORD = "owner-secret-7b1e"
PATIENCE = 60


def programs() -> Path:
    """The directory with the programs of the newest server that is installed."""
    versions = Path("/usr/lib/postgresql").iterdir()
    return max(versions, key=lambda version: int(version.name)) / "bin"


class Store:
    """A server at a socket, which ends with the exit stack. `owner` and `tenant` are files with addresses."""

    def __init__(self, binary: str, top: Path, exit: ExitStack) -> None:
        self.binary, self.top, self.data = binary, top / "server", top / "server" / "data"
        self.top.mkdir()
        # The server refuses to run as root.
        self.user = "postgres" if os.geteuid() == 0 else None
        password = self.top / "password"
        password.write_text(PASSWORD)
        if self.user:
            top.chmod(0o711)
            for path in [self.top, password]:
                os.chown(path, pwd.getpwnam(self.user).pw_uid, -1)
        words = ["--no-sync", "--auth=scram-sha-256", "--username=owner", "--encoding=UTF8", "--locale=C"]
        self.run("initdb", *words, "--pwfile", str(password), "--pgdata", str(self.data))
        settings = [f"unix_socket_directories={self.top}", "listen_addresses=", "fsync=off", "shared_buffers=16MB"]
        server = subprocess.Popen(
            [programs() / "postgres", "-D", self.data, *(word for setting in settings for word in ("-c", setting))],
            user=self.user,
            cwd=self.top,
            stderr=subprocess.DEVNULL,
        )
        exit.callback(lambda: (server.kill(), server.wait()))
        until = time.monotonic() + PATIENCE
        while self.psql("SELECT 1", "postgres").returncode != 0:
            assert server.poll() is None and time.monotonic() < until
            time.sleep(0.05)
        assert self.psql("CREATE DATABASE tools", "postgres").returncode == 0
        self.owner, self.tenant = top / "owner.store", top / "acme.store"
        self.owner.touch(mode=0o600)
        self.owner.write_text(f"postgres://owner:{PASSWORD}@/tools?host={self.top}\n")
        self.toolcrib("init", self.owner)
        self.toolcrib("add-tenant", self.owner, "acme", "--address-file", self.tenant)

    def run(self, program: str, *words: str) -> None:
        subprocess.run([programs() / program, *words], user=self.user, cwd=self.top, check=True, capture_output=True)

    def psql(self, statements: str, database: str = "tools") -> subprocess.CompletedProcess[str]:
        words = ["-X", "-q", "-A", "-t", "-h", str(self.top), "-U", "owner", "-d", database, "-c", statements]
        env = {**os.environ, "PGPASSWORD": PASSWORD}
        return subprocess.run([programs() / "psql", *words], env=env, capture_output=True, text=True)

    def toolcrib(self, *words: object) -> str:
        """Runs `toolcrib store`, and returns its output."""
        done = subprocess.run([self.binary, "store", *map(str, words)], capture_output=True, text=True)
        assert done.returncode == 0, (words, done)
        return done.stdout
