# SPDX-License-Identifier: Apache-2.0
"""Network namespaces: one for each node of a lab, `gossamer.LAB.K`, one for its switch, `gossamer.LAB.hub`.

A lab's name has no dot, so names of two labs never meet. Everything that a lab owns is found by these names in the
kernel, never by notes. So the remains of a killed `lab up` are found too.
"""

import contextlib
import ctypes
import os
import re
import select
import signal
import time

from commands import LabError, run

FOLDER = "/run/netns"
HUB = "hub"
PATIENCE = 30  # seconds for killed processes to go
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)  # os.setns came with Python 3.12


def name_of(lab, node):
    return f"gossamer.{lab}.{node}"


def path_of(namespace):
    return os.path.join(FOLDER, namespace)


def of_lab(lab):
    """The names of the lab's namespaces that exist."""
    pattern = re.compile(re.escape(name_of(lab, "")) + rf"(?:{HUB}|\d+)")
    try:
        return sorted(name for name in os.listdir(FOLDER) if pattern.fullmatch(name))
    except FileNotFoundError:
        return []


def create(namespace):
    run("ip", "netns", "add", namespace)


def remove(namespace):
    run("ip", "netns", "delete", namespace)


def _switch(descriptor, what):
    if _libc.setns(descriptor, _CLONE_NEWNET) != 0:
        raise LabError(f"cannot enter {what}: {os.strerror(ctypes.get_errno())}")


def enter(namespace):
    """Moves this process into the namespace.

    Unlike `ip netns exec` it leaves /sys as it is: a node's program must see its control group there.
    """
    try:
        descriptor = os.open(path_of(namespace), os.O_RDONLY)
    except OSError as error:
        raise LabError(f"cannot open network namespace {namespace}: {error.strerror}") from error
    try:
        _switch(descriptor, f"network namespace {namespace}")
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def inside(namespace):
    """Within the `with`, this process and what it starts are in the namespace."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        enter(namespace)
        try:
            yield
        finally:
            _switch(home, "the former network namespace")
    finally:
        os.close(home)


def _identity(path):
    status = os.stat(path)
    return status.st_dev, status.st_ino


def processes_in(names):
    """Ids of the processes in these namespaces, wherever they were started; never this one."""
    wanted = set()
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            wanted.add(_identity(path_of(name)))
    found = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError):  # it has ended, or is a zombie
                if _identity(f"/proc/{entry}/ns/net") in wanted:
                    found.add(int(entry))
    return found


def _kill(pid, still_wanted):
    """Kills the process if it is still wanted once we hold on to it. Returns its pidfd, or None when it has gone."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    if pid in still_wanted():
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        return descriptor
    os.close(descriptor)
    return None


def kill_all(find):
    """Kills the processes of find() until there are none. A process that got the number of an ended one is spared."""
    deadline = time.monotonic() + PATIENCE
    while found := find():
        held = [descriptor for pid in sorted(found) if (descriptor := _kill(pid, find)) is not None]
        for descriptor in held:
            end = select.poll()
            end.register(descriptor, select.POLLIN)
            end.poll(max(0.0, deadline - time.monotonic()) * 1000)
            os.close(descriptor)
        if time.monotonic() > deadline:
            raise LabError(f"processes do not end: {sorted(found)}")
