# SPDX-License-Identifier: Apache-2.0
"""What `gossamer bench links` measures, over plain sockets: the yardstick for links.py.

links_raw_peer.py NODE ADDRESS,ADDRESS,... OPTIONS: one process is one node; OPTIONS are the keys of `bench links` as
JSON. Two connections for each pair of nodes, cubic for control and BBR for bulk as ours. Prints JSON of the same shape.
"""

import json
import os
import selectors
import signal
import socket
import struct
import sys
import time

PORT = 7300
PATIENCE_S = 30
CONTROL, BULK = 0, 1
CONGESTION = {CONTROL: b"cubic", BULK: b"bbr"}
PING_BYTES = 64
UNCOUNTED = 10
BULK_LEAD_S = 1.5
PING_PAUSE_S = 0.020


def choose(connection, lane):
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, CONGESTION[lane])
    except OSError:  # this process may not, or the kernel has none: the system's choice
        pass
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def connect(address, lane):
    end = time.monotonic() + PATIENCE_S
    while True:
        connection = socket.socket()
        choose(connection, lane)
        try:
            connection.connect((address, PORT + lane))
            return connection
        except ConnectionRefusedError:
            connection.close()
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def mesh(node, addresses):
    """{(peer, lane): connection} of all pairs; a node opens those to the nodes after it."""
    listeners = []
    for lane in (CONTROL, BULK):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        choose(listener, lane)
        listener.settimeout(PATIENCE_S)
        listener.bind((addresses[node - 1], PORT + lane))
        listener.listen()
        listeners.append(listener)
    connections = {}
    for peer in range(node + 1, len(addresses) + 1):
        for lane in (CONTROL, BULK):
            connections[peer, lane] = connect(addresses[peer - 1], lane)
            connections[peer, lane].sendall(struct.pack("<B", node))
    for lane, listener in enumerate(listeners):
        for _ in range(node - 1):
            connection, _ = listener.accept()
            connection.settimeout(None)
            choose(connection, lane)
            connections[read(connection, 1)[0], lane] = connection
        listener.close()
    return connections


def read(connection, count):
    """Reads `count` bytes, and keeps only the last few."""
    buffer = bytearray(min(count, 1 << 20))
    while count > 0:
        got = connection.recv_into(buffer, min(count, len(buffer)))
        check_whole(got, 1)
        count -= got
    return bytes(buffer[:64])


def round_trips(connection, count, leads):
    seconds = []
    for number in range(count):
        if leads:
            time.sleep(PING_PAUSE_S + number * 7919 % 13 / 1e3)
            begin = time.monotonic()
            connection.sendall(bytes(PING_BYTES))
            read(connection, PING_BYTES)
            seconds.append(time.monotonic() - begin)
        else:
            connection.sendall(read(connection, PING_BYTES))
    return seconds


def transfers(control, bulk, options, leads):
    seconds, message = [], bytes(options["bytes"]) if leads else b""
    for _ in range(options["transfers"]):
        begin = time.monotonic()
        if leads:
            bulk.sendall(message)
            read(control, 1)
        else:
            read(bulk, options["bytes"])
            control.sendall(b"!")
        seconds.append(time.monotonic() - begin)
    return seconds


def exchange(node, connections, options, nodes):
    """Rounds in lock-step among all nodes. Returns (seconds of each round that counts, processor time of a round)."""
    size = options["exchange_bytes"]
    peers = {peer: connection for (peer, lane), connection in connections.items() if lane == CONTROL}
    order = [(node - 1 + i) % nodes + 1 for i in range(1, nodes)]
    came, payload, buffer = dict.fromkeys(peers, 0), memoryview(bytes(size)), bytearray(1 << 20)
    selector = selectors.DefaultSelector()
    for peer, connection in peers.items():
        connection.setblocking(False)
        selector.register(connection, selectors.EVENT_READ, peer)
    seconds, cpu, begin = [], 0, time.monotonic()
    for number in range(1, UNCOUNTED + options["rounds"] + 1):
        if number == UNCOUNTED + 1:
            cpu = time.process_time()
        left = {}
        for peer in order:
            left[peer] = push(selector, peers[peer], peer, payload)
        while any(left.values()) or any(bytes_ < number * size for bytes_ in came.values()):
            for key, events in selector.select():
                peer = key.data
                if events & selectors.EVENT_READ:
                    got = peers[peer].recv_into(buffer)
                    came[peer] += got
                    if got == 0:  # it has all of its rounds
                        selector.unregister(peers[peer])
                        check_whole(came[peer], number * size)
                        continue
                if events & selectors.EVENT_WRITE:
                    left[peer] = push(selector, peers[peer], peer, left[peer])
        now = time.monotonic()
        if number > UNCOUNTED:
            seconds.append(now - begin)
        begin = now
    cpu = time.process_time() - cpu
    selector.close()
    for connection in peers.values():
        connection.setblocking(True)
    return seconds, cpu


