# SPDX-License-Identifier: Apache-2.0
"""Strangers at the ports of a fleet on this machine: they reach neither gRPC nor each other's place.

Each test has a coordinator and two members. Meanwhile and afterwards the port answers, and no member loses its life.
"""

import collections
import contextlib
import socket
import ssl
import struct
import time
import unittest

from fleet import DEADLINE, Fleet, incarnations
from lab_fleet import used_by
from ports import free_ports

MOST_RESIDENT_KB = 200 << 10
SILENT = 60_000
HELLOS = 8_000
HELD = 6_000  # of the silent ones, those whose own end stays open
ANSWER_S = 1.0
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
HEADERS, RST_STREAM, CONTINUATION = 1, 3, 9


def frame(kind, stream, payload, flags=0):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def field(number, content):
    """A field of bytes of a protobuf message, shorter than 128."""
    return bytes([number << 3 | 2, len(content)]) + content


def ask(method, body=b""):
    """A stranger's question as its bytes (proto/gossamer/ask.proto)."""
    message = field(1, method.encode()) + field(2, body)
    return struct.pack("<I", len(message)) + message


def hello(protocol):
    """The first bytes of a TLS connection that offers this protocol."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols([protocol])
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="node.gossamer").do_handshake()
    return outgoing.read()


class Door(unittest.TestCase):
    def begin(self, descriptors=None):
        """Starts a fleet; (control ports of its processes, the lives of its members)."""
        self.fleet = Fleet(self)
        if descriptors:
            self.fleet.through = ("prlimit", f"--nofile={descriptors}:{descriptors}")
        self.leader = self.fleet.lead("--listen", f"127.0.0.1:{free_ports(2)[0]}", "--first", "2")
        for name in "ab":
            self.fleet.join(name)
        self.before = self.fleet.wait_for_members(2)
        addresses = [self.fleet.address, *(one["address"] for one in self.before["members"])]
        self.ports = [int(address.rsplit(":", 1)[1]) for address in addresses]
        self.assertEqual(len(set(self.ports)), 3)

    def connect(self, port, protocol):
        """TLS without a certificate, with this protocol; OSError where the door ends it."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols([protocol])
        connection = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
        self.addCleanup(connection.close)
        wrapped = context.wrap_socket(connection)
        self.addCleanup(wrapped.close)
        return wrapped

    def expect_answer(self):
        """A stranger with a token is answered in time."""
        begin = time.monotonic()
        done = self.fleet.ask("status", self.fleet.address, "--token", self.fleet.token, "--json")
        took = time.monotonic() - begin
        self.assertEqual(done.status, 0, done.err)
        self.assertLess(took, ANSWER_S)

    def expect_undisturbed(self):
        after = self.fleet.wait_for_steps(self.before["step"] + 1)
        self.assertEqual(incarnations(after), incarnations(self.before))
        for process in (self.leader, *self.fleet.members.values()):
            self.assertLess(used_by(process).most_resident_kb, MOST_RESIDENT_KB)
        for process in (self.leader, *self.fleet.members.values()):
            process.signal(9)

    def flood(self):
        """Opens silent connections to all control ports, most to the coordinator's."""
        held = collections.deque()
        for number in range(SILENT):
            one = socket.socket()
            one.setblocking(False)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            one.connect_ex(("127.0.0.1", self.ports[number % 3 if number % 2 else 0]))
            held.append(one)
            if len(held) > HELD:
                held.popleft().close()
            if number % (SILENT // 4) == 0:
                self.expect_answer()
        return held

    def silent(self, descriptors):
        self.begin(descriptors)
        held = self.flood()
        try:
            self.expect_answer()
            self.expect_undisturbed()
        finally:
            for one in held:
                one.close()

    # 60,000 silent connections leave the ports as they were, with few descriptors.
    def test_silent_with_few_descriptors(self):
        self.silent(1024)

    # The same with more descriptors than a process asks for.
    def test_silent_with_many_descriptors(self):
        self.silent(20_000)

    def expect_end(self, connection, burst):
        """Sends the same until the other side ends the connection; how many megabytes it took."""
        sent = 0
        end = time.monotonic() + DEADLINE
        with contextlib.suppress(OSError):
            while time.monotonic() < end:
                connection.sendall(burst)
                sent += len(burst)
        self.assertLess(time.monotonic(), end)
        return sent / 1e6

    # Without a certificate nobody gets to HTTP/2: streams that are reset and a header that never ends reach no one, at
    # the port of the coordinator and of a member, for control and for bulk.
    def test_no_http2_for_strangers(self):
        self.begin()
        resets = b"".join(frame(HEADERS, s, b"\x82", 4) + frame(RST_STREAM, s, b"\0\0\0\x08") for s in range(1, 400, 2))
        endless = frame(HEADERS, 1, b"\x82") + frame(CONTINUATION, 1, b"\0" * 16384) * 20
        for port in (self.ports[0], self.ports[0] + 1, self.ports[1]):
            for burst in (resets, endless):
                connection = None
                with contextlib.suppress(OSError):
                    connection = self.connect(port, "h2")
                    connection.sendall(PREFACE)
                if connection:
                    self.assertLess(self.expect_end(connection, burst), 20)
            self.expect_answer()
        self.expect_undisturbed()

    # Hundreds of half questions from one address keep nobody of it out, and each ends within its five seconds.
    def test_half_questions(self):
        self.begin()
        begun = []
        for number in range(300):
            connection = self.connect(self.ports[0], "gossamer-ask/1")
            connection.sendall(ask("Enroll", b"x" * 100)[: 4 + number % 50])
            begun.append(connection)
        self.expect_answer()
        self.fleet.join("late")
        self.fleet.wait_for_members(3)
        begin = time.monotonic()
        for connection in begun:
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                self.assertEqual(connection.recv(1), b"")
        self.assertLess(time.monotonic() - begin, 10)
        self.fleet.members.pop("late").signal(2)
        self.expect_answer()

    # Whole hellos, behind which nothing follows, cost no more handshakes than one address may begin. The port answers
    # another process of the same address all the while, and nodes work on.
    def test_hellos(self):
        self.begin()
        hellos = [hello("h2"), hello("gossamer-ask/1")]
        held = collections.deque()
        for number in range(HELLOS):
            one = socket.create_connection(("127.0.0.1", self.ports[number % 3 if number % 2 else 0]), timeout=DEADLINE)
            with contextlib.suppress(OSError):
                one.sendall(hellos[number // 2 % 2])
            held.append(one)
            if len(held) > HELD // 2:
                held.popleft().close()
            if number % (HELLOS // 4) == 0:
                self.expect_answer()
        self.expect_answer()
        self.fleet.join("late")
        self.fleet.wait_for_members(3)
        for one in held:
            one.close()
        late = self.fleet.members.pop("late")
        late.signal(2)
        late.finish()
        self.expect_undisturbed()

    # Strangers get an answer to Clock, and a refusal to what is for nodes, with and without a body.
    def test_what_strangers_may_ask(self):
        self.begin()
        for method, refused in (("Clock", False), ("Lead", True), ("Begin", True), ("Stop", True), ("Tokens", True),
                                ("Nonsense", True), ("Status", True), ("Enroll", True)):  # fmt: skip
            connection = self.connect(self.ports[0], "gossamer-ask/1")
            connection.sendall(ask(method))
            answer = b""
            while part := connection.recv(4096):
                answer += part
            (length,) = struct.unpack("<I", answer[:4])
            self.assertEqual(len(answer), 4 + length, method)
            self.assertEqual(answer[4], 0x12 if refused else 0x0A, (method, answer))
            if refused and method not in ("Status", "Enroll"):
                self.assertIn(b"needs a certificate of the run", answer, method)
        self.expect_undisturbed()


if __name__ == "__main__":
    unittest.main()
