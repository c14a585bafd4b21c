# SPDX-License-Identifier: Apache-2.0
"""Our links on slow lines: throughput, exchange, control beside bulk, on machines of tools/lab. Needs root.

links.py [--kinds throughput,exchange,control] [--rates N,...] [--rtts N,...] [--rounds N] [--write]
Every case is one lab, in which tools alternate: our links plain and with mutual TLS, and plain sockets
(links_raw_peer.py). The exchange adds gloo's all-gather where PyTorch is installed (links_gloo_peer.py). --write updates
docs/benchmarks.md.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import measure

LAB = measure.ROOT / "tools/lab/lab"
PLAIN, TLS, RAW, GLOO = "gossamer", "gossamer, mutual TLS", "plain sockets", "gloo all-gather"
LIMIT_S = 900
TRANSFERS = {100: 5, 500: 15}  # long enough for BBR's pauses, one in ten seconds, to have their share
SHORT_RUNS = 3
PORT = 7100
HEADERS = 1448 / 1514  # what Ethernet, IP and TCP with time stamps leave of a line
SEGMENT, FIRST_SEGMENTS = 1448, 10
# Goals for links: a fraction of the line, and two multiples of the one-way delay.
GOAL_SHARE, GOAL_EXCHANGE, GOAL_CONTROL = 0.90, 1.3, 2.0


def slow_start_s(size, rate_mbps, rtt_s):
    """Seconds for `size` bytes on a new connection whose window doubles each round trip, without the last way."""
    rate = rate_mbps * 1e6 / 8 * HEADERS
    window, sent, seconds = SEGMENT * FIRST_SEGMENTS, 0, 0.0
    while window < rate * rtt_s and sent + window < size:
        sent, seconds, window = sent + window, seconds + rtt_s, 2 * window
    return seconds + (size - sent) / rate


@contextlib.contextmanager
def lab(nodes, rate_mbps, rtt_ms):
    """A warm lab of its own; its addresses and a function that runs a command on node K."""
    name = f"bench-{os.getpid()}"
    words = ["up", "--name", name, "--nodes", nodes, "--rate", f"{rate_mbps}mbit", "--rtt", f"{rtt_ms}ms", "--warm", "--json"]
    plan = json.loads(lab_says(*words))
    try:
        yield name, [node["address"] for node in plan["nodes"]]
    finally:
        lab_says("down", name)


def lab_says(*words):
    done = subprocess.run([str(LAB), *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"tools/lab/lab {words[0]}: {done.stdout}{done.stderr}")
    return done.stdout


def command(tool, node, addresses, options, authority):
    """The command that one node of a tool runs."""
    if tool in (RAW, GLOO):
        peer = "links_raw_peer.py" if tool == RAW else "links_gloo_peer.py"
        return [sys.executable, "-B", str(measure.ROOT / "bench" / peer), str(node), ",".join(addresses), json.dumps(options)]
    words = [f"{key}={value}" for key, value in options.items()]
    words += [f"node={node}", "peers=" + ",".join(f"{address}:{PORT}" for address in addresses)]
    if tool == TLS:
        words.append(f"authority={authority}")
    return [measure.binary(), "bench", "links", *words, "--json", "--quiet"]


def run(tool, where, options, authority):
    """Runs a tool once on all nodes of a lab. Returns {measurement: [figures of each node that has it]}."""
    name, addresses = where
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "eth0", **measure.peer_environment(1)}
    processes = []
    for node in range(1, len(addresses) + 1):
        words = [str(LAB), "exec", "--name", name, str(node), "--", *command(tool, node, addresses, options, authority)]
        processes.append(subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment))
    measured = {}
    try:
        for node, process in enumerate(processes, 1):
            text, complaint = process.communicate(timeout=LIMIT_S)
            if process.returncode:
                raise measure.Failed(f"{tool}, node {node}: exit status {process.returncode}\n{complaint[-1000:]}")
            for one in measure.last_json(text)["nodes"][0]["measurements"]:
                measured.setdefault(one["name"], []).append(one)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return measured


def cases(arguments):
    """(kind, nodes, Mb/s, RTT in ms, options) of every case, and the tools that run it."""
    def options(measurements, rate, **more):
        return {"measure": measurements, "rate_mbps": rate, "pings": 15, "patience": 60, **more}
    for kind in arguments.kinds:
        if kind == "throughput":
            for rate in arguments.rates:
                for rtt in arguments.rtts:
                    wanted = options("message,messages", rate, transfers=TRANSFERS.get(rate, 5), bytes=64 << 20)
                    yield kind, 2, rate, rtt, wanted, (PLAIN, TLS, RAW)
        elif kind == "exchange":
            tools = (PLAIN, TLS, RAW, GLOO) if importlib.util.find_spec("torch") else (PLAIN, TLS, RAW)
            yield kind, 4, 1000, 20, options("exchange", 1000, rounds=200, exchange_bytes=65536), tools
        else:
            wanted = options("control-beside-bulk", 100, bytes=64 << 20)
            yield kind, 2, 100, 20, {**wanted, "pings": 100}, (PLAIN, TLS, RAW)


def middle(row, name, key, best=max):
    """The median over runs of a measurement's value. Of several nodes it takes the worst."""
    return measure.median([best(one[key] for one in run_[name]) for run_ in row["runs"] if name in run_])


