# SPDX-License-Identifier: Apache-2.0
"""What this machine lacks for the lab, found by trying."""

import os
import tempfile

import cgroups
import namespaces
import network
from commands import LabError, find_program, run

MISSING = "missing: "  # the lab cannot work
LIMITED = "limited: "  # it works, with something left out


def missing_at_hand():
    """One line for each missing thing that can be seen without trying; none when nothing is missing."""
    if os.geteuid() != 0:
        return [MISSING + "root: namespaces, links and control groups need it"]
    found = [
        f"{MISSING}{program}: apt-get install {package}"
        for program, package in network.PROGRAMS.items()
        if find_program(program) is None
    ]
    if find_program(network.delay_queue()) is None:
        found.append(f"{MISSING}{network.delay_queue()}: cmake --build build/release --target delay_queue")
    return found


def findings(lab):
    """One line for each thing that did not work. All objects made for it have the name of this lab."""
    return _in_namespace(lab) + _control_groups(lab)


def _in_namespace(lab):
    hub = namespaces.name_of(lab, namespaces.HUB)
    try:
        namespaces.create(hub)
        with namespaces.inside(hub):
            pass
    except LabError as error:
        return [f"{MISSING}network namespaces: {error}"]
    found = []

    def attempt(what, action, *arguments):
        try:
            with namespaces.inside(hub):
                return action(*arguments)
        except LabError as error:
            found.append(f"{MISSING}{what}: {error}")

    for what, command in (
        ("bridge (CONFIG_BRIDGE)", "ip link add name b type bridge"),
        ("veth (CONFIG_VETH)", "ip link add name a type veth peer name c"),
        ("tbf (CONFIG_NET_SCH_TBF)", "tc qdisc add dev lo root tbf rate 1mbit burst 5000 latency 100ms"),
        ("iptables' table mangle", "iptables -w 10 -t mangle -A PREROUTING -j DROP"),
        (
            "NFQUEUE (CONFIG_NETFILTER_XT_TARGET_NFQUEUE)",
            "iptables -w 10 -t mangle -A PREROUTING -j NFQUEUE --queue-num 0",
        ),
    ):
        attempt(what, run, *command.split())
    with tempfile.NamedTemporaryFile() as log:
        scheduling = attempt(
            "NFQUEUE (CONFIG_NETFILTER_NETLINK_QUEUE)",
            network.start_delay_queue,
            ["--delay", namespaces.path_of(hub), "1000"],
            hub,
            log.name,
        )
    if scheduling not in (None, "SCHED_FIFO"):
        found.append(LIMITED + "SCHED_FIFO is refused: a busy machine makes delays longer")
    return found


def _control_groups(lab):
    hierarchy = cgroups.Hierarchy.find()
    if hierarchy is None:
        return [LIMITED + "control groups that limit CPU time (CONFIG_CFS_BANDWIDTH): no --cpu"]
    group = namespaces.name_of(lab, 1)
    try:
        hierarchy.create(group)
        hierarchy.limit(group, 0.5)
    except LabError as error:
        return [f"{LIMITED}control groups that limit CPU time: {error}: no --cpu"]
    return []
