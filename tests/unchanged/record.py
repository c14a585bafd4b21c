#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""record.py [--write]: what must stay the same while code is moved, compared with tests/golden/unchanged/.

For a fixed seed and number of threads, with the scalar kernels, it records:
  runs.txt         of several training runs: the bytes of models and checkpoints, the lines of run.toml, the keys of
                   summary.json, metrics.jsonl and events.jsonl, and what eval and predict answer
  simulations.txt  of 20 seeds of each simulation preset: state_hash, and a hash of all messages that were sent
  messages.txt     every message and field of proto/

The C library has faster variants of exp and log for some processors, whose last bit differs; they are switched off.
--write records anew: for a change that is meant, with a line in the CHANGELOG.

$GOSSAMER and $GOSSAMER_SIMULATIONS are paths of programs (ctest sets them).
"""

import difflib
import hashlib
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RECORDS = HERE.parent / "golden" / "unchanged"
sys.path.insert(0, str(HERE.parent / "process"))
import program  # noqa: E402  (found through the line above)

THREADS = "2"
os.environ.update(GOSSAMER_ISA="scalar", GLIBC_TUNABLES="glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F")

XMC = ("model.hidden=32", "train.batch=32", "train.epochs=2", "checkpoint.every_steps=10", "checkpoint.keep=9")
# Name, preset, training data, test data, keys and flags; a query for predict.
RUNS = (
    ("plain", "xmc", "train.txt", "test.txt", XMC, "0:1 3:2 80:1"),
    ("tables", "xmc", "train.txt", "test.txt", (*XMC, "train.negatives=lsh", "train.sampled=64", "lsh.queries=8"), "6:1 7:1"),
    ("deep", "xmc", "train.txt", "test.txt", (*XMC, "model.dense=32,32", "model.activation=tanh", "optimizer.moments=block",
                                              "train.schedule=cosine", "train.negatives=uniform", "train.sampled=8"), "6:1 7:1"),
    ("without-records", "xmc", "train.txt", "test.txt", (*XMC, "predict.instances=false", "loss.logq=exact"), "9:1"),
    ("slide", "slide", "train.txt", None, ("train.steps=12",), "9:1 10:1"),
    ("names", "xmc", "examples/named-features/train.jsonl", "examples/named-features/test.jsonl", ("train.epochs=3",), '{"features": {"basil": 1, "tomato": 2}}'),
    ("definitions", "dictionary", "texts.jsonl", None, ("train.epochs=2", "train.batch=64"), "word3 word4"),
    ("sessions", "next-item", "examples/next-item/train.sessions", "examples/next-item/test.sessions", ("train.epochs=3",), None),
    ("words", "word2vec", "examples/word2vec/text.txt", "examples/word2vec/test.txt", ("train.steps=20",), None),
    ("nodes", "xmc", "train.txt", "test.txt", (*XMC, "cluster.codec=f32", "train.precision=f32", "--nodes", "2"),
     "0:1 3:2 80:1"),
)
# Several nodes train the same up to the order of sums, which their numbers decide: their bytes are not recorded.
SAME_BYTES = {"nodes": False}


def succeed(*arguments):
    done = program.run(*arguments)
    if done.status != 0:
        sys.exit(f"gossamer {' '.join(map(str, arguments))}: exit {done.status}: {done.err}")
    return done


def sha(data):
    return hashlib.sha256(data).hexdigest()[:24]


def write_texts(path):
    """Definitions of 40 words by other words, each twice."""
    with open(path, "w", encoding="utf-8") as file:
        for i in range(200):
            text = " ".join(f"word{(i * k) % 40}" for k in (1, 3, 7, 11))
            file.write(json.dumps({"text": text, "labels": [f"head{i % 40}"]}) + "\n")


def keys_of(value):
    """The keys of an object, nested ones in brackets; lists by their first element."""
    if isinstance(value, dict):
        # A machine without time for its nodes loses one of them now and then.
        return "{" + " ".join(key if key == "recoveries" else f"{key}{keys_of(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + (keys_of(value[0]) if value else "") + "]"
    return ""


def checkpoint_lines(path):
    """The footer without the run's name and its cost in seconds, and the bytes of all sections."""
    data = path.read_bytes()
    offset, length = struct.unpack("<QQ", data[-40:-24])
    footer = json.loads(data[offset:offset + length])
    footer.pop("run")
    footer["cost"] = sorted(footer.get("cost", {}))
    yield f"{path.name} {sha(json.dumps(footer).encode())} {sha(data[:offset])}"


