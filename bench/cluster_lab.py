# SPDX-License-Identifier: Apache-2.0
"""A lab (tools/lab) in which nodes train together, and what a step costs them, seen from outside.

A program that trains writes a line for each step, `EPOCH STEP RANK MEMBERS LOSS`, to a file NAME.steps in one folder.
Seconds, bytes and CPU of a step follow from the growth of these files, the counters of links and the kernel's figures
of threads, for any program.
"""

import contextlib
import dataclasses
import os
import pathlib
import subprocess
import sys
import time
import urllib.request

import measure

sys.path.append(str(measure.ROOT / "tools/lab"))
import cgroups  # noqa: E402  tools/lab has no package
import namespaces  # noqa: E402
import network  # noqa: E402
import plans  # noqa: E402
import units  # noqa: E402

POLL_S = 0.005
METRICS_PORT = 9464


def can_work():
    """What this machine lacks for a lab, or nothing."""
    done = subprocess.run([measure.ROOT / "tools/lab/lab", "check"], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode else ""


@contextlib.contextmanager
def lab(count, rate_mbps, rtt_ms):
    """A warm Lab of `count` nodes without CPU limits, as long as the `with` lasts."""
    node = {"rate_bits_per_s": units.parse_rate(f"{rate_mbps}mbit"), "rtt_us": units.parse_rtt(f"{rtt_ms}ms"), "cpu_cores": None}
    with contextlib.ExitStack() as stack:
        with plans.reserved(f"cluster-{os.getpid()}", [dict(node) for _ in range(count)], True) as plan:
            stack.callback(network.tear_down, plan["name"])
            network.build(plan, lambda: None)
        here = Lab(plan)
        stack.callback(here.kill_all)
        yield here


class Lab:
    """A lab that is up. Nodes are numbered from 1."""

    def __init__(self, plan):
        self.plan = plan
        self.hierarchy = cgroups.Hierarchy.find()
        self.processes = []

    def address(self, node):
        return self.plan["nodes"][node - 1]["address"]

    def limit(self, node, cores):
        """Gives node `node` so many cores from now on."""
        self.hierarchy.limit(self.plan["nodes"][node - 1]["namespace"], cores)

    def start(self, node, command, log, environment=None):
        """Starts the command as a process of the node. Its output goes to the file `log`."""
        words = [measure.ROOT / "tools/lab/lab", "exec", "--name", self.plan["name"], node, "--", *command]
        with open(log, "w", encoding="utf-8") as out:
            process = subprocess.Popen([str(word) for word in words], stdout=out, stderr=subprocess.STDOUT,
                                       stdin=subprocess.DEVNULL, env={**os.environ, **(environment or {})})
        self.processes.append(process)
        return process

    def kill_all(self):
        """Ends all processes that were started in the lab, and waits for them."""
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        self.processes.clear()

    def sent(self):
        """{node: bytes that it has sent, headers included}"""
        return {node["node"]: node["sent"]["bytes"] for node in network.traffic(self.plan)}

    def metrics(self, node):
        """{name: value} of a node's page for Prometheus; empty when there is none."""
        try:
            with namespaces.inside(self.plan["nodes"][node - 1]["namespace"]), \
                    urllib.request.urlopen(f"http://{self.address(node)}:{METRICS_PORT}/metrics", timeout=10) as page:
                lines = page.read().decode().splitlines()
        except OSError:
            return {}
        pairs = [line.rpartition(" ") for line in lines if not line.startswith("#")]
        return {name: float(value) for name, _, value in pairs}


@dataclasses.dataclass
class Member:
    """A process that trains. Its thread `main` computes, or where `main` is false the one that is most on a CPU."""

    node: int
    process: subprocess.Popen
    main: bool
    log: pathlib.Path


class Steps:
    """How many steps are done, from the files that grow in a folder, and when that was first seen."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.read = {}  # {path: bytes of whole lines}
        self.done = 0
        self.arrivals = []  # (monotonic seconds, steps done)

    def look(self):
        """Whether there are new steps."""
        before = self.done
        for path in self.folder.glob("*.steps"):
            with open(path, "rb") as file:
                file.seek(self.read.setdefault(path, 0))
                whole, newline, _ = file.read().rpartition(b"\n")
            self.read[path] += len(whole) + len(newline)
            for line in whole.splitlines():
                self.done = max(self.done, int(line.split()[1]) + 1)
        if self.done > before:
            self.arrivals.append((time.monotonic(), self.done))
        return self.done > before

    def wait(self, done, limit_s, members):
        """Waits until so many steps are done; Failed when it takes too long or a member ends."""
        def enough():
            self.look()
            return self.done >= done
        await_true(enough, limit_s, members)

    def wait_for_next(self, limit_s, members):
        self.wait(self.done + 1, limit_s, members)


def await_true(look, limit_s, nodes):
    """Waits until look() is true; Failed, with the end of a log, when it takes too long or a node ends before."""
    deadline = time.monotonic() + limit_s
    while not look():
        must_live(nodes)
        if time.monotonic() > deadline:
            raise measure.Failed(f"node {nodes[0].node} is not so far within {limit_s:.0f} s:\n{tail(nodes[0].log)}")
        time.sleep(POLL_S)


def must_live(nodes):
    """Raises Failed, with the end of its log, when one of the nodes has ended."""
    for one in nodes:
        if one.process.poll() is not None:
            raise measure.Failed(f"node {one.node} has ended:\n{tail(one.log)}")


def tail(path):
    return path.read_text(errors="replace")[-1500:] if path.exists() else ""


def median_step_seconds(arrivals):
    """The median time of single steps, without the time of things that come only once in some steps."""
    each = [(b[0] - a[0]) / (b[1] - a[1]) for a, b in zip(arrivals, arrivals[1:]) for _ in range(b[1] - a[1])]
    return measure.median(each)


def thread_times(pid):
    """{thread id: (seconds on a CPU, seconds in want of one)}"""
    times = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            run, queued, _ = (task / "schedstat").read_text(encoding="ascii").split()
            times[int(task.name)] = int(run) / 1e9, int(queued) / 1e9
    return times


@dataclasses.dataclass
class Reading:
    """All counters at one moment."""

    when: float
    idle: float  # CPU seconds of the machine since it started
    done: int
    sent: dict
    threads: dict  # {node: thread_times}
    pages: dict  # {node: metrics}


def idle_seconds():
    with open("/proc/stat", encoding="ascii") as file:
        name, _user, _nice, _system, idle, *_ = file.readline().split()
    assert name == "cpu"
    return int(idle) / os.sysconf("SC_CLK_TCK")


def read(here, steps, members, pages):
    return Reading(when=time.monotonic(), idle=idle_seconds(), done=steps.done, sent=here.sent(),
                   threads={one.node: thread_times(one.process.pid) for one in members},
                   pages={one.node: here.metrics(one.node) for one in members} if pages else {})


def computing_thread(member, before, after):
    """(seconds on a CPU, seconds in want of one) of the thread that computes, between two readings."""
    old, new = before.threads[member.node], after.threads[member.node]
    spent = {thread: tuple(now - then for now, then in zip(new[thread], old.get(thread, (0, 0)))) for thread in new}
    return spent[member.process.pid] if member.main else max(spent.values())


def process_cpu(member, before, after):
    # A thread that has ended in between is missing in both.
    old, new = before.threads[member.node], after.threads[member.node]
    return sum(run - old.get(thread, (0, 0))[0] for thread, (run, _) in new.items())


def said(member, before, after, name):
    """Bytes a step by the program's own counters, or None."""
    old, new = before.pages.get(member.node, {}), after.pages.get(member.node, {})
    steps = new.get("gossamer_sparse_steps_total", 0) - old.get("gossamer_sparse_steps_total", 0)
    key = f"gossamer_sparse_{name}_bytes_total"
    return (new[key] - old.get(key, 0)) / steps if steps > 0 and key in new else None


def cost(members, before, after, arrivals):
    """The cost of a step, as means over the members: seconds, bytes, CPU, and what the computing thread did."""
    count = after.done - before.done
    wall = (after.when - before.when) / count
    def mean(values):
        values = [value for value in values if value is not None]
        return sum(values) / len(values) if values else None
    threads = [computing_thread(member, before, after) for member in members]
    on_cpu, queued = (mean([times[i] for times in threads]) / count for i in (0, 1))
    return {
        "steps": count,
        "step_s": wall,
        "median_step_s": median_step_seconds(arrivals),
        "sent_bytes": mean([after.sent[one.node] - before.sent[one.node] for one in members]) / count,
        "step_bytes": mean([said(one, before, after, "step") for one in members]),
        "background_bytes": mean([said(one, before, after, "background") for one in members]),
        "cpu_s": mean([process_cpu(one, before, after) for one in members]) / count,
        "most_cpu_s": max(process_cpu(one, before, after) for one in members) / count,
        "computing_s": on_cpu,
        "most_computing_s": max(run for run, _ in threads) / count,
        "queued_s": queued,
        "asleep_s": max(0.0, wall - on_cpu - queued),
        "idle_cores": (after.idle - before.idle) / (after.when - before.when),  # of the machine
        "load": os.getloadavg()[0],
    }


def observe(here, steps, members, *, seconds, least_steps, limit_s, pages=False, just_done=False):
    """The cost of a step, from steps that take `seconds` together, and are at least `least_steps`.

    It counts from the end of the step that is under way, or from now where one was `just_done`.
    """
    if not just_done:
        steps.wait_for_next(limit_s, members)
    before = read(here, steps, members, pages)
    first = len(steps.arrivals) - 1
    while time.monotonic() < before.when + seconds or steps.done < before.done + least_steps:
        steps.wait_for_next(limit_s, members)
    after = read(here, steps, members, pages)
    return cost(members, before, after, steps.arrivals[first:])