def check_whole(came, wanted):
    if came < wanted:
        raise ConnectionError("the other side has ended")


def push(selector, connection, peer, data):
    """Sends what the socket takes. Returns the rest, for which the selector then waits."""
    try:
        data = data[connection.send(data):]
    except BlockingIOError:
        pass
    selector.modify(connection, selectors.EVENT_READ | (selectors.EVENT_WRITE if data else 0), peer)
    return data


def beside_bulk(control, bulk, options, leads):
    """Round trips while another process keeps bulk running, and the bulk's bytes a second."""
    pipe, tell = os.pipe()
    child = os.fork()
    if child == 0:
        if leads:
            message = bytes(1 << 20)
            while True:
                bulk.sendall(message)
        count, begin, buffer = 0, None, bytearray(1 << 20)
        while got := bulk.recv_into(buffer):
            now = time.monotonic()
            if begin is None:
                begin = now
            elif now - begin > BULK_LEAD_S:
                count += got
                os.write(tell, struct.pack("<dQ", now - begin - BULK_LEAD_S, count))
        os._exit(0)
    if leads:
        time.sleep(BULK_LEAD_S)
    seconds = round_trips(control, options["pings"], leads)
    if leads:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        rate, _ = struct.unpack("<dd", read(control, 16)[:16])
        return seconds, rate
    os.set_blocking(pipe, False)
    rate = last_rate(pipe)
    control.sendall(struct.pack("<dd", rate, 0))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return seconds, rate


def last_rate(pipe):
    last = b""
    while True:
        try:
            last = (last + os.read(pipe, 1 << 16))[-16:]
        except BlockingIOError:
            break
    after, count = struct.unpack("<dQ", last) if last else (1, 0)
    return count / after


def figures(name, seconds, size, options, idle=0.0, rate=0.0):
    """One measurement as `bench links` prints it."""
    transfer = name == "message"
    values = [1e3 * (second - idle) for second in seconds]
    first = values[0] if transfer else 0
    values = sorted(values[1:] if transfer and len(values) > 1 else values)
    def quantile(share):
        return values[max(0, -int(-share * len(values) // 1) - 1)]
    median = (quantile(0.5) + values[len(values) // 2]) / 2
    mbps = size * 8e-3 * len(values) / sum(values) if transfer else rate * 8e-6
    return {"name": name, "bytes": size, "count": len(values), "first_ms": first, "least_ms": values[0],
            "median_ms": median, "p90_ms": quantile(0.9), "most_ms": values[-1], "mbps": mbps,
            "share_of_rate": mbps / options["rate_mbps"] if options["rate_mbps"] else 0, "cpu_s": 0}


def main():
    node, addresses, options = int(sys.argv[1]), sys.argv[2].split(","), json.loads(sys.argv[3])
    connections = mesh(node, addresses)
    measured, leads, wanted = [], node == 1, options["measure"].split(",")
    idle = 0
    if node <= 2:
        control, bulk = (connections[3 - node, lane] for lane in (CONTROL, BULK))
        seconds = round_trips(control, options["pings"], leads)
        idle = min(seconds, default=0)
        measured.append(figures("round-trip", seconds or [0], PING_BYTES, options))
        if "message" in wanted:
            seconds = transfers(control, bulk, options, leads)
            measured.append(figures("message", seconds, options["bytes"], options, idle=idle))
    if "exchange" in wanted:
        seconds, cpu = exchange(node, connections, options, len(addresses))
        measured.append({**figures("exchange", seconds, options["exchange_bytes"], options), "cpu_s": cpu})
    if "control-beside-bulk" in wanted and node <= 2:
        seconds, rate = beside_bulk(control, bulk, options, leads)
        measured.append(figures("control-beside-bulk", seconds or [0], PING_BYTES, options, idle=idle / 2, rate=rate))
    if not leads:
        measured = [one for one in measured if one["name"] == "exchange"]
    print(json.dumps({"nodes": [{"node": node, "measurements": measured}]}))


if __name__ == "__main__":
    main()
