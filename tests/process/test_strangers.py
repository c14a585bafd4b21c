# SPDX-License-Identifier: Apache-2.0
"""Strangers at the ports of a fleet in a lab: peers of another version, garbage, connections by the thousand.

The run goes on, none of its nodes is lost, and the cost of strangers is bounded.
"""

import contextlib
import os
import random
import resource
import select
import socket
import ssl
import subprocess
import sys
import unittest

import program
from fleet import DEADLINE, by_name, incarnations
from lab_fleet import PORT, LabCase, LabFleet, require_lab, used_by

OTHER_VERSION = os.environ.get("GOSSAMER_OTHER_VERSION", "build/release/tests/process/other_version")
MEMBER_PORT = 7080
HALF_OPEN = 1000
# The descriptors that a login gives. A program that wants more has to ask for them.
USUAL_DESCRIPTORS = 1024
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\0\0\0\x04\0\0\0\0\0"


def setUpModule():
    require_lab()
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(USUAL_DESCRIPTORS, usual[1]), usual[1]))
    unittest.addModuleCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, usual)


class OtherVersion(LabCase):
    def setUp(self):
        if not os.access(OTHER_VERSION, os.X_OK):
            self.skipTest(f"{OTHER_VERSION} is not built: cmake --build build/release --target other_version")

    def other(self, fleet, machine, *words):
        with fleet.on(machine):
            return subprocess.run([OTHER_VERSION, *words], capture_output=True, text=True, timeout=program.TIMEOUT,
                                  check=False)  # fmt: skip

    def expect_ranges(self, text):
        """The text names the versions that either side speaks."""
        for version in (1, 2):
            self.assertRegex(text, rf"\bversion {version}\b|\b{version} to {version}\b")

    # A stranger and a node of another version are told both ranges with status 4, by coordinator and member. Readers of
    # the coordinator's events are told, too. The run goes on.
    def test_comes(self):
        fleet = LabFleet(self, 3)
        leader, before = fleet.begin("a", "b")
        stranger = self.other(fleet, 3, "enroll", fleet.token)
        self.assertEqual(stranger.returncode, 4, stranger.stdout)
        self.expect_ranges(stranger.stdout)
        self.expect_ranges(fleet.wait_for_event(lambda event: event["event"] == "enrol_refused")["text"])

        fleet.members["b"].signal(2)
        self.assertEqual(fleet.members["b"].finish().status, 130)
        member = by_name(before)["a"]
        for peer in ([], [member["address"]]):
            node = self.other(fleet, 3, "hello", fleet.at(1), fleet.path("b"), *peer)
            self.assertEqual(node.returncode, 4, node.stdout)
            self.expect_ranges(node.stdout)
        left = by_name(before)["b"]
        lost = fleet.wait_for_event(lambda event: event["event"] == "lost" and event["text"] != "it left")
        self.assertEqual(lost["node"], left["node"])
        self.expect_ranges(lost["text"])
        after = fleet.wait_for_members(1)
        self.assertEqual(incarnations(after)["a"], member["incarnation"])
        fleet.wait_for_steps(after["step"])
        fleet.stop_all(leader, fleet.members["a"])

    # Members and joining machines end with status 4 when a coordinator comes back that speaks another version. They
    # print both ranges.
    def test_leads(self):
        fleet = LabFleet(self, 3)
        leader, _ = fleet.begin("a")
        leader.signal(9)
        leader.finish()
        with fleet.on(1):
            other = subprocess.Popen([OTHER_VERSION, "lead", fleet.at(1), fleet.run], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)  # fmt: skip
        for cleanup in (other.stdin.close, other.stdout.close, other.wait, other.kill):
            self.addCleanup(cleanup)
        self.assertEqual(other.stdout.readline(), "ready\n")
        fleet.join("b", machine=3)
        for name in "ab":
            done = fleet.members[name].finish()
            self.assertEqual(done.status, 4, done.err)
            self.expect_ranges(done.err)


