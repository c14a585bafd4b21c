# SPDX-License-Identifier: Apache-2.0
"""Builds, cuts, counts and removes the network of a plan (plans.py): a star of veth pairs around a switch.

node K: eth0 --- uplink, tbf --->  switch: nK --- downlink, tbf ---> node K: NFQUEUE, delay of node K
"""

import contextlib
import json
import os
import subprocess

import cgroups
import namespaces
import plans
from commands import LabError, find_program, run
from namespaces import HUB, inside, name_of

PROGRAMS = {"ip": "iproute2", "tc": "iproute2", "bridge": "iproute2", "iptables": "iptables"}
QUEUE_MS = 100  # what a link's queue holds; a packet that would wait longer is dropped
_TABLE = ("iptables", "-w", "10", "-t", "mangle")  # 10 seconds for others to be done with it
# Links with long delays want large buffers. No connection starts with what an older one has learnt.
_SETTINGS = {
    "ipv4/tcp_rmem": "4096 131072 67108864",
    "ipv4/tcp_wmem": "4096 1048576 67108864",
    "ipv4/tcp_no_metrics_save": "1",
}


def delay_queue():
    """The path of the program that holds packets: $GOSSAMER_DELAY_QUEUE, or that of the release build."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return os.environ.get("GOSSAMER_DELAY_QUEUE") or os.path.join(root, "build/release/tools/lab/delay_queue")


def super_packet_bytes(rate):
    """The largest packet that segmentation offload may build: 0.16 ms of the link, in 4 to 64 KiB.

    It sets the burst. The burst is what a small message gains on an idle link: 0.4 ms at 100 Mbit/s, 0.16 ms at 1 Gbit/s.
    """
    size = 4096
    while size < 65536 and (rate is None or size * 2 <= rate / 8 * 160e-6):
        size *= 2
    return size


def _queue(rate):
    """The queueing discipline of one direction of a link; every one counts bytes."""
    if rate is None:
        return ("pfifo", "limit", "100000")
    # A burst below a super-packet and its headers would cut it into packets of 1500 bytes.
    burst = super_packet_bytes(rate) * 5 // 4
    return ("tbf", "rate", f"{rate}bit", "burst", burst, "latency", f"{QUEUE_MS}ms")


def _build_hub(plan):
    """The switch, its ports and the nodes' ends of the links.

    It learns nothing and floods nothing: what a node receives depends on what was sent to it alone.
    """
    hub = name_of(plan["name"], HUB)
    links = ["link add name hub type bridge stp_state 0 mcast_snooping 0", "link set hub up"]
    entries = []
    for node in plan["nodes"]:
        port, address = f"n{node['node']}", node["hardware_address"]
        links += [
            f"link add name {port} type veth peer name eth0 address {address} netns {node['namespace']}",
            f"link set {port} gso_max_size {super_packet_bytes(node['rate_bits_per_s'])} master hub",
            f"link set {port} type bridge_slave flood off mcast_flood off bcast_flood off learning off",
            f"link set {port} up",
        ]
        entries.append(f"fdb add {address} dev {port} master static")
    with _quiet(hub):
        run("ip", "-batch", "-", stdin="\n".join(links) + "\n")
        run("bridge", "-batch", "-", stdin="\n".join(entries) + "\n")
        for node in plan["nodes"]:
            run("tc", "qdisc", "add", "dev", f"n{node['node']}", "root", *_queue(node["rate_bits_per_s"]))


@contextlib.contextmanager
def _quiet(namespace):
    """Inside the namespace, without IPv6: it would talk on its own, past the delay."""
    with inside(namespace):
        for scope in ("all", "default"):
            _set(f"ipv6/conf/{scope}/disable_ipv6", "1", optional=True)
        yield


def _set(name, value, optional=False):
    path = "/proc/sys/net/" + name
    if optional and not os.path.exists(path):
        return
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(value)
    except OSError as error:
        raise LabError(f"cannot write '{value}' to {path}: {error.strerror}") from error


def _build_node(plan, node):
    commands = [
        "link set lo up",
        f"link set eth0 gso_max_size {super_packet_bytes(node['rate_bits_per_s'])}",
        "link set eth0 up",
        f"address add {node['address']}/24 dev eth0",
    ]
    commands += [
        f"neighbour add {other['address']} lladdr {other['hardware_address']} dev eth0 nud permanent"
        for other in plan["nodes"]
        if other is not node
    ]
    with _quiet(node["namespace"]):
        for name, value in _SETTINGS.items():
            _set(name, value)
        if plan["warm"]:
            _set("ipv4/tcp_slow_start_after_idle", "0")
        run("ip", "-batch", "-", stdin="\n".join(commands) + "\n")
        run("tc", "qdisc", "add", "dev", "eth0", "root", *_queue(node["rate_bits_per_s"]))
        if node["rtt_us"] > 0:
            run(*_TABLE, "-A", "PREROUTING", "-i", "eth0", "-j", "NFQUEUE", "--queue-num", "0")


def delays_of(plan):
    """The arguments of the delay queue: each node with a delay, and half its time in microseconds."""
    return [
        word
        for node in plan["nodes"]
        if node["rtt_us"] > 0
        for word in ("--delay", namespaces.path_of(node["namespace"]), str(node["rtt_us"] // 2))
    ]


def start_delay_queue(delays, hub, log):
    """Starts it in the switch's namespace, where the end of the lab finds it. Returns the scheduling that it got."""
    program = find_program(delay_queue())
    if program is None:
        raise LabError(f"{delay_queue()} is not built; run: cmake --build build/release --target delay_queue")
    with open(log, "w", encoding="utf-8") as errors, inside(hub):
        process = subprocess.Popen(
            [program, *delays],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd="/",
            start_new_session=True,
            text=True,
        )
    with process.stdout:
        words = process.stdout.readline().split()
    if words[:1] != ["ready"]:
        with open(log, encoding="utf-8") as errors:
            raise LabError(f"the delay queue did not start: {errors.read().strip() or 'it said nothing'}")
    return words[1]


