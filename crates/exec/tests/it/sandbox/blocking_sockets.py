"""Makes sockets blocking while the supervisor connects them to servers that accept no connection.

The argument is the path of a Unix socket to create. Also run by the stress tests of the sandbox.
"""

import os
import socket
import sys
import threading


def full_server(family, address):
    """A server with a full queue, and the connections that fill it."""
    server = socket.socket(family)
    server.bind(address)
    server.listen(0)
    held = [socket.socket(family) for _ in range(4)]
    for one in held:
        one.setblocking(False)
        one.connect_ex(server.getsockname())
    return server, held


def connect_for_ever(family, address):
    current = [socket.socket(family)]

    def toggle():
        while True:
            try:
                os.set_blocking(current[0].fileno(), True)
                os.set_blocking(current[0].fileno(), False)
            except OSError:
                pass

    threading.Thread(target=toggle, daemon=True).start()
    while True:
        one = socket.socket(family)
        one.setblocking(False)
        current[0] = one
        one.connect_ex(address)


# Both are ready before the first attack: a call of this command may have to wait for its attacks.
servers = [
    full_server(socket.AF_INET, ("127.0.0.1", 0)),
    full_server(socket.AF_UNIX, sys.argv[1]),
]
for server, _ in servers:
    for _ in range(20):
        if os.fork() == 0:
            connect_for_ever(server.family, server.getsockname())
print("attacks", flush=True)
os.wait()
