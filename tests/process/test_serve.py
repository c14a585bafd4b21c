# SPDX-License-Identifier: Apache-2.0
"""gossamer serve: the answers of predict over HTTP, to many clients, with wrong requests among them, until a signal."""

import http.client
import json
import re
import signal
import socket
import threading
import time

import program
import test_training

JSON = {"Content-Type": "application/json"}


class Server:
    """A serving process on a free port of this machine."""

    def __init__(self, run, *more, environment=None):
        self.running = program.Running(
            "serve", run, "--listen", "127.0.0.1:0", "--threads", "2", *more, environment=environment)
        line = self.running.process.stdout.readline()
        found = re.fullmatch(r"serving .* on http://127\.0\.0\.1:(\d+)/predict\n", line)
        assert found, f"{line!r}\n{''.join(self.running.seen)}"
        self.port = int(found[1])

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=program.TIMEOUT)

    def open(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=program.TIMEOUT)

    def rss_mb(self):
        with open(f"/proc/{self.running.process.pid}/status") as status:
            return next(int(line.split()[1]) >> 10 for line in status if line.startswith("VmRSS"))

    def ask(self, method, path, body=None, headers=None):
        """(status, headers, body) of one request on a connection of its own."""
        connection = self.connect()
        try:
            connection.request(method, path, body, headers or {})
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read().decode()
        finally:
            connection.close()

    def stop(self, number=signal.SIGTERM):
        self.running.signal(number)
        return self.running.finish()


def read_to_end(client):
    replies = b""
    while piece := client.recv(1000):
        replies += piece
    return replies


