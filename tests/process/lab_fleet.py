# SPDX-License-Identifier: Apache-2.0
"""A fleet on several machines for a test: each process is in a namespace of a lab (tools/lab), with its own line.

Machine 1 is the coordinator's. `status` is asked there, over its own loopback, so that this works when the
coordinator reaches no other machine.
"""

import collections
import contextlib
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../tools/lab"))

import commands  # noqa: E402 (the lab's modules lie elsewhere)
import namespaces  # noqa: E402
import program  # noqa: E402
from fleet import DEADLINE, Fleet  # noqa: E402
from running import LabCase, lab  # noqa: E402

__all__ = ["PORT", "LabCase", "LabFleet", "fill", "goes_on_for", "require_lab", "small_disk", "used_by"]

PORT = 7070


def require_lab():
    """Skips the tests if a lab cannot work here, with a message that says what this machine lacks."""
    done = lab("check")
    if done.returncode != 0:
        raise unittest.SkipTest(f"the lab cannot work here: {' '.join((done.stdout + done.stderr).split())}")


class LabFleet(Fleet):
    # Steps without a pause would make the processes wait for the processors of a small machine.
    CONFIG = ("check", "things=12", "elements=64", "pause_ms=20")

    def __init__(self, case, machines, rate="100mbit", rtt="10ms"):
        """`case` is a LabCase. The lab is gone when the test ends."""
        self.plan = case.up("--nodes", machines, "--rate", rate, "--rtt", rtt)
        super().__init__(case)

    def on(self, machine):
        return namespaces.inside(self.plan["nodes"][machine - 1]["namespace"])

    def host(self, machine):
        return self.plan["nodes"][machine - 1]["address"]

    def at(self, machine):
        """Where a coordinator on that machine listens."""
        return f"{self.host(machine)}:{PORT}"

    def _lab(self, action, *words):
        done = lab(action, self.plan["name"], *words)
        self.case.assertEqual(done.returncode, 0, done.stderr)

    def cut(self, a, b="rest"):
        self._lab("cut", a, b)

    def heal(self, a, b="rest"):
        self._lab("heal", a, b)

    def close_ports(self, machine):
        """From now on nobody can open a connection to this machine, as behind NAT. Its own connections stay."""
        with self.on(machine):
            commands.run("iptables", "-w", "10", "-A", "INPUT", "-i", "eth0", "-p", "tcp", "--syn", "-j", "DROP")

    def change_address(self, machine, address):
        """From now on that machine has this address and not the one before. The others know at once."""
        self.take_address(machine)
        self.plan["nodes"][machine - 1]["address"] = address
        self.give_address(machine)

    def take_address(self, machine):
        """From now on that machine has no address, as before its network is up."""
        with self.on(machine):
            commands.run("ip", "address", "del", f"{self.host(machine)}/24", "dev", "eth0")

    def give_address(self, machine):
        """That machine had no address, and has its own again."""
        nodes = self.plan["nodes"]
        with self.on(machine):
            commands.run("ip", "address", "add", f"{self.host(machine)}/24", "dev", "eth0")
        # Nobody asks for hardware addresses in a lab, and the known ones went with the last address.
        for here in range(1, len(nodes) + 1):
            for there in {machine} if here != machine else set(range(1, len(nodes) + 1)) - {machine}:
                with self.on(here):
                    commands.run("ip", "neighbour", "replace", self.host(there), "lladdr",
                                 nodes[there - 1]["hardware_address"], "dev", "eth0", "nud", "permanent")  # fmt: skip

    def begin(self, *members, flags=()):
        """Starts a coordinator on machine 1 and a member on each machine from 2 on; returns (coordinator, status).

        All of them serve then.
        """
        leader = self.lead("--listen", self.at(1), "--first", str(len(members)), *flags)
        for machine, name in enumerate(members, 2):
            self.join(name, machine=machine)
        return leader, self.wait_for_members(len(members))

    def wait_for_event(self, accept, directory="run", torn=False):
        for _ in program.looks(DEADLINE):
            for event in self.events(directory, torn):
                if accept(event):
                    return event
        raise AssertionError(f"no such event in {directory}: {self.events(directory, torn)}\n{self.words()}")

    def stop_all(self, *processes):
        """Runs `gossamer stop`. Each process ends with status 0, which a member that saw a wrong sum does not."""
        stopped = self.ask("stop", self.run)
        self.case.assertEqual(stopped.status, 0, stopped.err)
        for process in processes:
            try:
                process.process.wait(timeout=DEADLINE)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"{process.process.args} does not end\n{self.words()}") from None
        said = [process.finish() for process in processes]
        for process, done in zip(processes, said):
            self.case.assertEqual(done.status, 0, f"{process.process.args}: {done.err}")
        return said


def goes_on_for(seconds, process):
    """Waits so long for the end of a process that is expected to go on."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        status = process.process.wait(timeout=max(0, seconds))
        raise AssertionError(f"{process.process.args} ended with status {status}")


Used = collections.namedtuple("Used", "resident_kb most_resident_kb descriptors")


def used_by(process):
    """The resources that a process uses now, as the kernel counts them."""
    pid = process.process.pid
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        rows = dict(line.split(":", 1) for line in file)
    return Used(int(rows["VmRSS"].split()[0]), int(rows["VmHWM"].split()[0]), len(os.listdir(f"/proc/{pid}/fd")))


@contextlib.contextmanager
def small_disk(directory, size="4m"):
    """Makes `directory` a disk of its own, of that size, within the `with`. It is gone afterwards with its content."""
    os.makedirs(directory, exist_ok=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "gossamer-test", directory],
                          capture_output=True, text=True, check=False)  # fmt: skip
    if done.returncode != 0:
        raise unittest.SkipTest(f"cannot mount a small disk here: {done.stderr.strip()}")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", directory], check=True)


def fill(directory):
    """Fills the disk, and the rest of the last page of events.jsonl. Returns the path that holds the room."""
    path = os.path.join(directory, "filling")
    for name, block in ((path, bytes(4096)), (os.path.join(directory, "events.jsonl"), b"\n")):
        with open(name, "ab", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(block):
                pass
    return path
