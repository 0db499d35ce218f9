"""Checks that real coding agents find Toolcrib after `toolcrib install`. Offline, without a model or a login.

Usage: agents.py PATH-OF-TOOLCRIB NODE_MODULES

Each agent gets its own home, and its own command lists its servers. Codex also makes a call and answers an approval
request. After `toolcrib install --exclusive`, the request that each agent sends to its model, which is a loopback
server that refuses everything, must contain none of the agent's own file and shell tools. Prints one line per agent
and fails at the first that does not find Toolcrib.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

BINARY, MODULES = sys.argv[1], Path(sys.argv[2])
CLAUDE = MODULES / "@anthropic-ai/claude-code-linux-x64/claude"

# The command that lists an agent's servers, and its word for a connected one.
LISTS = {
    "claude": ([CLAUDE, "mcp", "list"], "Connected"),
    "opencode": ([MODULES / ".bin/opencode", "mcp", "list"], "connected"),
    "gemini": ([MODULES / ".bin/gemini", "mcp", "list"], "Connected"),
    "codex": ([MODULES / ".bin/codex", "mcp", "list"], "enabled"),
}


def home_of(client: str, top: Path, *more: str) -> dict[str, str]:
    """Creates a home with Toolcrib in the client's configuration, and a trusted workspace."""
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
    flags = ["--root", str(workspace), "--profile", "cautious", *more]
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
            sys.exit(f"{client} does not find Toolcrib: {said}")
        print(f"{client}: {line.strip()}")


class Model(BaseHTTPRequestHandler):
    """A model server that records the offered tools and refuses every request."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            for tool in json.loads(body).get("tools", []):
                offered = tool.get("functionDeclarations", [tool.get("function", tool)])
                self.server.tools.update(one.get("name", one.get("type")) for one in offered)
        except ValueError:
            pass
        refusal = b'{"error": {"type": "invalid_request_error", "message": "no model", "code": 400}}'
        self.send_response(400)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(refusal)))
        self.end_headers()
        self.wfile.write(refusal)

    do_GET = do_POST

    def log_message(self, *_: object) -> None:
        pass


# Per agent: a session of one request, and its own file and shell tools, which must be disabled. Codex keeps
# apply_patch, whose writes its sandbox prevents.
SESSIONS = {
    "claude": ([CLAUDE, "-p", "hi"], ["Bash", "Edit", "Monitor", "NotebookEdit", "Read", "Write"]),
    "opencode": (
        [MODULES / ".bin/opencode", "run", "hi"],
        ["bash", "edit", "glob", "grep", "list", "read", "write", "apply_patch"],
    ),
    "gemini": (
        [MODULES / ".bin/gemini", "-p", "hi"],
        ["glob", "grep_search", "list_directory", "read_file", "replace", "run_shell_command", "write_file"],
    ),
    "codex": (
        [MODULES / ".bin/codex", "exec", "--skip-git-repo-check", "hi"],
        ["exec_command", "write_stdin", "shell", "shell_command", "view_image"],
    ),
}


def point_at(client: str, url: str, top: Path, environment: dict[str, str]) -> None:
    """Configures an agent to use the model at `url`."""
    environment |= {"ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": url}
    environment |= {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url}
    if client == "gemini":
        file = top / ".gemini/settings.json"
        settings = json.loads(file.read_text())
        settings["security"] = {"auth": {"selectedType": "gemini-api-key"}}
        file.write_text(json.dumps(settings))
    if client == "opencode":
        file = top / ".config/opencode/opencode.json"
        options = {"baseURL": f"{url}/v1", "apiKey": "none"}
        models = {"m": {"name": "m", "tool_call": True}}
        package = "@ai-sdk/openai-compatible"
        none = {"npm": package, "name": "none", "options": options, "models": models}
        settings = json.loads(file.read_text())
        settings |= {"model": "none/m", "small_model": "none/m", "provider": {"none": none}}
        file.write_text(json.dumps(settings))
    if client == "codex":
        file = top / ".codex/config.toml"
        provider = f'[model_providers.none]\nname = "none"\nbase_url = "{url}/v1"\nwire_api = "responses"\n'
        retries = "request_max_retries = 0\nstream_max_retries = 0\n"
        model = 'model = "gpt-5.5"\nmodel_provider = "none"\n'
        file.write_text(model + file.read_text() + "\n" + provider + retries)


def has_only_our_tools(client: str) -> None:
    words, own = SESSIONS[client]
    model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    model.tools = set()
    threading.Thread(target=model.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory)
        environment = home_of(client, top, "--exclusive")
        point_at(client, f"http://127.0.0.1:{model.server_port}", top, environment)
        done = subprocess.run(
            words,
            env=environment,
            cwd=top / "ws",
            text=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
        )
        removed = [BINARY, "uninstall", client]
        subprocess.run(removed, env=environment, cwd=top / "ws", check=True, capture_output=True)
    model.shutdown()
    # Codex offers the tools of MCP servers through its own tool.
    ours = {name for name in model.tools if "toolcrib" in name or name == "tool_search"}
    left = model.tools & set(own)
    if left or not ours:
        sys.exit(f"{client} offers {sorted(model.tools)}: {done.stdout}{done.stderr}")
    print(f"{client}: its own tools are off; {len(model.tools - ours)} others")


class Codex:
    """Codex's app server."""

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
        environment = home_of("codex", top, "--exclusive")
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
    has_only_our_tools(name)
codex_calls_and_is_asked()
