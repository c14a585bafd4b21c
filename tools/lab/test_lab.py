# SPDX-License-Identifier: Apache-2.0
"""The lab on this machine's kernel: exit status 77, with what is missing, where it cannot work.

A busy machine makes everything later and slower, never earlier or more. Bounds on that side are exact. On the
other side they hold in the best of TRIES measurements.
"""

import fcntl
import itertools
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import cgroups
import namespaces
import network
import plans
from running import LAB, NOTHING, PATIENCE, LabCase, kernel_objects, lab

TRIES = 5
HEADERS = 14 + 20 + 8  # of a datagram: Ethernet, IPv4, UDP


class Links(LabCase):
    # Nodes of 20 ms have 20 ms among them. A node of 180 ms is 100 ms away from them.
    def test_round_trip_time(self):
        plan = self.up("--nodes", 3, "--rtt", "20ms", "--rtt", "3=180ms")
        self.on_node(plan, 1, "echo").started()
        for node, rtt in ((2, 0.020), (3, 0.100)):
            with self.subTest(rtt=rtt):
                for _ in range(TRIES):
                    times = self.measure(plan, node, "ping", self.address(plan, 1), 20)
                    self.assertGreaterEqual(min(times), rtt)
                    if min(times) <= rtt * 1.1 + 0.001:
                        break
                print(f"RTT {rtt * 1e3:.0f} ms: measured {min(times) * 1e3:.2f} ms at best of {len(times)}")
                self.assertLessEqual(min(times), rtt * 1.1 + 0.001)

    def transfer(self, plan, receiver, senders, size):
        """All senders send `size` bytes at once: seconds, and bytes that came over the downlink."""
        sink = self.on_node(plan, receiver, "sink", len(senders)).started()
        peers = [
            self.on_node(plan, node, "send", self.address(plan, receiver), size).started() for node in senders
        ]
        before = self.traffic(plan)[receiver]["received"]["bytes"]
        begin = time.monotonic()
        for peer in peers:
            peer.tell("go")
        for peer in peers:
            self.assertEqual(peer.heard(), "done")
        seconds = time.monotonic() - begin
        self.assertEqual(sink.process.wait(timeout=PATIENCE), 0)
        return seconds, self.traffic(plan)[receiver]["received"]["bytes"] - before

    # One sender, and two that share the receiver's link, reach at least 80 % of 100 Mbit/s with their bytes.
    # They never reach more than the link carries, headers and repetitions included.
    def test_rate(self):
        plan = self.up("--nodes", 3, "--rate", "100mbit", "--rtt", "10ms")
        for senders in ((1,), (1, 2)):
            with self.subTest(senders=senders):
                size = 12_500_000 // len(senders)
                for _ in range(TRIES):
                    seconds, carried = self.transfer(plan, 3, senders, size)
                    self.assertGreater(carried, size * len(senders))
                    # The count may hold a last acknowledgement that the time does not.
                    self.assertLessEqual(carried * 8, 100e6 * seconds * 1.01 + 8 * 5120)
                    share = size * len(senders) * 8 / seconds / 100e6
                    if share >= 0.8:
                        break
                print(f"{len(senders)} senders: {share:.1%} of the link; {carried} bytes carried")
                self.assertGreaterEqual(share, 0.8)

    # Each node's counters show exactly the datagrams that it sent and got, headers included.
    def test_bytes(self):
        plan = self.up("--nodes", 3, "--rate", "50mbit", "--rtt", "1ms")
        self.on_node(plan, 1, "echo").started()
        self.measure(plan, 2, "ping", self.address(plan, 1), 7)
        counted = self.traffic(plan)
        expected = {"bytes": 7 * (HEADERS + 1), "packets": 7, "dropped": 0}
        nothing = {"bytes": 0, "packets": 0, "dropped": 0}
        for node, count in ((1, expected), (2, expected), (3, nothing)):
            self.assertEqual(counted[node], {"node": node, "sent": count, "received": count})

    # The messages that pass between three nodes after every cut and heal are those that a model says, in both directions.
    def test_cut_and_heal(self):
        plan = self.up("--nodes", 3, "--rtt", "2ms")
        peers = {node: self.on_node(plan, node, "messages") for node in (1, 2, 3)}
        for peer in peers.values():
            peer.started()
        pairs = list(itertools.permutations(peers, 2))
        severed = set()
        steps = (
            ("heal", 1, 2),
            ("cut", 1, 2),
            ("cut", 2, 1),
            ("cut", 3, "rest"),
            ("heal", 2, 1),
            ("cut", 1, 2),
            ("heal", 1, 3),
            ("heal", 3, "rest"),
            ("heal", 1, "rest"),
        )
        expected = {pair: [] for pair in pairs}
        heard = {pair: [] for pair in pairs}
        for step, (action, a, b) in enumerate(steps):
            done = lab(action, plan["name"], a, b)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
            touched = {frozenset((a, node)) for node in ([b] if b != "rest" else set(peers) - {a})}
            severed = severed | touched if action == "cut" else severed - touched
            for sender, receiver in pairs:
                peers[sender].tell(f"{self.address(plan, receiver)} step {step}")
                if frozenset((sender, receiver)) not in severed:
                    expected[sender, receiver].append(f"step {step}")
            # What passes keeps its order: once the last message has come, none that was cut comes any more.
            for receiver, peer in peers.items():
                for _ in [pair for pair in pairs if pair[1] == receiver and frozenset(pair) not in severed]:
                    address, text = peer.heard()
                    sender = next(node for node in peers if self.address(plan, node) == address)
                    heard[sender, receiver].append(text)
            self.assertEqual(heard, expected, f"after {action} {a} {b}")
        self.assertEqual(severed, set())

    # Buffers are always large. --warm, and it alone, keeps the speed of idle connections.
    def test_settings(self):
        names = ("tcp_rmem", "tcp_wmem", "tcp_slow_start_after_idle")
        for options, idle in (((), "1"), (("--warm",), "0")):
            plan = self.up("--nodes", 1, *options)
            paths = [f"/proc/sys/net/ipv4/{name}" for name in names]
            done = lab("exec", "--name", plan["name"], 1, "--", "cat", *paths)
            receive, send, after_idle = done.stdout.splitlines()
            self.assertEqual(
                (receive.split()[2], send.split()[2], after_idle), ("67108864", "67108864", idle)
            )


