#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The model directory is as a Python user expects. The `safetensors` package reads every tensor that model.json lists
with the type, shape and values of tests/golden/model_tensors.txt.

usage: test_model_file.py WRITE_MODEL_PROGRAM GOLDEN_TEXT
Exit status 77: skipped, because numpy or safetensors is not installed.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
    import safetensors
except ImportError as error:
    print(f"SKIPPED: {error}; install numpy and safetensors into the Python that GOSSAMER_TEST_PYTHON names")
    sys.exit(77)

NUMBERS = {"F32": numpy.float32, "U64": numpy.uint64, "U32": numpy.uint32, "U8": numpy.uint8}


def read_golden(path):
    """name -> (dtype, shape, values as written)"""
    tensors = {}
    for line in pathlib.Path(path).read_text().splitlines():
        name, dtype, shape, *values = line.split()
        tensors[name] = (dtype, [int(n) for n in shape.split(",")], values)
    return tensors


def raw_tensors(path):
    """Reads the file by hand, for bf16, which numpy does not know: name -> (dtype, shape, bytes)."""
    return {name: (t["dtype"], t["shape"], bytes(t["data"])) for name, t in
            safetensors.deserialize(path.read_bytes())}


def values_of(dtype, data):
    if dtype == "BF16":
        return (numpy.frombuffer(data, "<u2").astype(numpy.uint32) << 16).view(numpy.float32)
    return numpy.frombuffer(data, NUMBERS[dtype])


def check_numpy_loader(shard, golden):
    """Runs the two lines of the user's guide, for tensors that numpy can hold."""
    from safetensors.numpy import load_file
    names = list(raw_tensors(shard))
    if any(golden[name][0] == "BF16" for name in names):
        return
    loaded = load_file(shard)
    for name in names:
        dtype, shape, values = golden[name]
        assert loaded[name].dtype == NUMBERS[dtype], name
        assert loaded[name].shape == tuple(shape), name
        assert loaded[name].ravel().tolist() == [NUMBERS[dtype](v) for v in values], name


def check(directory, golden):
    header = json.loads((directory / "model.json").read_text())
    assert header["format"] == 2 and header["hidden"] == 16, header
    assert sorted(header["weight_map"]) == sorted(golden), header["weight_map"]
    assert len(header["shards"]) > 1, "the test wants several shards"
    found = {}
    total = 0
    for shard in header["shards"]:
        path = directory / shard["file"]
        assert path.stat().st_size == shard["bytes"], shard
        check_numpy_loader(path, golden)
        for name, (dtype, shape, data) in raw_tensors(path).items():
            assert header["weight_map"][name] == shard["file"], name
            found[name] = (dtype, shape, values_of(dtype, data))
            total += len(data)
    assert header["metadata"]["total_size"] == total
    for name, (dtype, shape, values) in golden.items():
        assert found[name][:2] == (dtype, shape), (name, found[name][:2], dtype, shape)
        expected = [float(v) for v in values]
        assert found[name][2].astype(float).tolist() == expected, name
    print(f"{len(golden)} tensors in {len(header['shards'])} shards agree")


def main():
    program, golden = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        model = pathlib.Path(directory) / "model"
        subprocess.run([program, str(model)], check=True)
        check(model, read_golden(golden))


if __name__ == "__main__":
    main()