class Serve(test_training.WithData):
    def setUp(self):
        super().setUp()
        done = program.run(*self.arguments())
        self.assertEqual(done.status, 0, done.err)

    def serve(self, *more):
        server = Server(self.out, *more)
        self.addCleanup(lambda: server.running.process.poll() is None and server.stop(signal.SIGKILL))
        return server

    # Every query gets the bytes that predict prints: one by one, as an array, as lines, with another number of labels.
    def test_same_answers_as_predict(self):
        queries = [line.split(" ", 1)[1].strip() for line in self.test_lines]
        expected = program.run("predict", self.out, stdin="\n".join(queries)).out.splitlines(keepends=True)
        server = self.serve()
        for query, line in list(zip(queries, expected))[:20]:
            self.assertEqual(server.ask("POST", "/predict", json.dumps(query), JSON)[::2], (200, line))
        objects = [{"features": [[int(i), float(v)] for i, v in (pair.split(":") for pair in query.split())]}
                   for query in queries]  # fmt: skip
        self.assertEqual(server.ask("POST", "/predict", json.dumps(objects), JSON)[2],
                         "[" + ",".join(line.strip() for line in expected) + "]\n")  # fmt: skip
        lines = server.ask("POST", "/predict", "\n".join(map(json.dumps, objects)), {"Content-Type": "application/x-ndjson"})
        self.assertEqual(lines[2], "".join(expected))
        top = program.run("predict", self.out, queries[0], "--top", "9").out
        self.assertEqual(server.ask("POST", "/predict?top=9", queries[0], {"Content-Type": "text/plain"})[2], top)
        model = json.loads(server.ask("GET", "/model")[2])
        self.assertEqual((model["features"], model["labels"], model["top"]), (200, 25, 5))
        self.assertEqual(server.ask("GET", "/healthz")[2], '{"status":"ok"}\n')
        done = server.stop()
        self.assertEqual((done.status, done.err), (143, ""))

    # Hash tables name the candidates of serve as those of predict.
    def test_retrieval(self):
        query = self.test_lines[0].split(" ", 1)[1].strip()
        expected = program.run("predict", self.out, query, "--net-alone", "--retrieval", "lsh").out
        server = self.serve("--net-alone", "--retrieval", "lsh")
        self.assertEqual(server.ask("POST", "/predict", json.dumps(query), JSON)[::2], (200, expected))
        self.assertEqual(server.stop().status, 143)

    # Sixty-four clients at once, each with its own queries on an open connection, get no other client's answers.
    def test_64_clients(self):
        queries = [line.split(" ", 1)[1].strip() for line in self.test_lines]
        expected = program.run("predict", self.out, stdin="\n".join(queries)).out.splitlines(keepends=True)
        server = self.serve()
        right, wrong = [], []

        def client(number):
            connection = server.connect()
            for i in range(10):
                k = (7 * number + i) % len(queries)
                connection.request("POST", "/predict", queries[k], {"Content-Type": "text/plain"})
                reply = connection.getresponse()
                body = reply.read().decode()
                same = (reply.status, body) == (200, expected[k])
                (right if same else wrong).append((number, i, reply.status, body))
            connection.close()

        threads = [threading.Thread(target=client, args=(number,)) for number in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((wrong, len(right)), ([], 640))  # none, too, where no thread could connect
        self.assertEqual(server.stop(signal.SIGINT).status, 130)

    # Wrong requests have a status and an explanation, and the server goes on.
    def test_wrong_requests(self):
        server = self.serve("--body-bytes", "1000", "--timeout", "1")
        for words, status, part in (
            (("POST", "/predict", "{", JSON), 400, "well-formed"),
            (("POST", "/predict", '{"features": [[1, "x"]]}', JSON), 400, "query"),
            (("POST", "/predict", '["1:1", "1:x"]', JSON), 400, "query 2"),
            (("POST", "/predict", "1:1", {"Content-Type": "application/x-www-form-urlencoded"}), 415, "text/plain"),
            (("POST", "/predict?top=none", '"1:1"', JSON), 400, "top=K"),
            (("POST", "/predict?top=2&top=3", '"1:1"', JSON), 400, "given twice"),
            (("POST", "/predict", " " * 1001, JSON), 413, "1000"),
            (("GET", "/predict"), 405, "POST /predict"),
            (("GET", "/"), 404, "GET /healthz"),
        ):
            with self.subTest(words=words):
                got, headers, body = server.ask(*words)
                self.assertEqual((got, headers["Content-Type"]), (status, "application/json"), body)
                self.assertIn(part, json.dumps(json.loads(body)["error"]))
        with socket.create_connection(("127.0.0.1", server.port), timeout=program.TIMEOUT) as slow:
            slow.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\n1:1")
            self.assertIn(b" 408 ", slow.recv(1000))
        with socket.create_connection(("127.0.0.1", server.port), timeout=program.TIMEOUT) as polite:
            polite.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Type: text/plain\r\n"
                           b"Content-Length: 1001\r\n\r\n")  # fmt: skip
            self.assertTrue(polite.recv(1000).startswith(b"HTTP/1.1 413 "))
        with socket.create_connection(("127.0.0.1", server.port), timeout=program.TIMEOUT) as rude:
            rude.sendall(b"\x00\x01 what is this\r\n\r\n")
            self.assertIn(b" 400 ", rude.recv(1000))
        self.assertEqual(server.ask("POST", "/predict", '"1:1"', JSON)[0], 200)
        self.assertEqual(server.stop().status, 143)

    # A request that is being sent when a signal comes is read to its end and answered. Then the process ends.
    def test_signal_lets_requests_finish(self):
        expected = program.run("predict", self.out, "1:1 2:1").out
        server = self.serve()
        with socket.create_connection(("127.0.0.1", server.port), timeout=program.TIMEOUT) as client:
            client.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Type: text/plain\r\n"
                           b"Content-Length: 7\r\n\r\n")  # fmt: skip
            # The server has begun with this request, and still has to get 4 bytes.
            self.assertIn(b" 100 ", client.recv(1000))
            client.sendall(b"1:1")
            server.running.signal(signal.SIGTERM)
            while True:
                try:
                    socket.create_connection(("127.0.0.1", server.port), timeout=program.TIMEOUT).close()
                except OSError:
                    break  # it listens no more
            client.sendall(b" 2:1")
            reply = b""
            while piece := client.recv(1000):
                reply += piece
        self.assertTrue(reply.startswith(b"HTTP/1.1 200 "), reply)
        self.assertTrue(reply.endswith(expected.encode()), reply)
        self.assertEqual(server.running.finish().status, 143)

    # A request that two readers could understand differently gets one reply, and what follows it none.
    def test_two_readers(self):
        server = self.serve()
        begin = b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n"
        follows = b"GET /model HTTP/1.1\r\nHost: y\r\n\r\n"
        for request in (
            begin + b"Content-Length: 38\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n1:1\r\n0\r\n\r\n",
            begin + b"Content-Length: 3\r\nContent-Length: 38\r\n\r\n1:1",
            begin + b"Content-Length : 3\r\n\r\n1:1",
            begin + b"Transfer-Encoding: chunked\r\n\r\n3;x=y\r\n1:1\r\n0\r\n\r\n",
            b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 38\r\n\r\n",
            b"GET /healthz HTTP/1.1\nHost: x\n\n",
        ):
            with self.subTest(request=request), server.open() as client:
                client.sendall(request + follows)
                replies = read_to_end(client)
                self.assertTrue(replies.startswith(b"HTTP/1.1 400 "), replies)
                self.assertEqual(replies.count(b"HTTP/1.1 "), 1, replies)
                self.assertIn("two readers", json.loads(replies.split(b"\r\n\r\n", 1)[1])["error"]["what"])
        with server.open() as client:  # the plain form of the same
            client.sendall(begin + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\n1:1\r\n0\r\n\r\n")
            self.assertTrue(read_to_end(client).startswith(b"HTTP/1.1 200 "))
        self.assertEqual(server.stop().status, 143)

    # Ten times as many clients as may be served never end their heads, and one sends no end of them: others are
    # answered at once, and the memory stays.
    def test_endless_heads(self):
        server = self.serve("--connections", "10")
        before = server.rss_mb()
        slow = [server.open() for _ in range(100)]
        for number, client in enumerate(slow):
            client.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\n"[:1 + number % 37])
        begin = time.monotonic()
        self.assertEqual(server.ask("GET", "/healthz")[0], 200)
        self.assertEqual(server.ask("POST", "/predict", '"1:1"', JSON)[0], 200)
        self.assertLess(time.monotonic() - begin, 3)  # a head has 5 s
        sent = 0
        with server.open() as endless, self.assertRaises(OSError):
            endless.sendall(b"POST /predict HTTP/1.1\r\n")
            while sent < 200 << 20:
                endless.sendall(b"x: y%s\r\n" % (b"z" * 4000))
                sent += 4000
        self.assertLess(server.rss_mb() - before, 50)
        for client in slow:
            client.close()
        self.assertEqual(server.stop().status, 143)

    # A port in use, an invalid address and a missing model are reported before anything is served.
    def test_refusals(self):
        server = self.serve()
        for words, status, part in (
            (("serve", self.out, "--listen", f"127.0.0.1:{server.port}"), 1, "a port in use"),
            (("serve", self.out, "--listen", "192.0.2.1:0"), 1, "an address of another machine"),
            (("serve", self.out, "--listen", "no.such.invalid:0"), 1, "a name that is not known"),
            (("serve", self.out, "--listen", "127.0.0.1:0", "--retrieval", "hash"), 2, "exact or lsh"),
            (("serve", self.out, "--listen", "8080"), 2, "HOST:PORT"),
            (("serve", self.out, "--listen", "127.0.0.1:99999"), 2, "HOST:PORT"),
            (("serve", self.path("none"), "--listen", "127.0.0.1:0"), 1, "no model"),
            (("serve", self.out), 2, "--listen"),
        ):
            with self.subTest(words=words):
                done = program.run(*words)
                self.assertEqual((done.status, done.out), (status, ""), done.err)
                self.assertIn(part, done.err)
        self.assertEqual(server.stop().status, 143)