class Nodes(LabCase):
    # Two processes of a node with a fifth of a core get a fifth of a core together.
    def test_cpu_quota(self):
        if cgroups.Hierarchy.find() is None or "no --cpu" in lab("check").stdout:
            self.skipTest("no control groups that limit CPU time")
        plan = self.up("--nodes", 2, "--cpu", "2=0.2")
        seconds = self.measure(plan, 2, "spin", 2, 0.1)
        print(f"0.2 s of processor time at 0.2 cores: {seconds:.2f} s")
        self.assertGreaterEqual(seconds, 0.8 * 0.2 / 0.2)

    # The command runs on its node and in its group, gets our input, and its output and status are its own.
    def test_exec(self):
        plan = self.up("--nodes", 2)
        name = plan["name"]
        script = "cat; ip -o -4 address show dev eth0; exit 7"
        done = lab("exec", "--name", name, 2, "--", "sh", "-c", script, input="input\n")
        self.assertEqual((done.returncode, done.stderr), (7, ""))
        self.assertTrue(done.stdout.startswith("input\n"))
        self.assertIn(f" {self.address(plan, 2)}/24 ", done.stdout)
        if cgroups.Hierarchy.find():
            self.assertIn(
                f"/gossamer.{name}.2\n", lab("exec", "--name", name, 2, "cat", "/proc/self/cgroup").stdout
            )
        for words, status, said in (
            (["--name", name, 2, "--", "/nonexistent"], 127, "cannot run '/nonexistent'"),
            (["--name", name, 2, "--", "/"], 126, "cannot run '/'"),
            (["--name", name, 3, "--", "true"], 125, "has no node 3; it has 1 to 2"),
            (["--name", name + "x", 1, "--", "true"], 125, f"there is no lab '{name}x'; there are: "),
            (["--name", name, 2, "--"], 2, "expected a command"),
            (["--name", name, 2, "--", "sh", "-c", "kill -9 $$"], -signal.SIGKILL, ""),
        ):
            done = lab("exec", *words)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(said, done.stderr)

    # A signal to `lab exec` is a signal to the command, also the signal of a reader that leaves.
    def test_signals(self):
        plan = self.up("--nodes", 1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGPIPE):
            command = "exec yes" if number == signal.SIGPIPE else "echo ready; exec cat"
            process = subprocess.Popen(
                [LAB, "exec", "--name", plan["name"], "1", "--", "sh", "-c", command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            with process:
                process.stdout.readline()
                if number == signal.SIGPIPE:
                    process.stdout.close()
                else:
                    process.send_signal(number)
                self.assertEqual(process.wait(timeout=PATIENCE), -number)

    # Several labs at once have addresses of their own. A second one of the same name is refused and harms
    # nothing. One ends without the other.
    def test_several_labs(self):
        first = self.up("--nodes", 2, "--rtt", "1ms")
        second = self.up("--nodes", 2, "--rtt", "1ms")
        addresses = [
            node[key]
            for plan in (first, second)
            for node in plan["nodes"]
            for key in ("address", "hardware_address")
        ]
        self.assertEqual(len(set(addresses)), 8)
        done = lab("up", "--name", first["name"], "--nodes", 1)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"there is a lab '{first['name']}' already", done.stderr)
        self.down(second["name"])
        self.on_node(first, 1, "echo").started()
        self.assertEqual(len(self.measure(first, 2, "ping", self.address(first, 1), 3)), 3)

    # A dead delay queue lets nothing pass, and `lab exec` says so instead of running.
    def test_dead_delay_queue(self):
        plan = self.up("--nodes", 2, "--rtt", "1ms")
        namespaces.kill_all(lambda: namespaces.processes_in([f"gossamer.{plan['name']}.hub"]))
        done = lab("exec", "--name", plan["name"], 1, "--", "true")
        self.assertEqual(done.returncode, 125)
        self.assertIn("delay queue", done.stderr)


class Ends(LabCase):
    # Processes that hear no signal, have left their session or are dead and not waited for, end with their
    # lab. Everything of the lab goes, and a second `down` has nothing to do.
    def test_down_leaves_nothing(self):
        plan = self.up("--nodes", 3, "--rate", "10mbit", "--rtt", "5ms", "--cpu", "0.5")
        peers = [self.on_node(plan, node, "clingy") for node in (1, 2)]
        ends = [os.pidfd_open(pid) for peer in peers for pid in peer.heard()]
        self.assertNotEqual(kernel_objects(plan["name"]), NOTHING)
        self.down(plan["name"])
        for end in ends:
            self.assertTrue(select.select([end], [], [], 0)[0], "a process outlives its lab")
            os.close(end)
        done = lab("down", plan["name"])
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"there is no lab '{plan['name']}'", done.stderr)

    # Commands that start while their lab goes down are ended with it or do not start. None outlives it.
    def test_down_while_commands_start(self):
        plan = self.up("--nodes", 2)
        peers = [self.on_node(plan, 1, "wait").started()]
        peers += [self.on_node(plan, node, "wait") for node in (1, 2, 1, 2)]
        self.down(plan["name"])
        for peer in peers:
            self.assertIn(peer.process.wait(timeout=PATIENCE), (-signal.SIGKILL, 125))
        self.assertEqual(kernel_objects(plan["name"]), NOTHING)

    # A command waits for a lab that is going down, or coming up, and does not run when it has gone.
    def test_exec_waits(self):
        plan = self.up("--nodes", 1)
        name = plan["name"]
        with plans.held(name, fcntl.LOCK_EX):
            words = [LAB, "exec", "--name", name, "1", "--", "true"]
            process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
            patience = time.monotonic() + PATIENCE
            while not waits_for_lock(process.pid):
                self.assertIsNone(process.poll())
                self.assertLess(time.monotonic(), patience)
                os.sched_yield()
            network.tear_down(name)
        _, said = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, "there is no lab" in said), (125, True), said)

    # Ctrl-C and its like may come at every stage of `up`, told by the number of namespaces there are. Nothing
    # stays, and the exit status names the signal. Or the lab was up before the signal came, and is whole.
    def test_interrupted_up(self):
        nodes = 4
        stages = [(signal.SIGINT, stage) for stage in range(nodes + 2)]
        stages += [(number, stage) for number in (signal.SIGTERM, signal.SIGHUP) for stage in (1, nodes + 1)]
        ended = 0
        for number, stage in stages:
            with self.subTest(signal=number, stage=stage):
                name = self.new_name()
                process = subprocess.Popen(
                    [LAB, "up", "--name", name, "--nodes", str(nodes), "--rtt", "1ms"],
                    stdout=subprocess.DEVNULL,
                    start_new_session=True,
                )
                patience = time.monotonic() + PATIENCE
                while not kernel_objects(name)["files"] or len(namespaces.of_lab(name)) < stage:
                    self.assertLess(time.monotonic(), patience)
                    os.sched_yield()
                os.killpg(process.pid, number)  # as a terminal does: to the lab and to what it runs
                status = process.wait(timeout=PATIENCE)
                if status == 0:
                    self.assertEqual(len(kernel_objects(name)["namespaces"]), nodes + 1)
                    self.down(name)
                    continue
                ended += 1
                self.assertEqual(status, 128 + number)
                self.assertEqual(kernel_objects(name), NOTHING)
        print(f"{ended} of {len(stages)} ended before the lab was up")
        self.assertGreater(ended, 0)

    # The remains of an `up` that was killed at its last step, its delay queue among them, go with `down`.
    def test_killed_up(self):
        name = self.new_name()
        hub = namespaces.name_of(name, namespaces.HUB)
        with tempfile.TemporaryDirectory() as folder:
            silent = os.path.join(folder, "silent")
            with open(silent, "w", encoding="ascii") as file:
                file.write("#!/bin/sh\nexec tail -f /dev/null\n")
            os.chmod(silent, 0o755)
            process = subprocess.Popen(
                [LAB, "up", "--name", name, "--nodes", "2", "--rtt", "1ms"],
                env={**os.environ, "GOSSAMER_DELAY_QUEUE": silent},
            )
            patience = time.monotonic() + PATIENCE
            while not (stuck := [pid for pid in namespaces.processes_in([hub]) if name_of(pid) == "tail"]):
                self.assertLess(time.monotonic(), patience)
                os.sched_yield()
            ends = [os.pidfd_open(pid) for pid in stuck]
            process.kill()
            process.wait()
        self.assertNotEqual(kernel_objects(name), NOTHING)
        self.down(name)
        for end in ends:
            self.assertTrue(select.select([end], [], [], 0)[0], "the delay queue outlives its lab")
            os.close(end)

    # A lab is up once `up` has said so. A signal changes neither that nor the exit status.
    def test_signal_after_up(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) * 2:
            name = self.new_name()
            words = [LAB, "up", "--name", name, "--nodes", "1"]
            process = subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True)
            with process:
                self.assertIn(b"is up", process.stdout.readline())
                os.killpg(process.pid, number)
                self.assertEqual(process.wait(timeout=PATIENCE), 0)
            self.assertEqual(len(namespaces.of_lab(name)), 2)
            self.down(name)

    # Every single step of `up` fails once. `up` says which, its exit status is 1, and nothing stays.
    def test_failed_up(self):
        with tempfile.TemporaryDirectory() as folder:
            for program in ("ip", "tc", "bridge", "iptables"):
                write_failing(folder, program)
            for step in range(1, 1000):
                with open(os.path.join(folder, "left"), "w", encoding="ascii") as file:
                    file.write(str(step))
                name = self.new_name()
                path = {"PATH": f"{folder}:{os.environ['PATH']}"}
                words = ("up", "--name", name, "--nodes", 2, "--rate", "1mbit", "--rtt", "1ms")
                done = lab(*words, environment=path)
                if done.returncode == 0:
                    break
                self.assertEqual(done.returncode, 1)
                self.assertIn("failed on purpose", done.stderr)
                self.assertEqual(kernel_objects(name), NOTHING)
        print(f"{step - 1} steps of 'up' failed, one by one")
        self.down(name)
        self.assertGreater(step, 10)

    # A delay queue that cannot be started, or gives up, fails the lab with its reason, and nothing stays.
    def test_failed_delay_queue(self):
        for program, said in (
            ("/nonexistent", "is not built"),
            ("/bin/false", "did not start: it said nothing"),
            ("/bin/cat", "did not start: /bin/cat: unrecognized option '--delay'"),
        ):
            name = self.new_name()
            words = ("up", "--name", name, "--nodes", 2, "--rtt", "1ms")
            done = lab(*words, environment={"GOSSAMER_DELAY_QUEUE": program})
            self.assertEqual(done.returncode, 1)
            self.assertIn(said, done.stderr)
            self.assertEqual(kernel_objects(name), NOTHING)


