"""Asks a language server for the symbols of files, by `textDocument/documentSymbol`."""

import json
import queue
import subprocess
import threading
import time
from pathlib import Path

# For the first answer of a server on a slow machine.
PATIENCE = 300
# A file without symbols is asked for again, with this pause in seconds.
ATTEMPTS = 5
PAUSE = 0.2


class Silent(Exception):
    """A server that does not answer."""


class Server:
    """A running language server for the files below a directory."""

    def __init__(self, command: list[str], top: Path, options: dict) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=top
        )
        self.command = command
        self.number = 0
        self.messages: queue.Queue = queue.Queue()
        threading.Thread(target=self.receive, daemon=True).start()
        symbols = {"hierarchicalDocumentSymbolSupport": True}
        self.ask(
            "initialize",
            {
                "processId": None,
                "rootUri": top.as_uri(),
                "workspaceFolders": [{"uri": top.as_uri(), "name": "top"}],
                "capabilities": {"textDocument": {"documentSymbol": symbols}},
                "initializationOptions": options,
            },
        )
        self.tell("initialized", {})

    def symbols(self, path: Path, language: str) -> list[dict]:
        """The symbols of a file, as a tree."""
        document = {"uri": path.as_uri()}
        text = path.read_bytes().decode()
        self.tell("textDocument/didOpen", {"textDocument": {**document, "languageId": language, "version": 1, "text": text}})
        found = None
        for _ in range(ATTEMPTS):
            found = self.ask("textDocument/documentSymbol", {"textDocument": document})
            if found or not text.strip():
                break
            # A server that still loads the project may have no answer yet, or an empty one.
            time.sleep(PAUSE)
        self.tell("textDocument/didClose", {"textDocument": document})
        return found or []

    def ask(self, method: str, params: dict | None) -> object:
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        while True:
            try:
                message = self.messages.get(timeout=PATIENCE)
            except queue.Empty as error:
                raise Silent(f"{self.command[0]} does not answer {method}") from error
            if message is None:
                raise Silent(f"{self.command[0]} has ended")
            if "method" in message and "id" in message:
                self.answer(message)
            elif message.get("id") == self.number:
                if "error" in message:
                    raise Silent(f"{self.command[0]}: {method}: {message['error']}")
                return message.get("result")

    def answer(self, request: dict) -> None:
        """Answers a request of the server: it has no configuration, and everything else is accepted."""
        result = None
        if request["method"] == "workspace/configuration":
            result = [None] * len(request["params"]["items"])
        self.send({"id": request["id"], "result": result})

    def tell(self, method: str, params: dict) -> None:
        self.send({"method": method, "params": params})

    def send(self, message: dict) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def receive(self) -> None:
        """Queues the messages of the server, and `None` at the end."""
        stream = self.process.stdout
        while True:
            length = 0
            while (line := stream.readline()).strip():
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            if not line:
                break
            self.messages.put(json.loads(stream.read(length)))
        self.messages.put(None)

    def close(self) -> None:
        try:
            self.ask("shutdown", None)
            self.tell("exit", {})
            self.process.wait(10)
        except (Silent, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
