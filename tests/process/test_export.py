# SPDX-License-Identifier: Apache-2.0
"""Exported weights as a Python user loads them: they are the weights that predict uses.

PyTorch itself reads the torch file if $GOSSAMER_TORCH_PYTHON has it (build/bench-venv). Everywhere Python's own zipfile
and pickle read it, with the names of torch stood in for. $GOSSAMER_TEST_PYTHON has numpy and safetensors.
"""

import array
import collections
import json
import os
import pickle
import signal
import subprocess
import unittest
import zipfile

import program
import test_training

TEXTS = [("it purrs and hunts mice", "house cat"), ("it barks and fetches sticks", "dog"),
         ("small, purrs, chases mice at night", "house cat"), ("it barks at the postman", "dog")]  # fmt: skip
ITEM_TYPES = {"FloatStorage": "f", "LongStorage": "q"}


def python_with(variable, module):
    """The Python that $VARIABLE names if it has `module`, else None."""
    python = os.environ.get(variable, "")
    if not python or not os.path.exists(python):
        return None
    found = subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False)
    return python if found.returncode == 0 else None


def load_with(python, code, path):
    """Runs `code` on a file at `path`, and returns its standard output, a JSON object."""
    done = subprocess.run([python, "-c", code, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Unpickler(pickle.Unpickler):
    """Reads files of torch.save. Tensors become (values, shape)."""

    def __init__(self, archive, folder):
        super().__init__(archive.open(f"{folder}/data.pkl"))
        self.archive = archive
        self.folder = folder

    def find_class(self, module, name):
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, size, stride, grad, hooks: (storage, size, (offset, stride, grad, hooks))
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        assert module == "torch" and name in ITEM_TYPES, (module, name)
        return ITEM_TYPES[name]

    def persistent_load(self, pid):
        kind, item, key, place, count = pid
        assert (kind, place) == ("storage", "cpu")
        values = array.array(item, self.archive.read(f"{self.folder}/data/{key}"))
        assert len(values) == count
        return values


class Export(test_training.WithData):
    def export(self, *more):
        return program.run("export", self.out, *more)

    def train_text(self):
        records = self.path("texts.jsonl")
        with open(records, "w", encoding="utf-8") as file:
            for text, label in TEXTS:
                file.write(json.dumps({"text": text, "labels": [label]}) + "\n")
        done = program.run("train", "dictionary", f"data.train={records}", "train.steps=5", "--out", self.out)
        self.assertEqual(done.status, 0, done.err)

    # The torch file is a sound zip whose pickle names only what torch needs. Scores computed from it are those of
    # predict.
    def test_torch_weights_give_the_scores(self):
        done = program.run(*self.arguments("data.weighting=none", "model.dense=16"))
        self.assertEqual(done.status, 0, done.err)
        path = self.path("weights.pt")
        done = self.export("--format", "torch", "--out", path, "--json")
        self.assertEqual(done.status, 0, done.err)
        report = done.json()
        self.assertEqual((report["path"], report["bytes"]), (path, os.path.getsize(path)))
        with zipfile.ZipFile(path) as archive:
            self.assertIsNone(archive.testzip())
            self.assertEqual(archive.read("weights/byteorder"), b"little")
            weights = Unpickler(archive, "weights").load()
        hidden, last = 32, 16
        embedding, shape, rest = weights["embedding.weight"]
        self.assertEqual((shape, rest), ((200, hidden), (0, (hidden, 1), False, {})))
        output, shape, _ = weights["output.weight"]
        self.assertEqual(shape, (25, last))
        dense, shape, _ = weights["dense.1.weight"]
        self.assertEqual(shape, (last, hidden))
        dense_bias = weights["dense.1.bias"][0]
        bias = weights["output.bias"][0]
        with open(self.train_path, encoding="utf-8") as file:
            labels = [line.split(" ")[0] for line in file if ":" in line]
        self.assertEqual(sum(weights["label_count"][0]), ",".join(labels).count(",") + 1)
        self.assertEqual(weights["activation"], "relu")
        answer = program.run("predict", self.out, "0:1 1:2 2:1", "--net-alone", "--top", "25").json()
        query = {0: 1, 1: 2, 2: 1}
        summed = [sum(x * embedding[f * hidden + h] for f, x in query.items()) for h in range(hidden)]
        active = [max(value, 0) for value in summed]
        active = [max(dense_bias[k] + sum(dense[k * hidden + h] * active[h] for h in range(hidden)), 0) for k in range(last)]
        scores = {label: bias[label] + sum(output[label * last + k] * active[k] for k in range(last)) for label in range(25)}
        # predict prints the logarithm of the softmax: the same but for a constant and the net's weight.
        ranked = [(each["label"], each["score"]) for each in answer["labels"]]
        self.assertEqual([label for label, _ in ranked], sorted(scores, key=scores.get, reverse=True))
        (best, most), (worst, least) = ranked[0], ranked[-1]
        for label, score in ranked:
            self.assertAlmostEqual((score - least) / (most - least),
                                   (scores[label] - scores[worst]) / (scores[best] - scores[worst]), places=3)  # fmt: skip

    # PyTorch reads the same values, with and without memory mapping, and with weights_only.
    def test_torch_reads_it(self):
        python = python_with("GOSSAMER_TORCH_PYTHON", "torch")
        if python is None:
            self.skipTest("no PyTorch in $GOSSAMER_TORCH_PYTHON (make bench installs one in build/bench-venv)")
        self.train_text()
        self.assertEqual(self.export("--format", "torch").status, 0)
        path = os.path.join(self.out, "weights.pt")
        with zipfile.ZipFile(path) as archive:
            expected = Unpickler(archive, "weights").load()
        code = """
import json, sys, torch
out = []
for mmap in (False, True):
    weights = torch.load(sys.argv[1], weights_only=True, mmap=mmap)
    out.append({key: [value.flatten().tolist(), list(value.shape), str(value.dtype)] if torch.is_tensor(value) else value
                for key, value in weights.items()})
print(json.dumps(out))
"""
        plain, mapped = load_with(python, code, path)
        self.assertEqual(plain, mapped)
        self.assertEqual(sorted(plain), sorted(expected))
        self.assertEqual(plain["label_names"], ["house cat", "dog"])
        for key, value in expected.items():
            if isinstance(value, tuple):
                dtype = {"f": "torch.float32", "q": "torch.int64"}[value[0].typecode]
                self.assertEqual(plain[key], [value[0].tolist(), list(value[1]), dtype], key)
            else:
                self.assertEqual(plain[key], value, key)

    # The two lines of the help load the safetensors file.
    def test_safetensors(self):
        python = python_with("GOSSAMER_TEST_PYTHON", "safetensors.numpy")
        if python is None:
            self.skipTest("no numpy and safetensors in $GOSSAMER_TEST_PYTHON (make test installs them in build/venv)")
        self.train_text()
        done = self.export("--format", "safetensors")
        self.assertEqual(done.status, 0, done.err)
        path = os.path.join(self.out, "weights.safetensors")
        lines = done.out.splitlines()[1:]
        self.assertEqual(len(lines), 2)
        code = "\n".join(lines) + """
import json, sys
names = [bytes(weights["label_names.bytes"][a:b]).decode() for a, b in
         zip(weights["label_names.begin"], weights["label_names.begin"][1:])]
print(json.dumps({"names": names, "shapes": {key: value.shape for key, value in weights.items()}}))
"""
        loaded = load_with(python, code, path)
        self.assertEqual(loaded["names"], ["house cat", "dog"])
        self.assertEqual(loaded["shapes"]["output.weight"][0], 2)
        self.assertEqual(loaded["shapes"]["embedding.weight"][1], loaded["shapes"]["output.weight"][1])

    # word2vec text has words by default, and labels with --labels. Blanks are '_', as gensim's reader wants it.
    def test_word2vec(self):
        self.train_text()
        done = self.export("--format", "word2vec")
        self.assertEqual(done.status, 0, done.err)
        labels = self.path("labels.txt")
        done = self.export("--format", "word2vec", "--labels", "--out", labels, "--json")
        self.assertEqual(done.json()["vectors"], 2, done.err)
        found = {}
        for path in (os.path.join(self.out, "vectors.txt"), labels):
            with open(path, encoding="utf-8") as file:
                count, width = map(int, file.readline().split())
                vectors = {parts[0]: list(map(float, parts[1:])) for parts in (line.rstrip().split(" ") for line in file)}
            self.assertEqual(len(vectors), count)
            self.assertEqual({len(vector) for vector in vectors.values()}, {width})
            found[path] = vectors
        self.assertEqual(list(found[labels]), ["house_cat", "dog"])
        self.assertIn("mice", found[os.path.join(self.out, "vectors.txt")])

    # Impossible wishes are refused in time: a wrong format, a model without names, an existing file, a missing
    # directory.
    def test_refusals(self):
        self.assertEqual(program.run(*self.arguments()).status, 0)
        taken = self.path("taken")
        with open(taken, "w", encoding="utf-8") as file:
            file.write("mine")
        before = sorted(os.listdir(self.out))
        for words, status, part in (
            (("--format", "tensors"), 2, "safetensors"),
            (("--format", "word2vec"), 2, "no names"),
            (("--format", "torch", "--labels"), 2, "--labels"),
            (("--format", "torch", "--out", taken), 2, "already"),
            (("--format", "torch", "--out", self.path("none/weights.pt")), 1, "cannot open"),
            ((), 2, "--format"),
        ):
            with self.subTest(words=words):
                done = self.export(*words)
                self.assertEqual((done.status, done.out), (status, ""), done.err)
                self.assertIn(part, done.err)
        self.assertEqual(sorted(os.listdir(self.out)), before)
        with open(taken, encoding="utf-8") as file:
            self.assertEqual(file.read(), "mine")

    # A file system that is full is named, and the half-written file is gone.
    def test_full_disk(self):
        self.assertEqual(program.run(*self.arguments()).status, 0)
        mount = self.path("disk")
        os.mkdir(mount)
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "gossamer-test", mount], capture_output=True,
                              text=True, check=False)  # fmt: skip
        if made.returncode != 0:
            self.skipTest(f"cannot mount a small disk here (needs root): {made.stderr.strip()}")
        try:
            done = self.export("--format", "safetensors", "--out", os.path.join(mount, "weights"))
            self.assertEqual(done.status, 1, done.err)
            self.assertIn("No space left", done.err)
            self.assertEqual(os.listdir(mount), [])
        finally:
            subprocess.run(["umount", mount], check=True)

    # Files beside the output are left alone, also under the name that editors give to theirs.
    def test_neighbours_stay(self):
        self.assertEqual(program.run(*self.arguments()).status, 0)
        path = self.path("weights")
        with open(path + ".tmp", "w", encoding="utf-8") as file:
            file.write("mine")
        done = self.export("--format", "safetensors", "--out", path)
        self.assertEqual(done.status, 0, done.err)
        with open(path + ".tmp", encoding="utf-8") as file:
            self.assertEqual(file.read(), "mine")

    # Ctrl-C while the disk is slow gives status 130 and leaves no temporary file. The "disk" is a pipe that is full
    # when the signal is sent, and three more writes are to come.
    def test_interrupt(self):
        done = program.run(*self.arguments("model.hidden=4096", "train.steps=2"))
        self.assertEqual(done.status, 0, done.err)
        path = self.path("weights")
        os.mkfifo(path + ".gossamer-export")
        running = program.Running("export", self.out, "--format", "safetensors", "--out", path)
        with open(path + ".gossamer-export", "rb") as pipe:
            self.assertTrue(pipe.read(1))
            running.signal(signal.SIGINT)
            while pipe.read(1 << 16):
                pass
        done = running.finish()
        self.assertEqual((done.status, done.out), (130, ""), done.err)
        self.assertFalse(os.path.exists(path) or os.path.exists(path + ".gossamer-export"))


if __name__ == "__main__":
    unittest.main()
