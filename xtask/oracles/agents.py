"""Do the real coding agents find us, after `toolcrib install`? Offline, without a model or a login.

Usage: agents.py PATH-OF-TOOLCRIB NODE_MODULES

Each agent gets a home of its own and its own command lists its servers; Codex also makes a call, and
answers a question. Prints a line an agent; fails at the first that does not find us.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

BINARY, MODULES = sys.argv[1], Path(sys.argv[2])
CLAUDE = MODULES / "@anthropic-ai/claude-code-linux-x64/claude"

# The command that lists an agent's servers, and what it says of one that answers.
LISTS = {
    "claude": ([CLAUDE, "mcp", "list"], "Connected"),
    "opencode": ([MODULES / ".bin/opencode", "mcp", "list"], "connected"),
    "gemini": ([MODULES / ".bin/gemini", "mcp", "list"], "Connected"),
    "codex": ([MODULES / ".bin/codex", "mcp", "list"], "enabled"),
}


def home_of(client: str, top: Path) -> dict[str, str]:
    """A home with us in the client's configuration, and a workspace that it trusts."""
    workspace = top / "ws"
    workspace.mkdir()
    (workspace / "a.txt").write_text("one\n")
    (top / ".gemini").mkdir()
    trusted = {str(workspace): "TRUST_FOLDER"}
    (top / ".gemini/trustedFolders.json").write_text(json.dumps(trusted))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(top),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    flags = ["--", "--root", str(workspace), "--profile", "cautious"]
    install = [BINARY, "install", client, *flags]
    subprocess.run(install, env=environment, cwd=workspace, check=True, capture_output=True)
    return environment


def finds_us(client: str) -> None:
    words, answers = LISTS[client]
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory)
        environment = home_of(client, top)
        done = subprocess.run(
            words, env=environment, cwd=top / "ws", text=True, capture_output=True, timeout=120
        )
        said = done.stdout + done.stderr
        line = next((line for line in said.splitlines() if "toolcrib" in line), said)
        if answers not in line:
            sys.exit(f"{client} does not find us: {said}")
        print(f"{client}: {line.strip()}")


class Codex:
    """The server that Codex's own windows talk to."""

    def __init__(self, environment: dict[str, str], directory: Path) -> None:
        self.process = subprocess.Popen(
            [MODULES / ".bin/codex", "app-server"],
            env=environment,
            cwd=directory,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.asked: list[str] = []
        self.last = 0

    def send(self, message: dict) -> None:
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def request(self, method: str, params: dict) -> dict:
        self.last += 1
        self.send({"id": self.last, "method": method, "params": params})
        for line in self.process.stdout:
            message = json.loads(line)
            if "method" not in message and message.get("id") == self.last:
                return message
            if message.get("method") == "mcpServer/elicitation/request":
                self.asked.append(json.dumps(message["params"]))
                yes = {"action": "accept", "content": {"answer": "once"}, "_meta": None}
                self.send({"id": message["id"], "result": yes})
        sys.exit(f"codex ended before it answered {method}")


def codex_calls_and_is_asked() -> None:
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory)
        environment = home_of("codex", top)
        codex = Codex(environment, top / "ws")
        try:
            codex.request("initialize", {"clientInfo": {"name": "trial", "title": "trial", "version": "0"}})
            codex.send({"method": "initialized"})
            started = codex.request("thread/start", {"cwd": str(top / "ws"), "ephemeral": True})
            thread = started["result"]["thread"]["id"]
            edit = {"file_path": "a.txt", "old_string": "one", "new_string": "two"}
            call = {"threadId": thread, "server": "toolcrib", "tool": "Edit", "arguments": edit}
            answer = codex.request("mcpServer/tool/call", call)
        finally:
            codex.process.kill()
            codex.process.wait()
        if (top / "ws/a.txt").read_text() != "two\n" or len(codex.asked) != 1:
            sys.exit(f"codex: asked {codex.asked}, answered {answer}")
        if "-one" not in codex.asked[0]:
            sys.exit(f"codex was asked without the diff: {codex.asked}")
        print("codex: a call, after a question with its diff")


for name in LISTS:
    finds_us(name)
codex_calls_and_is_asked()
