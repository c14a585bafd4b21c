# SPDX-License-Identifier: Apache-2.0
"""gossamer serve under 1, 8 and 64 clients: requests a second, latency and CPU, beside predict on the same queries.

serve_latency.py [--data DIR] [--sets NAME,...] [--requests N] [--rounds N] [--threads N] [--write]
DIR holds citeulike-t/ and acl-authors/ with train.txt.zst and test.txt.zst (default $GOSSAMER_DATA or ../shared/data).
The clients share one process, send one query a request on a connection that stays open, and wait for its answer
before the next. They run on the same cores, and their CPU is not counted to the server.
"""

import argparse
import os
import pathlib
import re
import selectors
import signal
import socket
import subprocess
import tempfile
import time

import measure
from records import unpack

CLIENTS = (1, 8, 64)


def queries_of(test, count):
    """Features of test records, one line each."""
    with open(test, encoding="ascii") as lines:
        next(lines)
        return [line.rstrip("\n").partition(" ")[2] for _, line in zip(range(count), lines)]


class Client:
    """One connection: sends, gathers an answer, sends the next."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reply = b""
        self.sent_at = 0.0

    def send(self, query):
        self.reply = b""
        body = query.encode()
        head = f"POST /predict HTTP/1.1\r\nHost: bench\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
        self.sent_at = time.perf_counter()
        self.socket.sendall(head.encode() + body)

    def receive(self):
        """The answer's body when it is complete, else None."""
        self.reply += self.socket.recv(1 << 16)
        head, blank, body = self.reply.partition(b"\r\n\r\n")
        if not blank:
            return None
        length = int(re.search(rb"Content-Length: (\d+)", head)[1])
        if len(body) < length:
            return None
        assert head.startswith(b"HTTP/1.1 200 "), self.reply
        return body.decode()


def load(port, queries, expected, clients, requests):
    """Seconds of each request, and of all. Every answer is compared with that of predict."""
    selector = selectors.DefaultSelector()
    latencies = []
    sent = 0
    begin = time.perf_counter()
    for _ in range(clients):
        client = Client(port)
        client.query = sent % len(queries)
        client.left = 900  # the server closes a connection after 1000 requests
        selector.register(client.socket, selectors.EVENT_READ, client)
        client.send(queries[client.query])
        sent += 1
    while len(latencies) < requests:
        for key, _ in selector.select():
            client = key.data
            body = client.receive()
            if body is None:
                continue
            latencies.append(time.perf_counter() - client.sent_at)
            assert body == expected[client.query], (body, expected[client.query])
            if sent < requests:
                client.left -= 1
                if client.left == 0:
                    selector.unregister(client.socket)
                    client.socket.close()
                    client = Client(port)
                    client.left = 900
                    selector.register(client.socket, selectors.EVENT_READ, client)
                client.query = sent % len(queries)
                client.send(queries[client.query])
                sent += 1
    seconds = time.perf_counter() - begin
    for key in list(selector.get_map().values()):
        key.data.socket.close()
    return latencies, seconds


def cpu_of(pid):
    """User and system seconds of a running process."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def serve(run, queries, expected, arguments):
    server = subprocess.Popen([measure.binary(), "serve", str(run), "--listen", "127.0.0.1:0", "--threads",
                               str(arguments.threads)], stdout=subprocess.PIPE, text=True)  # fmt: skip
    try:
        port = int(re.search(r":(\d+)/predict", server.stdout.readline())[1])
        rows = []
        for clients in CLIENTS:
            load(port, queries, expected, clients, max(100, 2 * clients))  # warm
            before = cpu_of(server.pid)
            latencies, seconds = load(port, queries, expected, clients, arguments.requests)
            cpu = cpu_of(server.pid) - before
            ordered = sorted(latencies)
            rows.append({"clients": clients, "requests_per_second": len(latencies) / seconds,
                         "p50_ms": 1e3 * ordered[len(ordered) // 2], "p99_ms": 1e3 * ordered[len(ordered) * 99 // 100],
                         "cpu_ms": 1e3 * cpu / len(latencies)})  # fmt: skip
        return rows
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=60) == 143


def measure_set(name, arguments, work):
    source = pathlib.Path(arguments.data) / name
    train, test = (unpack(source / f"{part}.txt.zst", work / f"{name}.{part}.txt") for part in ("train", "test"))
    run = work / f"{name}.run"
    measure.run([measure.binary(), "train", "xmc", f"data.train={train}", "--threads", str(arguments.threads),
                 "--out", str(run), "--quiet"])  # fmt: skip
    queries = queries_of(test, 2000)
    path = work / f"{name}.queries"
    path.write_text("\n".join(queries) + "\n")
    done = subprocess.run([measure.binary(), "predict", str(run)], stdin=open(path, encoding="ascii"),
                          capture_output=True, text=True, check=True)  # fmt: skip
    expected = done.stdout.splitlines(keepends=True)
    rounds = [serve(run, queries, expected, arguments) for _ in range(arguments.rounds)]
    return [{key: measure.median([each[i][key] for each in rounds]) for key in rounds[0][i]} for i in range(len(CLIENTS))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("GOSSAMER_DATA", measure.ROOT.parent / "shared/data"))
    parser.add_argument("--sets", default="citeulike-t,acl-authors")
    parser.add_argument("--requests", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()

    lines = ["| model | clients | requests/s | p50 ms | p99 ms | server CPU ms a request |", "|---|---|---|---|---|---|"]
    result = {"machine": measure.machine(), "commit": measure.commit(), "requests": arguments.requests, "sets": {}}
    with tempfile.TemporaryDirectory() as work:
        for name in arguments.sets.split(","):
            rows = measure_set(name, arguments, pathlib.Path(work))
            result["sets"][name] = rows
            for row in rows:
                lines.append(f"| {name} | {row['clients']} | {row['requests_per_second']:.0f} | {row['p50_ms']:.1f} "
                             f"| {row['p99_ms']:.1f} | {row['cpu_ms']:.2f} |")
    print(measure.save("serve_latency", result))
    print("\n".join(lines))
    if arguments.write:
        measure.write_table("serve-latency", lines)


if __name__ == "__main__":
    main()
