# SPDX-License-Identifier: Apache-2.0
"""The binary under test as a black box: run it to its end, or start it and wait for its lines.

$GOSSAMER is the path of the binary (ctest sets it). Every wait is for a line, a file's line or the end of the process,
with a timeout that only a failure reaches. A wait that has to look again and again pauses between two looks: four tests
share two cores, and looking would take the CPU from the programs that they wait for.
"""

import atexit
import json
import os
import queue
import random
import re
import subprocess
import threading
import time

GOSSAMER = os.environ.get("GOSSAMER", "build/release/gossamer")
TIMEOUT = float(os.environ.get("GOSSAMER_TEST_WAIT", "120"))  # seconds; longer in sanitizer builds
PAUSE = 0.1


def looks(seconds):
    """Yields for each look at what is waited for, until so many seconds are over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(PAUSE)


class Finished:
    """The results of a process: exit status, standard output and standard error."""

    def __init__(self, status, out, err):
        self.status = status
        self.out = out
        self.err = err

    def json(self):
        """Standard output as exactly one JSON object on one line."""
        lines = self.out.splitlines()
        assert len(lines) == 1, f"one line wanted, got {len(lines)}: {self.out!r}\n{self.err}"
        return json.loads(lines[0])

    def json_lines(self):
        return [json.loads(line) for line in self.out.splitlines()]


def run(*arguments, stdin="", cwd=None, environment=None):
    """Runs `gossamer ARGUMENTS` to its end."""
    done = subprocess.run(
        [GOSSAMER, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


class Running:
    """A process whose standard error is read line by line as it comes. `through`: a command that execs the process."""

    def __init__(self, *arguments, environment=None, through=(), directory=None):
        self.process = subprocess.Popen(
            [*through, os.path.abspath(GOSSAMER), *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=directory,
            env={**os.environ, **(environment or {})},
        )
        atexit.register(self.process.kill)  # a test that failed has waited for no end; nothing where it has ended
        self.lines = queue.Queue()
        self.seen = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.lines.put(line)
        self.lines.put(None)

    def wait_for_line(self, part):
        """Returns the first line of standard error that holds `part`."""
        while True:
            line = self.lines.get(timeout=TIMEOUT)
            assert line is not None, f"ended without a line with {part!r}:\n{''.join(self.seen)}"
            self.seen.append(line)
            if part in line:
                return line

    def signal(self, number):
        self.process.send_signal(number)

    def finish(self):
        # A process that hangs closes no output. It is killed, so that the test says what the process has said.
        hung = threading.Event()

        def end():
            hung.set()
            self.process.kill()

        patience = threading.Timer(2 * TIMEOUT, end)
        patience.start()
        out = self.process.stdout.read()
        patience.cancel()
        status = self.process.wait(timeout=TIMEOUT)
        self.reader.join(timeout=TIMEOUT)
        self.process.stdout.close()
        self.process.stderr.close()
        while not self.lines.empty():
            line = self.lines.get()
            if line is not None:
                self.seen.append(line)
        assert not hung.is_set(), f"has not ended within {2 * TIMEOUT} s:\n{''.join(self.seen)}"
        return Finished(status, out, "".join(self.seen))


def saved_step(directory):
    """The step of the one file that a member's directory has for its coordinator: where it was written, or moved aside."""
    deliver = os.path.join(directory, "deliver")
    there = os.listdir(deliver) + os.listdir(os.path.join(deliver, "outgoing"))
    (kept,) = filter(None, (re.fullmatch(r"(?:\d+-)?step-(\d+)\.\d+\.part", file) for file in there))
    return int(kept[1])


def fill_disk(path, room):
    """Writes a file that leaves so many bytes of its (small) file system."""
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass  # no room is left
        file.truncate(max(0, file.tell() - room))


def write_xmlc(path, records, seed):
    """A small data set that can be learnt: label l brings features 3l..3l+2, among others of no meaning.

    25 labels and 200 features, so that a few hundred records are enough.
    """
    random_numbers = random.Random(seed)
    lines = []
    for _ in range(records):
        labels = sorted(random_numbers.sample(range(25), random_numbers.choice([1, 1, 2])))
        features = {75 + random_numbers.randrange(125): 1 for _ in range(5)}
        for label in labels:
            features.update({3 * label + k: random_numbers.choice([1, 2]) for k in range(3)})
        pairs = " ".join(f"{index}:{value}" for index, value in sorted(features.items()))
        lines.append(f"{','.join(map(str, labels))} {pairs}\n")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{records} 200 25\n")
        file.writelines(lines)
    return lines
