# SPDX-License-Identifier: Apache-2.0
"""The plan of a lab: what `lab up` was asked for, and the number that tells its addresses from those of other labs.

Node K of lab number L has the address 10.77.L.K/24 and the hardware address 02:77:00:00:LL:KK. Plans lie in
/run/gossamer-lab, one JSON file each, from before the first namespace is made until the last one has gone.
"""

import contextlib
import fcntl
import json
import os

from commands import LabError
from namespaces import name_of

FOLDER = "/run/gossamer-lab"
NUMBERS = range(1, 251)  # of labs, and of a lab's nodes


def _path(lab):
    return os.path.join(FOLDER, lab + ".json")


def log_path(lab):
    """Where the delay queue of a lab complains."""
    return os.path.join(FOLDER, lab + ".log")


@contextlib.contextmanager
def _locked(descriptor, operation):
    """Within the `with`, holds flock(2) on an open file or folder, which it closes."""
    try:
        fcntl.flock(descriptor, operation)
        yield
    finally:
        os.close(descriptor)


def names():
    try:
        return sorted(entry[: -len(".json")] for entry in os.listdir(FOLDER) if entry.endswith(".json"))
    except FileNotFoundError:
        return []


def _no_such(lab):
    return LabError(f"there is no lab '{lab}'; there are: {', '.join(names()) or 'none'}")


@contextlib.contextmanager
def held(lab, operation=fcntl.LOCK_SH):
    """Within the `with`, the plan of a lab that is up. It stays up, unless a process holds LOCK_EX."""
    try:
        descriptor = os.open(_path(lab), os.O_RDONLY)
    except FileNotFoundError:
        raise _no_such(lab) from None
    with _locked(descriptor, operation), open(descriptor, encoding="utf-8", closefd=False) as file:
        if os.fstat(descriptor).st_nlink == 0:  # it went while we waited
            raise _no_such(lab)
        yield json.load(file)


def _number_of(lab):
    with open(_path(lab), encoding="utf-8") as file:
        return json.load(file)["number"]


@contextlib.contextmanager
def reserved(lab, nodes, warm):
    """Within the `with`, the plan of a new lab, with the lowest free number; LabError when the name is taken.

    `nodes`: one dict for each node: rate_bits_per_s, rtt_us and cpu_cores; None is no limit.
    """
    os.makedirs(FOLDER, exist_ok=True)
    new = _path(lab) + ".new"
    with contextlib.ExitStack() as stack:
        with _locked(os.open(FOLDER, os.O_RDONLY), fcntl.LOCK_EX):
            if lab in names():
                raise LabError(f"there is a lab '{lab}' already; take another name, or: lab down {lab}")
            taken = {_number_of(name) for name in names()}
            number = next((number for number in NUMBERS if number not in taken), None)
            if number is None:
                raise LabError(f"all {len(NUMBERS)} numbers of labs are taken")
            plan = _plan(lab, number, nodes, warm)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(new)
            # The plan is held before it has its name, so a process that finds the lab waits until it is up.
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT, 0o644)
            stack.enter_context(_locked(descriptor, fcntl.LOCK_EX))
            os.write(descriptor, json.dumps(plan).encode())
            os.rename(new, _path(lab))
        yield plan


def _plan(lab, number, nodes, warm):
    return {
        "name": lab,
        "number": number,
        "warm": warm,
        "nodes": [
            {
                "node": k,
                "namespace": name_of(lab, k),
                "address": f"10.77.{number}.{k}",
                "hardware_address": f"02:77:00:00:{number:02x}:{k:02x}",
                **node,
            }
            for k, node in enumerate(nodes, 1)
        ],
    }


def forget(lab):
    for path in (log_path(lab), _path(lab)):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def node_of(plan, number):
    """Node `number` of the plan."""
    if not 1 <= number <= len(plan["nodes"]):
        raise LabError(f"lab '{plan['name']}' has no node {number}; it has 1 to {len(plan['nodes'])}")
    return plan["nodes"][number - 1]
