# SPDX-License-Identifier: Apache-2.0
"""Runs one command as a whole process and says what it cost; keeps results as JSON and Markdown."""

import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def binary():
    """The release build of gossamer, or a clear message."""
    path = pathlib.Path(os.environ.get("GOSSAMER", ROOT / "build/release/gossamer"))
    if not path.exists():
        sys.exit(f"{path}: no such program; run `make build` first")
    return str(path)


class Failed(SystemExit):
    """A command that did not succeed; ends the program with the message unless the caller goes on without it."""


def run(command, env=None, limit_s=None):
    """Runs `command`; returns its standard output and {"wall_s", "cpu_s", "peak_rss_bytes"} of its process tree.

    Raises Failed when it ends with a status that is not 0, or takes more than `limit_s` seconds.
    """
    start = time.monotonic()
    late = threading.Event()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile(mode="w+") as out, \
            tempfile.TemporaryFile(mode="w+") as errors:
        ledger = pathlib.Path(folder) / "cost.json"
        process = subprocess.Popen([sys.executable, "-I", str(ROOT / "bench/launch.py"), str(ledger), *map(str, command)],
                                   stdout=out, stderr=errors, env={**os.environ, **(env or {})})
        timer = threading.Timer(limit_s or threading.TIMEOUT_MAX, lambda: (late.set(), process.terminate()))
        timer.daemon = True
        timer.start()
        process.wait()
        timer.cancel()
        cost = json.loads(ledger.read_text(encoding="ascii"))
        out.seek(0)
        errors.seek(0)
        text, complaint = out.read(), errors.read()
    if late.is_set():
        raise Failed(f"{' '.join(map(str, command))}:\nnot done after {limit_s:.0f} s")
    if status := cost.pop("status"):
        raise Failed(f"{' '.join(map(str, command))}: exit status {status}\n{text[-2000:]}{complaint[-2000:]}")
    return text, {"wall_s": time.monotonic() - start, **cost}


def cell(failure):
    """The part of a failure's message that fits into a table: the end of its last line."""
    return failure.strip().splitlines()[-1][-100:].replace("|", "/")


def times(ratio):
    """A ratio with two digits that count, or whole."""
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}"


def peer_environment(threads):
    """Sets how many threads Python's numeric libraries start. Waiting threads burn no CPU, because CPU is measured."""
    return {**{name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")},
            "OMP_WAIT_POLICY": "PASSIVE"}


def torch_environment(threads):
    """The same for PyTorch, with large blocks kept in the process.

    Else glibc gives gigabytes back and takes them anew each step.
    """
    return {**peer_environment(threads), "MALLOC_TOP_PAD_": "8000000000", "MALLOC_TRIM_THRESHOLD_": "8000000000",
            "MALLOC_MMAP_THRESHOLD_": "16000000000"}


def last_json(text):
    """The last line of `text` that is a JSON object."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    raise ValueError("no JSON line in the output")


def machine():
    """The machine on which a figure was measured."""
    model = "unknown"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    text, _ = run([binary(), "version", "--json"])
    return {"cpu": model, "cores": os.cpu_count(), "kernel": platform.release(), "gossamer": last_json(text)}


def commit():
    """The commit that was measured, with a mark when the tree had changes."""
    def git(*words):
        return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False).stdout.strip()
    return git("rev-parse", "--short", "HEAD") + ("+changes" if git("status", "--porcelain", "-uno") else "")


def median(values):
    return statistics.median(values)


def save(name, result):
    """Writes build/bench/NAME.json and returns its path."""
    directory = ROOT / "build/bench"
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    return path


def write_table(name, lines):
    """Replaces the block between `<!-- NAME -->` and `<!-- /NAME -->` in docs/benchmarks.md."""
    page = ROOT / "docs/benchmarks.md"
    text = page.read_text()
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    if begin not in text or end not in text:
        sys.exit(f"{page}: no place for the table {name}")
    head, rest = text.split(begin, 1)
    _, tail = rest.split(end, 1)
    page.write_text(head + begin + "\n" + "\n".join(lines) + "\n" + end + tail)