class Ports(LabCase):
    def begin(self):
        """A coordinator, two members and a machine of strangers; (coordinator, status, all ports of two machines)."""
        fleet = LabFleet(self, 4)
        leader = fleet.lead("--listen", fleet.at(1), "--first", "2")
        for machine, name in ((2, "a"), (3, "b")):
            fleet.join(name, "--listen", f"{fleet.host(machine)}:{MEMBER_PORT}", machine=machine)
        ports = [(fleet.host(machine), port + bulk) for machine, port in ((1, PORT), (2, MEMBER_PORT)) for bulk in (0, 1)]
        return fleet, leader, fleet.wait_for_members(2), ports

    def tls(self, fleet, credentials=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        if credentials:
            context.load_cert_chain(fleet.path(credentials, "credentials", "certificate.pem"),
                                    fleet.path(credentials, "credentials", "key.pem"))  # fmt: skip
        return context

    def firsts(self, fleet):
        """Pairs of the TLS to speak, if any, and the first bytes to send."""
        noise = random.Random(1).randbytes(1 << 16)
        hello = b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + noise[:200]
        plain = [b"", b"\0" * 4096, noise, hello[:11], hello, PREFACE, PREFACE + SETTINGS]
        inside = [b"", noise, PREFACE, PREFACE + noise, PREFACE + SETTINGS, PREFACE + SETTINGS + b"\0\0\x40\x01\x04",
                  PREFACE + SETTINGS + b"\xff\xff\xff\0\0\0\0\0\x01"]  # fmt: skip
        fleet.lead("--listen", fleet.at(4), out=fleet.path("other"), machine=4)
        callers = (self.tls(fleet), self.tls(fleet, "b"), self.tls(fleet, "other"))
        return [(None, first) for first in plain] + [(tls, first) for tls in callers for first in inside]

    def expect_end(self, connection, what):
        """Expects that the other side closes the connection."""
        connection.settimeout(DEADLINE)
        try:
            while connection.recv(1 << 16):
                pass
        except TimeoutError:
            self.fail(f"still open after {DEADLINE} s: {what}")
        except OSError:
            pass

    def expect_undisturbed(self, fleet, before):
        after = fleet.wait_for_steps(before["step"])
        for name in "ab":
            self.assertEqual(incarnations(after)[name], incarnations(before)[name])

    # Garbage and truncated messages come before TLS and inside of it, with a certificate of the run, of another run and
    # without. The listening side closes every connection, and the run goes on.
    def test_garbage(self):
        fleet, leader, before, ports = self.begin()
        with contextlib.ExitStack() as open_ones, fleet.on(4):
            connections = []
            inside = set()
            firsts = self.firsts(fleet)
            for at in ports:
                for tls, first in firsts:
                    connection = open_ones.enter_context(socket.create_connection(at, timeout=DEADLINE))
                    with contextlib.suppress(OSError):
                        if tls:
                            connection = open_ones.enter_context(tls.wrap_socket(connection))
                            inside.add(at)
                        connection.sendall(first)
                    connections.append((connection, (at, tls and "TLS", first[:64])))
            self.assertEqual(inside, set(ports))  # garbage came inside of TLS, too
            during = fleet.wait_for_steps(before["step"])
            for connection, what in connections:
                self.expect_end(connection, what)
        self.expect_undisturbed(fleet, during)
        fleet.stop_all(leader, *fleet.members.values())

    # A thousand silent connections to each port of a coordinator and of a member do no harm, with the 1,024 descriptors
    # that a login gives. Steps go on, and a member joins. Each connection costs the listener a descriptor for the five
    # seconds of its handshake, and less than 64 KiB, which malloc may keep.
    def test_half_open(self):
        fleet, leader, before, ports = self.begin()
        processes = (leader, fleet.members["a"])
        calm = [used_by(process) for process in processes]
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        with contextlib.ExitStack() as open_ones:
            for at in ports:
                self.flood(fleet, at, open_ones)
            flooded = [used_by(process) for process in processes]
            fleet.join("c", machine=4)
            during = fleet.wait_for_members(3)
            self.expect_undisturbed(fleet, before)
            after = self.wait_for_descriptors(fleet, processes, calm)
        self.expect_undisturbed(fleet, during)
        print(f"calm {calm}, flooded {flooded}, after {after}", file=sys.stderr)
        for one, most in zip(calm, after):
            self.assertLess(most.most_resident_kb - one.resident_kb, 2 * HALF_OPEN * 64)
        fleet.stop_all(leader, *fleet.members.values())

    def flood(self, fleet, at, open_ones):
        """Opens so many connections at once, and waits until all are."""
        with fleet.on(4):
            flood = [open_ones.enter_context(socket.socket()) for _ in range(HALF_OPEN)]
        for one in flood:
            one.setblocking(False)
            one.connect_ex(at)
        for one in flood:
            poll = select.poll()
            poll.register(one, select.POLLOUT)
            self.assertTrue(poll.poll(DEADLINE * 1000))
            self.assertEqual(one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), 0)

    # The flood's own ends stay open. The listener has closed its ends.
    def wait_for_descriptors(self, fleet, processes, calm):
        for _ in program.looks(DEADLINE):
            after = [used_by(process) for process in processes]
            if all(now.descriptors < one.descriptors + 50 for now, one in zip(after, calm)):
                return after
        raise AssertionError(f"{calm}, {after}")


if __name__ == "__main__":
    unittest.main()