def by_tool(results, kind):
    """[(rate, rtt, {tool: row})] of the cases of a kind."""
    found = {}
    for row in results:
        if row["kind"] == kind and row["runs"]:
            found.setdefault((row["rate_mbps"], row["rtt_ms"]), {})[row["tool"]] = row
    return [(*key, rows) for key, rows in found.items()]


def percent(share):
    return f"{100 * share:.1f}"


def per_gigabyte(row):
    return middle(row, "message", "cpu_s") / (row["options"]["transfers"] * row["options"]["bytes"]) * 1e9


def throughput_table(results):
    columns = ["Mb/s", "RTT ms", "one message, % of the line, median: plain", "mutual TLS", "plain sockets",
               "one after another: plain", "mutual TLS", "plain sockets", "plain over sockets",
               "small messages: plain", "mutual TLS", "sender's CPU, s per GB: plain, mutual TLS"]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for rate, rtt, rows in by_tool(results, "throughput"):
        size = rows[PLAIN]["options"]["bytes"]
        medians = [size * 8e-3 / middle(rows[tool], "message", "median_ms") / rate for tool in (PLAIN, TLS, RAW)]
        all_of_them = [middle(rows[tool], "message", "share_of_rate") for tool in (PLAIN, TLS, RAW)]
        small = [middle(rows[tool], "messages", "share_of_rate") for tool in (PLAIN, TLS)]
        cells = [*map(percent, [*medians, *all_of_them]), f"{all_of_them[0] / all_of_them[2]:.3f}", *map(percent, small),
                 ", ".join(f"{per_gigabyte(rows[tool]):.1f}" for tool in (PLAIN, TLS))]
        lines.append(f"| {rate} | {rtt} | {' | '.join(cells)} |")
    return lines


def cold_table(results):
    lines = ["| Mb/s | RTT ms | slow start takes, s | plain s | mutual TLS s | plain sockets s | bound over plain | "
             "bound over mutual TLS |", "|---" * 8 + "|"]
    for rate, rtt, rows in by_tool(results, "throughput"):
        bound = slow_start_s(64 << 20, rate, rtt / 1e3)
        cold = {tool: middle(rows[tool], "message", "first_ms") / 1e3 for tool in rows}
        cells = " | ".join(f"{cold[tool]:.2f}" if tool in cold else "" for tool in (PLAIN, TLS, RAW))
        ratios = " | ".join(f"{bound / cold[tool]:.2f}" if tool in cold else "" for tool in (PLAIN, TLS))
        lines.append(f"| {rate} | {rtt} | {bound:.2f} | {cells} | {ratios} |")
    return lines


def exchange_table(results):
    lines = ["| tool | median ms | p90 | most | over plain sockets | CPU ms a round, 4 nodes |", "|---" * 6 + "|"]
    for _, _, rows in by_tool(results, "exchange"):
        for tool, row in rows.items():
            median = middle(row, "exchange", "median_ms")
            cpu = middle(row, "exchange", "cpu_s", sum) / row["options"]["rounds"] * 1e3
            over = median / middle(rows[RAW], "exchange", "median_ms") if RAW in rows else float("nan")
            lines.append(f"| {tool} | {median:.1f} | {middle(row, 'exchange', 'p90_ms'):.1f} | "
                         f"{middle(row, 'exchange', 'most_ms'):.1f} | {over:.2f} | {cpu:.1f} |")
    return lines


