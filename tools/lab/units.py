# SPDX-License-Identifier: Apache-2.0
"""The values of `lab up`: a number with a unit for all nodes, or K=VALUE for node K alone.

The last word on a node counts: ["20ms", "3=200ms"] gives node 3 an RTT of 200 ms and 20 ms to all others.
"""

import re

_RATES = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_TIMES = {"us": 1, "ms": 10**3, "s": 10**6}
_SLOWEST, _FASTEST = 10**4, 10**11
_LONGEST = 60 * 10**6


def _quantity(text, units):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([a-z]+)", text)
    if not match or match.group(2) not in units:
        return None
    return round(float(match.group(1)) * units[match.group(2)])


def parse_rate(text):
    """'100mbit' -> bits per second, 10 kbit/s to 100 Gbit/s."""
    rate = _quantity(text, _RATES)
    if rate is None or not _SLOWEST <= rate <= _FASTEST:
        raise ValueError(
            f"'{text}' is no rate; expected a number with bit, kbit, mbit or gbit, 10kbit to 100gbit"
        )
    return rate


def parse_rtt(text):
    """'20ms' -> microseconds, 0 to one minute."""
    rtt = 0 if text == "0" else _quantity(text, _TIMES)
    if rtt is None or rtt > _LONGEST:
        raise ValueError(f"'{text}' is no round-trip time; expected a number with us, ms or s, 0ms to 60s")
    return rtt


def parse_cpu(text):
    """'0.5' -> cores, 0.01 to 1024."""
    try:
        cores = float(text)
    except ValueError:
        cores = 0.0
    if not 0.01 <= cores <= 1024:
        raise ValueError(f"'{text}' is no number of cores; expected 0.01 to 1024")
    return cores


def per_node(words, nodes, parse, default):
    """One value for each of nodes 1..nodes, from words VALUE and K=VALUE; ValueError says what is wrong."""
    values = [default] * nodes
    for word in words:
        node, equals, text = word.rpartition("=")
        if not equals:
            values = [parse(text)] * nodes
        elif node.isascii() and node.isdigit() and 1 <= int(node) <= nodes:
            values[int(node) - 1] = parse(text)
        else:
            raise ValueError(f"'{word}': there is no node '{node}'; expected 1 to {nodes}")
    return values
