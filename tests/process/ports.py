# SPDX-License-Identifier: Apache-2.0
"""Ports for processes that are told their port before they listen on it."""

import contextlib
import random
import socket


def free_ports(count):
    """So many ports in a row that are free now.

    They lie outside the range that the system gives to connections: a port of that range is soon taken by other tests.
    """
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        lowest, highest = map(int, file.read().split())
    below, above = range(1024, lowest - count + 1), range(highest + 1, 65536 - count + 1)
    firsts = max(below, above, key=len)
    while True:
        first = random.choice(firsts)
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for port in range(first, first + count):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
            return list(range(first, first + count))


def address_of_its_own():
    """HOST:PORT for a process that listens there, ends, and listens there again."""
    (port,) = free_ports(1)
    return f"127.0.0.1:{port}"
