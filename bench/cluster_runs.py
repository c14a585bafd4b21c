# SPDX-License-Identifier: Apache-2.0
"""The tools that train on the nodes of a lab for cluster.py: data in both forms, and how each tool is started."""

import dataclasses
import json
import os
import pathlib
import shutil
import sys

import cluster_lab
import measure
import numpy
import records
import sparse_scale

PORT = 7070
START_S = 120
MANY_STEPS = 1_000_000
OURS = "gossamer"
DENSE, DENSE_BF16 = "DDP dense f32", "DDP dense bf16"
SPARSE = "sampled softmax, sparse all-gather"
DSLIDE = "gossamer, exchange=dslide"
FLEETS = {OURS: {}, DSLIDE: {"cluster.exchange": "dslide"}}  # our own program, and the keys that it gets
PEERS = {DENSE: "f32", DENSE_BF16: "bf16", SPARSE: "sparse"}
RATE, FEW_STEPS, RATE_OF_FEW = 5e-3, 700, 1e-2  # of the peers, as torch_classifier_peer.py has found
# What `make demo` trains, in size; its records here are made up.
DEMO = {"features": 159_709, "outputs": 223_969, "own": 16, "noise": 16, "labels": 1, "zipf": 0.6}
MADE_UP = {"amazon": sparse_scale.AMAZON, "demo": DEMO}


@dataclasses.dataclass
class Data:
    """Records in three forms: XMLC text, as our program keeps them, and as the peers read them."""

    train: pathlib.Path
    test: pathlib.Path | None
    imported: pathlib.Path
    arrays: pathlib.Path
    test_arrays: pathlib.Path | None
    shape: dict


def made_up(name, count, folder):
    """`count` records of that shape."""
    folder.mkdir()
    train = folder / "train.txt"
    sparse_scale.write_records(train, MADE_UP[name], count, 1)
    return prepared(train, None, train, None, folder)


def acl_authors(folder):
    """The real set; None where it does not exist."""
    source = pathlib.Path(os.environ.get("GOSSAMER_DATA", measure.ROOT / "../shared/data")) / "acl-authors"
    if not source.exists():
        return None
    folder.mkdir()
    train, test = (records.unpack(source / f"{name}.txt.zst", folder / f"{name}.txt") for name in ("train", "test"))
    return prepared(train, test, *records.weighted(train, test, folder), folder)


def prepared(train, test, weighted, weighted_test, folder):
    imported = folder / "imported"
    measure.run([measure.binary(), "data", "import", "xmc", train, "--out", imported, "--quiet"])
    source = records.read(weighted)
    counts = numpy.diff(source.begin)
    norms = numpy.sqrt(numpy.add.reduceat(source.value**2, source.begin[:-1]))
    source.value /= numpy.repeat(norms, counts)
    save_arrays(source, folder / "arrays")
    if weighted_test:
        save_arrays(records.read(weighted_test), folder / "test-arrays")
    shape = {"records": len(source), "features": source.features, "labels": source.labels,
             "nnz": float(counts.mean()), "labels_per_row": len(source.label) / len(source)}
    return Data(train, test, imported, folder / "arrays", folder / "test-arrays" if test else None, shape)


def save_arrays(source, folder):
    """Writes arrays for cluster_torch_peer.py, which several processes read quickly."""
    folder.mkdir()
    numpy.save(folder / "shape.npy", [source.features, source.labels])
    for name in ("begin", "index", "value", "label_begin", "label"):
        numpy.save(folder / f"{name}.npy", getattr(source, name))


@dataclasses.dataclass
class Fleet:
    """The members of a running training, their steps, and the directory of a run of our program."""

    members: list
    steps: cluster_lab.Steps
    folder: pathlib.Path


