# SPDX-License-Identifier: Apache-2.0
"""Trains and evaluates Omikuji in a process of its own; prints one JSON line.

omikuji_peer.py TRAIN TEST default|bonsai THREADS    (XMLC text, tf-idf weighted: Omikuji takes values as they are)
"""

import json
import resource
import sys

import omikuji


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def hyper_parameters(kind):
    parameters = omikuji.Model.default_hyper_param()
    if kind == "bonsai":  # "Bonsai-like" of Omikuji's own documentation
        parameters.cluster_balanced = False
        parameters.cluster_k = 100
        parameters.max_depth = 3
    return parameters


def main():
    train, test, kind, threads = sys.argv[1:5]
    start = cpu_seconds()
    model = omikuji.Model.train_on_data(train, hyper_parameters(kind), int(threads))
    train_cpu = cpu_seconds() - start
    hits = {1: 0.0, 3: 0.0, 5: 0.0}
    samples = 0
    start = cpu_seconds()
    with open(test, encoding="ascii") as lines:
        next(lines)
        for line in lines:
            labels, _, rest = line.rstrip("\n").partition(" ")
            if not labels:
                continue
            truth = set(map(int, labels.split(",")))
            features = [(int(i), float(v)) for i, v in (pair.split(":") for pair in rest.split())]
            ranked = [label for label, _ in model.predict(features, top_k=5, beam_size=10)]
            samples += 1
            for k in hits:
                hits[k] += sum(label in truth for label in ranked[:k]) / k
    metrics = {f"P@{k}": 100 * total / samples for k, total in hits.items()}
    print(json.dumps({"metrics": metrics, "train_cpu_s": train_cpu, "predict_cpu_s": cpu_seconds() - start}))


if __name__ == "__main__":
    main()