def build(plan, pause):
    """Makes the lab, with a pause() between steps; tear_down() removes what an exception leaves."""
    lab = plan["name"]
    hub = name_of(lab, HUB)
    namespaces.create(hub)
    for node in plan["nodes"]:
        pause()
        namespaces.create(node["namespace"])
    pause()
    _build_hub(plan)
    for node in plan["nodes"]:
        pause()
        _build_node(plan, node)
    _build_groups(plan)
    pause()
    delays = delays_of(plan)
    if delays:
        start_delay_queue(delays, hub, plans.log_path(lab))


def _build_groups(plan):
    hierarchy = cgroups.Hierarchy.find()
    limited = any(node["cpu_cores"] for node in plan["nodes"])
    if hierarchy is None:
        if limited:
            raise LabError(
                "this machine has no control groups that limit CPU time (see: lab check); leave out --cpu"
            )
        return
    for node in plan["nodes"]:
        try:
            hierarchy.create(node["namespace"])
        except LabError:
            if limited:
                raise
            return  # a container may show them and not let us make one; they are needed for limits only
        if node["cpu_cores"]:
            hierarchy.limit(node["namespace"], node["cpu_cores"])


def check_delays(plan):
    """Raises LabError when packets are to be delayed and no delay queue is there to let them go."""
    if delays_of(plan) and not namespaces.processes_in([name_of(plan["name"], HUB)]):
        with contextlib.suppress(OSError), open(plans.log_path(plan["name"]), encoding="utf-8") as log:
            raise LabError(f"the delay queue of lab '{plan['name']}' has ended: {log.read().strip()}")


def tear_down(lab):
    """Ends the lab's processes and removes all that it has. LabError when something remains."""
    hierarchy = cgroups.Hierarchy.find()
    found = namespaces.of_lab(lab)
    groups = hierarchy.of_lab(lab) if hierarchy else []
    problems = []

    def attempt(action, *arguments):
        try:
            action(*arguments)
        except LabError as error:
            problems.append(str(error))

    def processes():
        return namespaces.processes_in(found) | (hierarchy.processes(groups) if hierarchy else set())

    attempt(namespaces.kill_all, processes)
    for namespace in found:
        attempt(namespaces.remove, namespace)
    for group in groups:
        attempt(hierarchy.remove, group)
    if problems:
        raise LabError(f"lab '{lab}' is not all gone: {'; '.join(problems)}")
    plans.forget(lab)


def _both_ways(plan, a, others):
    """(namespace of the receiver, address of the sender) of each path between node a and the others."""
    first = plans.node_of(plan, a)
    for b in others:
        second = plans.node_of(plan, b)
        yield first["namespace"], second["address"]
        yield second["namespace"], first["address"]


def _is_cut(address):
    try:
        run(*_TABLE, "-C", "PREROUTING", "-s", address, "-j", "DROP")
        return True
    except LabError:
        return False


def cut(plan, a, others):
    """From now on packets between node a and each of the others disappear at the receiver.

    They disappear there because a sender would be told that its packet was dropped. Packets that the delay holds
    arrive yet.
    """
    for namespace, address in _both_ways(plan, a, others):
        with inside(namespace):
            if not _is_cut(address):
                run(*_TABLE, "-I", "PREROUTING", "-s", address, "-j", "DROP")


def heal(plan, a, others):
    for namespace, address in _both_ways(plan, a, others):
        with inside(namespace):
            while _is_cut(address):
                run(*_TABLE, "-D", "PREROUTING", "-s", address, "-j", "DROP")


def _counters(namespace, device):
    with inside(namespace):
        rows = json.loads(run("tc", "-s", "-j", "qdisc", "show", "dev", device))
    root = next(row for row in rows if row.get("root"))
    return {"bytes": root["bytes"], "packets": root["packets"], "dropped": root["drops"]}


def traffic(plan):
    """The bytes that left each node's uplink and came over its downlink since `lab up`, headers included."""
    hub = name_of(plan["name"], HUB)
    return [
        {
            "node": node["node"],
            "sent": _counters(node["namespace"], "eth0"),
            "received": _counters(hub, f"n{node['node']}"),
        }
        for node in plan["nodes"]
    ]
