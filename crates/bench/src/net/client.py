import socket
import statistics
import struct
import sys
import threading
import time

server, connections, total = (sys.argv[1], int(sys.argv[2])), int(sys.argv[3]), int(sys.argv[4])


def opened(count):
    stream = socket.create_connection(server)
    stream.sendall(struct.pack('<Q', count))
    return stream


def receive(stream, count):
    buffer = bytearray(1 << 20)
    while count > 0:
        received = stream.recv_into(buffer)
        if received == 0:
            raise SystemExit('the connection ended early')
        count -= received


def connect_time():
    began = time.perf_counter()
    with opened(1) as stream:
        receive(stream, 1)
    return time.perf_counter() - began


def rate(streams):
    each = total // streams
    began = time.perf_counter()
    threads = [threading.Thread(target=lambda: receive(opened(each), each)) for _ in range(streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return each * streams / 1e6 / (time.perf_counter() - began)


times = statistics.median(connect_time() for _ in range(connections))
print(round(times * 1000, 4), round(rate(1)), round(rate(64)))
