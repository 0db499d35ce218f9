#!/usr/bin/env python3
"""A language server for tests. Each line with the word `bad` is an error. The argument says how it misbehaves."""

import json
import os
import sys
import time

MODE = sys.argv[1]
# The test makes this file when a waiting server may answer.
GO = sys.argv[2] if len(sys.argv) > 2 else ""


def read():
    length = 0
    while True:
        line = sys.stdin.buffer.readline()
        if not line:
            sys.exit()
        if not line.strip():
            return json.loads(sys.stdin.buffer.read(length))
        name, value = line.decode().split(":")
        if name.lower() == "content-length":
            length = int(value)


def send(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()


def error(line, message):
    position = {"line": line, "character": 0}
    return {"range": {"start": position, "end": position}, "severity": 1, "code": "B1", "message": message}


def errors(text):
    found = [error(at, f"bad name {line.strip()}") for at, line in enumerate(text.split("\n")) if "bad" in line]
    if MODE == "sandbox":
        found += [error(0, f"attempts: {', '.join(attempts())}")]
    return found


def attempts():
    """What the sandbox lets it do."""
    import socket

    root = os.getcwd()
    for name, action in {
        "write a file": lambda: open(os.path.join(root, "planted"), "w"),
        "remove a file": lambda: os.remove(os.path.join(root, "a.py")),
        "connect": lambda: socket.create_connection(("192.0.2.1", 80), 1),
    }.items():
        try:
            action()
            yield f"could {name}"
        except OSError:
            yield f"could not {name}"


def publish(uri, version, found):
    params = {"uri": uri, "diagnostics": found}
    if version is not None:
        params["version"] = version
    send({"method": "textDocument/publishDiagnostics", "params": params})


def misbehave():
    out = sys.stdout.buffer
    if MODE == "garbage":
        out.write(b"Loading...\r\n\r\n" + os.urandom(100_000))
    elif MODE == "huge":
        out.write(b"Content-Length: 999999999999\r\n\r\n")
    elif MODE == "endless header":
        while True:
            out.write(b"x" * 65536)
    elif MODE == "endless body":
        out.write(b"Content-Length: 16000000\r\n\r\n" + b" " * 1_000_000)
        out.flush()
        time.sleep(3600)
    elif MODE == "requests":
        while True:
            send({"id": 1, "method": "workspace/configuration", "params": {"items": [{}] * 500}})
    elif MODE == "deaf":
        time.sleep(3600)
    elif MODE == "crash":
        print("it is broken", file=sys.stderr)
        sys.exit(3)
    elif MODE == "memory":
        held = bytearray(10**13)
        held[0] = 1
    out.flush()


def main():
    texts = {}
    while True:
        message = read()
        method, params = message.get("method"), message.get("params", {})
        uri = params.get("textDocument", {}).get("uri")
        if method == "initialize":
            capabilities = {"textDocumentSync": 1}
            if MODE != "push":
                capabilities["diagnosticProvider"] = {}
            send({"id": message["id"], "result": {"capabilities": capabilities}})
            misbehave()
        elif method in ("textDocument/didOpen", "textDocument/didChange"):
            document = params["textDocument"]
            version = document["version"]
            before = texts.get(uri, "")
            texts[uri] = document["text"] if method.endswith("didOpen") else params["contentChanges"][0]["text"]
            if MODE == "push":
                stale = [error(0, "stale")]
                publish(uri, version - 1, stale)
                publish(uri, version + 1, stale)
                publish(uri, None, stale)
                publish(uri.replace("a.py", "b.py"), version, stale)
                publish("file:///etc/passwd", version, stale)
                publish(uri, version, errors(texts[uri]))
        elif method == "textDocument/diagnostic" and MODE != "silent":
            if MODE == "wait" and "slow" in texts[uri]:
                while not os.path.exists(GO):
                    time.sleep(0.01)
            if MODE == "wrong":
                send({"id": message["id"] + 1, "result": {"kind": "full", "items": [error(0, "stale")]}})
                send({"id": "x", "result": {"kind": "full", "items": [error(0, "stale")]}})
                send({"id": message["id"], "result": {"kind": "unchanged", "resultId": "1"}})
                send({"id": message["id"], "result": {"kind": "full", "items": [error(0, "stale")]}})
            else:
                send({"id": message["id"], "result": {"kind": "full", "items": errors(texts[uri])}})
        elif "id" in message and method:
            send({"id": message["id"], "result": None})


main()