def event_lines(path):
    shapes = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["event"] != "recovery":
            shapes.setdefault(event["event"], keys_of(event))
    return [f"events.jsonl {name} {keys}" for name, keys in sorted(shapes.items(), key=str)]


def run_lines(out, data, same_bytes):
    """Every file of a run directory, as lines that another run with the same seed gives again."""
    for line in (out / "run.toml").read_text(encoding="utf-8").splitlines():
        line = line.replace(str(data), "DATA")
        yield "run.toml " + re.sub(r'^(#.*|run_id = ".*")$', lambda found: re.sub(r"\b[0-9a-f]{10}\b", "ID", found.group(0)), line)
    yield "summary.json " + keys_of(json.loads((out / "summary.json").read_text(encoding="utf-8")))
    metrics = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    yield f"metrics.jsonl {len(metrics)} lines {keys_of(json.loads(metrics[0]))}"
    yield from event_lines(out / "events.jsonl")
    yield "files " + " ".join(sorted(path.name for path in out.iterdir()))
    if not same_bytes:
        return
    for path in sorted((out / "model").iterdir()):
        yield f"model/{path.name} {sha(path.read_bytes())}"
    for path in sorted((out / "checkpoints").iterdir()):
        yield from checkpoint_lines(path)


def answer_lines(out, test, query, same_bytes):
    if test is not None:
        measured = succeed("eval", out, "--data", test, "--threads", THREADS, "--json").json()
        yield "eval " + json.dumps(measured["metrics"] if same_bytes else sorted(measured["metrics"]))
    if query is not None:
        answer = succeed("predict", out, query, "--top", "3", "--threads", THREADS).json_lines()[0]
        yield "predict " + (json.dumps(answer) if same_bytes else keys_of(answer))


def record_runs():
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        program.write_xmlc(data / "train.txt", 300, seed=1)
        program.write_xmlc(data / "test.txt", 60, seed=2)
        write_texts(data / "texts.jsonl")
        find = lambda name: None if name is None else str((ROOT if name.startswith("examples/") else data) / name)
        for name, preset, train, test, keys, query in RUNS:
            out = data / name
            given = [f"data.train={find(train)}", *([f"data.test={find(test)}"] if test else [])]
            succeed("train", preset, *given, *keys, "--threads", THREADS, "--out", out, "--quiet")
            same = SAME_BYTES.get(name, True)
            found = [*run_lines(out, data, same), *answer_lines(out, find(test), query, same)]
            lines += [f"{name}: {line.replace(str(ROOT), 'ROOT')}" for line in found]
    return lines


def record_simulations():
    done = subprocess.run([os.environ["GOSSAMER_SIMULATIONS"]], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def record_messages():
    """The messages of proto/ as protoc understands them: comments and layout do not count."""
    lines = []
    for path in sorted((ROOT / "proto").glob("gossamer/*.proto")):
        text = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
        words = re.findall(r'"[^"]*"|[\w.]+|[^\s\w]', text)
        statements = re.split(r"(?<=[;{}]) ", " ".join(words))
        lines += [f"{path.name}: {statement}" for statement in statements if statement]
    return lines


PARTS = {"runs.txt": record_runs, "simulations.txt": record_simulations, "messages.txt": record_messages}


def main(arguments):
    changed = 0
    for name, record in PARTS.items():
        path = RECORDS / name
        lines = record()
        if "--write" in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            continue
        before = path.read_text(encoding="utf-8").splitlines()
        difference = list(difflib.unified_diff(before, lines, str(path), "this build", lineterm="", n=0))
        print("\n".join(difference[:60]))
        print(f"{name}: {len(lines)} lines, {'changed' if difference else 'as recorded'}")
        changed += bool(difference)
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