class Words(LabCase):
    # Wrong words are refused with status 2 before anything is made.
    def test_usage(self):
        name = self.new_name()
        for words, said in (
            ((), "required: COMMAND"),
            (("up",), "required: --nodes"),
            (("up", "--nodes", "0"), "expected 1 to 250"),
            (("up", "--nodes", "251"), "expected 1 to 250"),
            (("up", "--nodes", "two"), "expected 1 to 250"),
            (("up", "--nodes", "2", "--rate", "fast"), "'fast' is no rate"),
            (("up", "--nodes", "2", "--rtt", "20"), "'20' is no round-trip time"),
            (("up", "--nodes", "2", "--cpu", "0"), "'0' is no number of cores"),
            (("up", "--nodes", "2", "--rtt", "3=20ms"), "there is no node '3'; expected 1 to 2"),
            (("up", "--nodes", "2", "--name", "a.b"), "'a.b': expected 1 to 40 of"),
            (("up", "--nodes", "2", "--speed", "1"), "unrecognized arguments: --speed"),
            (("cut", name, "1"), "required: B"),
        ):
            with self.subTest(words=words):
                named = ("--name", name) if "--nodes" in words and "--name" not in words else ()
                done = lab(*words, *named)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(said, done.stderr)
        self.assertEqual(kernel_objects(name), NOTHING)
        plan = self.up("--nodes", 2)
        for b, status, said in (
            ("1", 2, "the number of another node, or rest"),
            ("all", 2, "or rest"),
            ("3", 1, "has no node 3"),
        ):
            done = lab("cut", plan["name"], 1, b)
            self.assertEqual((done.returncode, said in done.stderr), (status, True), done.stderr)

    # `lab check` names what is missing, one line each, and leaves nothing.
    def test_check(self):
        process = subprocess.Popen([LAB, "check"], stdout=subprocess.PIPE, text=True)
        said, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0, said)
        self.assertEqual(kernel_objects(f"check-{process.pid}"), NOTHING)
        without = lab("check", environment={"GOSSAMER_DELAY_QUEUE": "/nonexistent"})
        self.assertEqual((without.returncode, len(without.stdout.splitlines())), (1, 1))
        self.assertIn("missing: /nonexistent", without.stdout)


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            return file.read().strip()
    except (FileNotFoundError, ProcessLookupError):  # it ended before or while we looked
        return ""


def waits_for_lock(pid):
    with open("/proc/locks", encoding="ascii") as locks:
        rows = [line.split() for line in locks]
    return any(row[1] == "->" and row[2] == "FLOCK" and row[5] == str(pid) for row in rows)


def write_failing(folder, program):
    """A stand-in for `program`: counts the number in the file `left` down and fails when it comes to 0."""
    path = os.path.join(folder, program)
    with open(path, "w", encoding="ascii") as file:
        file.write(f"""#!/bin/sh
left=$(($(cat {folder}/left) - 1))
echo "$left" >{folder}/left
[ "$left" -ne 0 ] || {{ echo "{program} failed on purpose" >&2; exit 3; }}
PATH=${{PATH#*:}}
exec {program} "$@"
""")
    os.chmod(path, 0o755)


if __name__ == "__main__":
    checked = lab("check")
    if checked.returncode != 0:
        print(f"skipped, the lab cannot work here:\n{checked.stdout}{checked.stderr}")
        sys.exit(77)
    print(checked.stdout, end="")
    unittest.main(verbosity=2)