def control_table(results):
    lines = ["| tool | idle round trip ms | control beside bulk, one way: median ms | p90 | most | bulk meanwhile Mb/s |",
             "|---" * 6 + "|"]
    name = "control-beside-bulk"
    for _, _, rows in by_tool(results, "control"):
        for tool, row in rows.items():
            cells = " | ".join(f"{middle(row, name, key):.1f}" for key in ("median_ms", "p90_ms", "most_ms", "mbps"))
            lines.append(f"| {tool} | {middle(row, 'round-trip', 'median_ms'):.1f} | {cells} |")
    return lines


TABLES = {"links-throughput": ("throughput", throughput_table), "links-cold": ("throughput", cold_table),
          "links-exchange": ("exchange", exchange_table), "links-control": ("control", control_table)}


def bounds():
    """Prints the bounds that no program can pass, for readers of the output."""
    return [f"headers leave {100 * HEADERS:.1f} % of a line; asked are {100 * GOAL_SHARE:.0f} %, warm, and that much of the "
            "slow-start bound, cold",
            f"exchange: a one-way delay and the bytes are {10 + 3 * 65536 * 8 / 1e6:.1f} ms; asked are "
            f"{10 * GOAL_EXCHANGE + 3 * 65536 * 8 / 1e6:.1f}",
            f"control beside bulk: a one-way delay is 10 ms; asked are {10 * GOAL_CONTROL:.0f}"]


def parse():
    def numbers(text):
        return [int(word) for word in text.split(",")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default="throughput,exchange,control", type=lambda text: text.split(","))
    parser.add_argument("--rates", default="100,500", type=numbers, help="Mb/s of the throughput")
    parser.add_argument("--rtts", default="0,20,50,100,200", type=numbers, help="round-trip times of the throughput, ms")
    parser.add_argument("--rounds", default=1, type=int, help="runs of each tool, alternating; three times as many of the "
                        "short ones")
    parser.add_argument("--write", action="store_true")
    return parser.parse_args()


def main():
    arguments = parse()
    os.environ.setdefault("GOSSAMER_DELAY_QUEUE", str(measure.ROOT / "build/release/tools/lab/delay_queue"))
    checked = subprocess.run([str(LAB), "check"], capture_output=True, text=True, check=False)
    if checked.returncode:
        sys.exit(f"the lab cannot work here (bench/links.py needs root):\n{checked.stdout}{checked.stderr}")
    print("\n".join(bounds()), flush=True)
    result = {"machine": measure.machine(), "commit": measure.commit(), "results": []}
    with tempfile.TemporaryDirectory() as folder:
        authority = pathlib.Path(folder) / "authority"
        subprocess.run([measure.binary(), "bench", "links", f"authority={authority}", "bytes=1", "rounds=1", "pings=1",
                        "transfers=1", "measure=message", "--quiet"], stdout=subprocess.DEVNULL, check=True)
        for kind, nodes, rate, rtt, options, tools in cases(arguments):
            rows = [{"kind": kind, "rate_mbps": rate, "rtt_ms": rtt, "tool": tool, "options": options, "runs": []}
                    for tool in tools]
            result["results"] += rows
            with lab(nodes, rate, rtt) as where:
                for _ in range(arguments.rounds * (1 if kind == "throughput" else SHORT_RUNS)):
                    for row in rows:
                        try:
                            measured = run(row["tool"], where, options, authority)
                        except measure.Failed as failure:
                            if row["tool"] in (PLAIN, TLS):
                                raise
                            print(f"left out: {failure}", file=sys.stderr, flush=True)  # gloo aborts now and then as it ends
                            continue
                        row["runs"].append({**measured, "load": os.getloadavg()[0]})
                        say(row)
                        measure.save("links", result)
    for name, (kind, table) in TABLES.items():
        if kind in arguments.kinds:
            lines = table(result["results"])
            print("\n".join(["", *lines]), flush=True)
            if arguments.write:
                measure.write_table(name, lines)


def say(row):
    last = row["runs"][-1]
    cells = [f"{name} {max(one['median_ms'] for one in nodes):.1f} ms"
             + (f" (cold {nodes[0]['first_ms']:.0f})" if nodes[0]["first_ms"] else "")
             + (f" {100 * nodes[0]['share_of_rate']:.1f} %" if nodes[0]["share_of_rate"] else "")
             for name, nodes in last.items() if isinstance(nodes, list)]
    print(row["kind"], f"{row['rate_mbps']} Mb/s", f"{row['rtt_ms']} ms", f"{row['tool']}:", ", ".join(cells),
          f"[load {last['load']:.1f}]", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
