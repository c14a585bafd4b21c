# SPDX-License-Identifier: Apache-2.0
"""A member with a certificate that attacks the others: it ends its own life, and costs them little memory.

The hostile one (hostile_member.cc) is a node of its own in each attack, beside a coordinator and two members. The
table that is printed has the most memory that an attack cost, and how many steps a second were taken meanwhile. Only
lives, memory and descriptors decide: the machine does other work beside.
"""

import contextlib
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import program
from fleet import DEADLINE, Fleet, incarnations
from lab_fleet import used_by

HOSTILE = os.environ.get("GOSSAMER_HOSTILE_MEMBER", "build/release/tests/process/hostile_member")
MOST_GROWTH_KB = 50_000
# A node may open 32 connections that say nothing to each port, and has one for each lane of its link. What closes is
# there a little longer.
MOST_DESCRIPTORS = 2 * (32 + 40) + 20
CALM_STEPS = 100
HALF_OPEN = 250  # connections to each port, with the certificate of one node
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
DATA, HEADERS, END_HEADERS = 0, 1, 4


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def half_a_message(path, whole, part):
    """A gRPC call, and so many bytes of a message that is to be longer."""
    fields = {":method": "POST", ":scheme": "https", ":path": path, ":authority": "node.gossamer", "te": "trailers",
              "content-type": "application/grpc", "grpc-timeout": "50S"}  # fmt: skip
    block = b"".join(b"\0" + bytes([len(n)]) + n.encode() + bytes([len(v)]) + v.encode() for n, v in fields.items())
    body = b"\0" + struct.pack(">I", whole) + bytes(part)
    pieces = [body[at : at + 16000] for at in range(0, len(body), 16000)]
    return PREFACE + frame(HEADERS, END_HEADERS, 1, block) + b"".join(frame(DATA, 0, 1, one) for one in pieces)


