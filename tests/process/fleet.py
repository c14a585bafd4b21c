# SPDX-License-Identifier: Apache-2.0
"""A fleet on this machine for a test: a coordinator and members as processes, in a directory of its own.

Notes that this machine keeps about its runs are in that directory, too, so fleets of two tests know nothing of each
other. `machine` is the number of the machine that a process runs on. Here all have this one (lab_fleet.py has others).
Waiting is asking `status --json` again until it is as wanted, with a deadline that only a failure reaches.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import tempfile

import program

DEADLINE = 60


class Fleet:
    CONFIG = ("check", "things=12", "elements=64", "pause_ms=5")

    def __init__(self, case):
        self.case = case
        directory = tempfile.TemporaryDirectory()
        case.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.run = self.path("run")
        self.processes = []
        self.members = {}
        self.through = ()  # a command that execs each process
        case.addCleanup(self.end)

    def path(self, *parts):
        return os.path.join(self.directory, *parts)

    def on(self, _machine):
        """Processes that this thread starts within the `with` run on that machine."""
        return contextlib.nullcontext()

    def environment(self, machine):
        return {"XDG_STATE_HOME": self.path(f"state{machine}")}

    def start(self, *arguments, machine=1):
        with self.on(machine):
            process = program.Running(*arguments, environment=self.environment(machine), through=self.through)
        self.processes.append(process)
        return process

    def end(self):
        for one in self.processes:
            if one.process.poll() is None:
                one.signal(signal.SIGCONT)
                one.signal(signal.SIGKILL)
            if not one.process.stdout.closed:
                one.finish()

    def lead(self, *more, out=None, machine=1):
        """Starts a coordinator and returns it. Its join line gives address and token."""
        leader = self.start("coordinator", *self.CONFIG, "--out", out or self.run, *more, machine=machine)
        line = leader.process.stdout.readline()
        if not line:
            raise AssertionError(f"no coordinator: {leader.finish().err}")
        found = re.fullmatch(r"gossamer join (\S+)(?: --token (\S+))?\n", line)
        self.case.assertIsNotNone(found, line)
        leader.address, leader.token = found.groups()
        self.address = leader.address
        self.token = leader.token or self.token  # only a new run makes one
        return leader

    def join(self, name, *more, machine=1):
        member = self.start(
            "join", self.address, "--token", self.token, "--name", name, "--cores", "1", "--memory", "1G",
            "--dir", self.path(name), *more, machine=machine)  # fmt: skip
        self.members[name] = member
        return member

    def ask(self, *arguments, machine=1):
        with self.on(machine):
            return program.run(*arguments, environment=self.environment(machine))

    def wait_for(self, what, accept, target=None):
        """The first status that `accept` says yes to."""
        last = None
        for _ in program.looks(DEADLINE):
            last = self.ask("status", target or self.run, "--json")
            if last.status == 0 and accept(last.json()):
                return last.json()
        raise AssertionError(f"{what}: {last.out}{last.err}\n{self.words()}")

    def wait_for_members(self, count):
        def serve(status):
            serving = [one for one in status["members"] if one["state"] == "serving"]
            return len(serving) == len(status["members"]) == count and status["phase"] == "settled"

        return self.wait_for(f"{count} serve", serve)

    def wait_for_steps(self, beyond):
        return self.wait_for(f"steps beyond {beyond}", lambda status: (status["step"] or 0) > beyond)

    def events(self, directory="run", torn=False):
        """The events of a log. With `torn`, lines that a full disk has torn are left out."""
        found = []
        with open(self.path(directory, "events.jsonl"), encoding="utf-8") as file:
            for line in file:
                try:
                    found.append(json.loads(line))
                except json.JSONDecodeError:
                    if line != "\n" and not torn:
                        raise
        return found

    def copy_run(self):
        """A directory for a standby, with the part of the run's directory that it needs."""
        shutil.copytree(self.path("run", "credentials"), self.path("run2", "credentials"))
        return self.path("run2")

    def words(self):
        """Everything that the processes have printed so far."""
        texts = []
        for one in self.processes:
            while not one.lines.empty():
                line = one.lines.get()
                if line is not None:
                    one.seen.append(line)
            texts.append(f"--- {one.process.args[1]} {one.process.pid}, status {one.process.poll()}\n" + "".join(one.seen))
        return "\n".join(texts)


def by_name(status):
    return {one["name"]: one for one in status["members"]}


def incarnations(status):
    return {one["name"]: one["incarnation"] for one in status["members"]}