def start(tool, here, data, settings, count, folder):
    """Starts `count` nodes of the lab, which train with the tool. Our program has a coordinator on one node more."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if tool in FLEETS:
        return start_gossamer(here, data, {**settings, **FLEETS[tool]}, count, folder)
    return start_peers(PEERS[tool], here, data, settings, count, folder)


def toml(settings):
    """Keys as SECTION.KEY -> value, in the words of a configuration file."""
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())


def start_gossamer(here, data, settings, count, folder):
    """Starts a coordinator, on the lab's last node, and members, as users start them on machines of their own.

    All of them find the data in place here.
    """
    config = {"data.train": str(data.imported), "train.steps": MANY_STEPS, **settings}
    (folder / "config.toml").write_text(toml(config))
    lead = len(here.plan["nodes"])
    at = f"{here.address(lead)}:{PORT}"
    environment = {"XDG_STATE_HOME": str(folder / "state")}
    log = folder / "coordinator.log"
    words = [measure.binary(), "coordinator", folder / "config.toml", "--listen", at, "--first", count, "--out", folder / "run"]
    token = join_token(cluster_lab.Member(lead, here.start(lead, words, log, environment), False, log))
    members = []
    for node in range(1, count + 1):
        log = folder / f"{node}.log"
        words = [measure.binary(), "join", at, "--token", token, "--dir", folder / f"{node}", "--name", f"node-{node}",
                 "--in-place", "--cores", 1, "--metrics", f"{here.address(node)}:{cluster_lab.METRICS_PORT}"]
        members.append(cluster_lab.Member(node, here.start(node, words, log, environment), False, log))
    return Fleet(members, cluster_lab.Steps(folder / "run/nodes/parts"), folder)


def start_alone(here, data, settings, node, folder):
    """Starts one process on a node of the lab. It trains for itself, as long as the lab lasts."""
    log = folder.parent / f"{folder.name}.log"
    shutil.rmtree(folder, ignore_errors=True)
    keys = [f"{key}={value}" for key, value in settings.items()]
    words = [measure.binary(), "train", "xmc", f"data.train={data.imported}", f"train.steps={MANY_STEPS}", "predict.instances=false", "predict.held_out=0", *keys,
             "--threads", 1, "--out", folder, "--quiet"]
    return cluster_lab.Member(node, here.start(node, words, log, {"XDG_STATE_HOME": str(folder.parent / "state")}), False, log)


def join_token(coordinator):
    """The token in the line that the coordinator prints when it can be joined."""
    found = []

    def look():
        found[:] = [words[4] for words in (line.split() for line in coordinator.log.read_text().splitlines())
                    if words[:2] == ["gossamer", "join"] and len(words) == 5]
        return bool(found)
    cluster_lab.await_true(look, START_S, [coordinator])
    return found[0]


def start_peers(kind, here, data, settings, count, folder):
    """Starts torch.distributed, with one thread a node."""
    members = []
    for node in range(1, count + 1):
        options = {"data": str(data.arrays), "out": str(folder), "kind": kind, "hidden": settings["model.hidden"],
                   "batch": settings["train.batch"], "steps": MANY_STEPS, "rate": RATE, "world": count, "rank": node - 1,
                   "shares": count, "address": here.address(1), "test": None}
        log = folder / f"{node}.log"
        process = here.start(node, [sys.executable, "-B", measure.ROOT / "bench/cluster_torch_peer.py", json.dumps(options)],
                             log, {**measure.torch_environment(1), "GLOO_SOCKET_IFNAME": "eth0"})
        members.append(cluster_lab.Member(node, process, True, log))
    return Fleet(members, cluster_lab.Steps(folder), folder)


def precision_of_ours(data, hidden, batch, steps):
    """P@1 of our network alone after so many steps, trained by one process. Several give the same but for rounding."""
    folder = data.imported.parent / "quality"
    shutil.rmtree(folder, ignore_errors=True)
    text, _ = measure.run([measure.binary(), "train", "xmc", f"data.train={data.imported}", f"data.test={data.test}",
                           f"model.hidden={hidden}", f"train.batch={batch}", f"train.steps={steps}", "predict.instances=false", "predict.held_out=0",
                           "--out", folder, "--json", "--quiet"])
    return measure.last_json(text)["metrics"]["P@1"]


def precision_of_peer(tool, data, hidden, batch, steps, shares):
    """The same of a peer, by one process that does what `shares` nodes would."""
    folder = data.imported.parent / "quality"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    sparse = tool == SPARSE
    options = {"data": str(data.arrays), "out": str(folder), "kind": PEERS[tool], "hidden": hidden, "batch": batch,
               "steps": steps, "rate": RATE_OF_FEW if steps < FEW_STEPS else RATE, "world": 1, "rank": 0, "shares": shares if sparse else 1, "address": "",
               "test": str(data.test_arrays)}
    text, _ = measure.run([sys.executable, "-B", measure.ROOT / "bench/cluster_torch_peer.py", json.dumps(options)],
                          env=measure.torch_environment(1))
    return measure.last_json(text)["P@1"]


def coordinator_events(fleet):
    """The events that the coordinator of a run of our program has noted, in order."""
    path = fleet.folder / "run/nodes/coordinator/events.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def told_recovery(fleet, step):
    """The first recovery that ended with this step or later, as the lead has noted it; empty when it has not.

    The run is one of our program.
    """
    path = fleet.folder / "run/events.jsonl"
    events = [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")] if path.exists() else []
    told = [event for event in events if event["event"] == "recovery" and event["step"] >= step]
    if not told:
        return {}
    return {name.removesuffix("_seconds"): value for name, value in told[0].items()}