class Attacker:
    """A hostile member, and what it has said so far."""

    def __init__(self, case, token, words):
        self.case = case
        self.lines = []
        self.news = threading.Condition()
        self.process = subprocess.Popen([HOSTILE, token, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)  # fmt: skip
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        case.addCleanup(self.close)

    def read(self):
        for line in self.process.stdout:
            with self.news:
                self.lines.append(line.rstrip())
                self.news.notify_all()

    def wait_for(self, *words):
        """The first line that begins with one of the words."""
        found = lambda: next((line for line in self.lines if line.startswith(words)), None)
        with self.news:
            self.case.assertTrue(self.news.wait_for(found, DEADLINE), f"no line {words}: {self.lines}")
            return found()

    def said(self, word):
        with self.news:
            return any(line.startswith(word) for line in self.lines)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()


class HostileCase(unittest.TestCase):
    EVENTS = ("run",)  # the directory with the events of the coordinator

    def setUp(self):
        if not os.access(HOSTILE, os.X_OK):
            self.skipTest(f"{HOSTILE} is not built: cmake --build build/release --target hostile_member")

    def begin(self, *config):
        self.fleet = Fleet(self)
        if config:
            self.fleet.CONFIG = config
        self.honest = {"coordinator": self.fleet.lead("--listen", "127.0.0.1:0", "--first", "2")}
        for name in "ab":
            self.honest[name] = self.fleet.join(name)
        status = self.fleet.wait_for_members(2)
        self.lives = incarnations(self.fleet.wait_for_steps(status["step"] or 0))
        self.first = {name: used_by(one) for name, one in self.honest.items()}
        self.pace_before = self.pace(self.fleet.wait_for_steps(0))

    def pace(self, since):
        """Steps a second until there are some more."""
        begun = time.monotonic()
        status = self.fleet.wait_for_steps(since["step"] + CALM_STEPS)
        return (status["step"] - since["step"]) / (time.monotonic() - begun)

    def reason(self, incarnation):
        """Why the life was lost, if it was."""
        lost = (one for one in self.fleet.events(os.path.join(*self.EVENTS)) if one["event"] == "lost")
        return next((one["text"] for one in lost if one["incarnation"] == incarnation), None)

    def expect_undisturbed(self, what):
        for name, process in self.honest.items():
            self.assertIsNone(process.process.poll(), f"{name} has ended: {what}\n{self.fleet.words()}")
        status = self.fleet.wait_for_members(2)
        self.assertEqual(incarnations(status), self.lives, what)

    def step(self):
        """The step now. The port may be busy for a moment."""
        return self.fleet.wait_for("any status", lambda _: True)["step"]

    def attack(self, *words, ends_with="lost"):
        """One attack. `ends_with`: the hostile life is lost, or a line that the hostile member says."""
        what = " ".join(words)
        before = {name: used_by(one) for name, one in self.honest.items()}
        for one in self.honest.values():
            with open(f"/proc/{one.process.pid}/clear_refs", "w", encoding="ascii") as file:
                file.write("5")  # the most memory counts from now on
        with contextlib.closing(Attacker(self, self.fleet.token, words)) as attacker:
            life = int(attacker.wait_for("begun").split()[1])
            attacker.wait_for("attacks")
            begun = time.monotonic()
            step = self.step()
            why = self.wait_for_end(attacker, life, ends_with)
            took = time.monotonic() - begun
            after = {name: used_by(one) for name, one in self.honest.items()}
            steps = self.step() - step
        self.expect_undisturbed(what)
        grown = {name: after[name].most_resident_kb - before[name].resident_kb for name in self.honest}
        opened = {name: after[name].descriptors - before[name].descriptors for name in self.honest}
        print(f"{what}: {took:.1f} s, +MB { {n: round(kb / 1000) for n, kb in grown.items()} }, "
              f"+descriptors {max(opened.values())}, steps/s {self.pace_before:.0f} -> {steps / took:.0f}; {why[:150]}",
              file=sys.stderr, flush=True)  # fmt: skip
        self.assertLess(max(grown.values()), MOST_GROWTH_KB, f"{what}: {grown}")
        self.assertLess(max(opened.values()), MOST_DESCRIPTORS, f"{what}: {opened}")
        return why

    def wait_for_end(self, attacker, life, ends_with):
        if ends_with == "lost":
            for _ in program.looks(DEADLINE):
                if why := self.reason(life):
                    return why
            self.fail(f"incarnation {life} is not fenced: {attacker.lines}\n{self.fleet.words()}")
        for _ in program.looks(DEADLINE):
            if attacker.said(ends_with):
                return ends_with
            if why := self.reason(life):
                return why
        self.fail(f"neither '{ends_with}' nor fenced: {attacker.lines}\n{self.fleet.words()}")


class HostileMember(HostileCase):
    # Claim: whatever a member does on its links, it is fenced for that with a reason. The others keep their lives, and
    # none of them needs 50 MB for it, not even for a moment.
    def test_attacks(self):
        self.begin()
        for words in (("joining", "flood"), ("serving", "flood"), ("joining", "forbidden"), ("serving", "forbidden"),
                      ("serving", "grow"), ("joining", "beats"), ("serving", "beats"), ("serving", "asks"),
                      ("serving", "unread")):  # fmt: skip
            with self.subTest(attack=words):
                self.assertRegex(self.attack(*words), "rule|cannot read|holds|says|cannot reach")
        for words in (("joining", "hold", "6", "bulk"), ("serving", "hold", "6", "bulk"), ("serving", "hold", "8", "bulk"),
                      ("serving", "hold", "1", "control"), ("serving", "half")):  # fmt: skip
            with self.subTest(attack=words):
                self.attack(*words, ends_with="done")
        for words in (("serving", "busy"), ("joining", "busy")):
            with self.subTest(attack=words):
                self.assertEqual(self.attack(*words, ends_with="done"), "done", "it stays within its budget")
        with self.subTest(attack="lives"):
            self.attack("joining", "lives", ends_with="refused")
        for name, one in self.honest.items():
            grown = used_by(one).resident_kb - self.first[name].resident_kb
            self.assertLess(grown, MOST_GROWTH_KB, f"{name} keeps what all attacks have cost")
        self.attack("serving", "early")


    # Claim: connections with a certificate that carry no message, or half of one, cost each process little. The port
    # answers other nodes meanwhile.
    def test_half_open(self):
        self.begin()
        self.fleet.join("x")
        self.fleet.wait_for_members(3)
        self.fleet.members["x"].signal(signal.SIGKILL)
        self.expect_undisturbed("a member is killed")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        context.load_cert_chain(self.fleet.path("x", "credentials", "certificate.pem"),
                                self.fleet.path("x", "credentials", "key.pem"))  # fmt: skip
        first = self.fleet.wait_for_members(2)["members"][0]
        ports = {self.fleet.address: "coordinator", first["address"]: first["name"]}
        large = 1 << 20
        for what, said in (("nothing", b""), ("half a frame", half_a_message("/gossamer.Link/control", large, 60_000)),
                           ("half a question", half_a_message("/gossamer.Admission/Begin", large, 60_000))):  # fmt: skip
            for address, name in ports.items():
                with self.subTest(said=what, to=name), contextlib.ExitStack() as open_ones:
                    before = used_by(self.honest[name])
                    opened = self.open_many(context, int(address.rsplit(":", 1)[1]), said, open_ones)
                    self.assertGreater(opened, HALF_OPEN // 2)  # else nothing was tried
                    after = used_by(self.honest[name])
                    self.expect_undisturbed(what)
                    grown = after.resident_kb - before.resident_kb
                    print(f"{opened} times {what} to {name}: +{grown / 1000:.0f} MB, "
                          f"+{after.descriptors - before.descriptors} descriptors", file=sys.stderr, flush=True)  # fmt: skip
                    self.assertLess(grown, MOST_GROWTH_KB)

    def open_many(self, context, port, said, open_ones):
        """Returns how many were accepted and have said it."""
        opened = 0
        for _ in range(HALF_OPEN):
            one = open_ones.enter_context(socket.create_connection(("127.0.0.1", port), timeout=DEADLINE))
            with contextlib.suppress(OSError):
                one = open_ones.enter_context(context.wrap_socket(one))
                one.sendall(said)
                opened += 1
        return opened


class OfARunWithFiles(HostileCase):
    EVENTS = ("run", "nodes", "coordinator")

    # Claim: the same for what only runs with files have: chunks and deliveries.
    def test_attacks(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        data = os.path.join(directory.name, "train.txt")
        program.write_xmlc(data, 500, seed=1)
        self.begin("xmc", f"data.train={data}", "model.hidden=32", "train.batch=64", "train.epochs=10000")
        for words in (("joining", "chunks"), ("joining", "offers"), ("joining", "flood")):
            with self.subTest(attack=words):
                self.attack(*words)


if __name__ == "__main__":
    unittest.main()
