# SPDX-License-Identifier: Apache-2.0
"""The tasks next-item and word2vec through the binary: import, train, evaluate, ask, and refusals."""

import os
import random
import tempfile
import unittest

import program

AISLES = [[f"{aisle}{i}" for i in range(5)] for aisle in ("tea", "tent", "paint", "owl")]


def sessions(count, seed):
    """Visits to one aisle each: an item is followed by the next of its aisle."""
    rng = random.Random(seed)
    lines = []
    for _ in range(count):
        aisle, first = rng.choice(AISLES), rng.randrange(5)
        lines.append(" ".join(aisle[(first + i) % 5] for i in range(rng.randrange(2, 5))))
    return lines


class NextItem(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = directory.name
        self.train = self.write("train.txt", sessions(300, seed=1))
        self.test = self.write("test.txt", [line.replace(" ", "\t", 1) for line in sessions(60, 2) if line.count(" ") == 1])

    def path(self, name):
        return os.path.join(self.root, name)

    def write(self, name, lines):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        return self.path(name)

    def run_training(self, data, *more):
        keys = ["model.hidden=16", "train.batch=32", "train.epochs=20", "--threads", "2"]
        return program.run("train", "next-item", f"data.train={data}", *keys, *more)

    # Imported data and the file give the same model. It learns the order of items, and predict answers with names.
    def test_import_train_eval_predict(self):
        imported = program.run("data", "import", "sessions", self.train, "--out", self.path("data"), "--json")
        self.assertEqual(imported.status, 0, imported.err)
        self.assertEqual((imported.json()["records"], imported.json()["labels"]), (300, 20))
        metrics = []
        for data, out in ((self.train, "a"), (self.path("data"), "b")):
            done = self.run_training(data, f"data.test={self.test}", "--out", self.path(out), "--json")
            self.assertEqual(done.status, 0, done.err)
            metrics.append(done.json()["metrics"])
        self.assertEqual(metrics[0], metrics[1])
        self.assertEqual(metrics[0]["P@1"], 100)
        self.assertEqual(metrics[0]["MRR@20"], 100)
        measured = program.run("eval", self.path("a"), "--data", self.test, "--threads", "2", "--json").json()
        self.assertEqual(measured["metrics"], metrics[0])
        answer = program.run("predict", self.path("a"), "tea1 tea2", "--top", "1").json()
        self.assertEqual(answer["labels"][0]["name"], "tea3")
        lines = program.run("predict", self.path("a"), stdin="unheard tent4\n").json_lines()
        self.assertEqual(lines[0]["labels"][0]["name"], "tent0")
        self.assertEqual(lines[0]["unknown_features"], 1)
        looked = program.run("data", "inspect", self.path("data"))
        self.assertIn("20", looked.out)

    # A bad line is reported with its place. Other records are refused by name, and so are sessions for other tasks.
    def test_refused(self):
        bad = self.write("bad.txt", ["a b", "a\tb c"])
        done = program.run("data", "import", "sessions", bad, "--out", self.path("data"))
        self.assertEqual(done.status, 3)
        self.assertIn(f"{bad}:2:3", done.err)
        self.assertFalse(os.path.exists(self.path("data")))
        done = program.run("data", "import", "sessions", bad, "--out", self.path("data"), "--skip-bad", "1")
        self.assertEqual(done.status, 0, done.err)
        jsonl = self.write("a.jsonl", ['{"text": "a", "labels": ["b"]}'])
        done = self.run_training(jsonl, "--out", self.path("run"))
        self.assertEqual(done.status, 3)
        self.assertIn("sessions, one a line", done.err)
        done = program.run("train", "dictionary", f"data.train={self.path('data')}", "--out", self.path("run"))
        self.assertEqual(done.status, 2)
        self.assertIn("sessions", done.err)
        lone = self.write("lone.txt", ["a", "b"])
        done = self.run_training(lone, "--out", self.path("run"))
        self.assertEqual(done.status, 3)
        self.assertIn("nothing to train on", done.err)
        self.assertIn("0 records, 2 features, 2 labels\n", done.err)
        self.assertFalse(os.path.exists(self.path("run")))
        self.assertEqual(self.run_training(self.train, "sessions.last=0", "--out", self.path("run")).status, 2)


class Word2vec(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = directory.name
        rng = random.Random(3)
        pairs = [("owl", "mice"), ("deer", "grass"), ("heron", "fish")]
        lines = [f"the {animal} likes {food} most" for animal, food in (rng.choice(pairs) for _ in range(200))]
        self.text = os.path.join(self.root, "text.txt")
        with open(self.text, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        self.out = os.path.join(self.root, "run")

    def run_training(self, data, *more):
        keys = ["model.hidden=16", "train.batch=64", "train.epochs=40", "word2vec.sample=0", "--threads", "1"]
        return program.run("train", "word2vec", f"data.train={data}", *keys, *more)

    # Text leads to answers in both modes. Imported text gives the same model.
    def test_train_eval_predict(self):
        for mode in ("cbow", "skip-gram"):
            out = self.out + mode
            done = self.run_training(self.text, f"data.test={self.text}", f"word2vec.mode={mode}", "--out", out, "--json")
            self.assertEqual(done.status, 0, done.err)
            self.assertEqual(done.json()["metrics"]["hit@10"], 100)
            self.assertAlmostEqual(done.json()["epochs"], 40, delta=1)
        answer = program.run("predict", self.out + "cbow", "the likes mice most", "--top", "1").json()
        self.assertEqual(answer["labels"][0]["name"], "owl")
        imported = program.run("data", "import", "text", self.text, "--out", os.path.join(self.root, "data"), "--json")
        self.assertEqual((imported.json()["records"], imported.json()["labels"]), (1000, 9))
        again = self.run_training(os.path.join(self.root, "data"), "--out", self.out)
        self.assertEqual(again.status, 0, again.err)
        def weights(out):
            name = os.path.join(out, "model", "model-00001-of-00001.safetensors")
            with open(name, "rb") as file:
                return file.read()
        self.assertEqual(weights(self.out), weights(self.out + "cbow"))

    # Wrong use is refused before anything is written.
    def test_refused(self):
        for keys, part in (
            (["predict.instances=true"], "predict.instances=false"),
            (["word2vec.window=0"], "1..1000"),
            (["word2vec.min_count=1000000"], "no word of the text is frequent enough"),
            (["word2vec.mode=glove"], "cbow or skip-gram"),
            (["train.input_dropout=0.5"], "train.input_dropout"),
        ):
            done = self.run_training(self.text, *keys, "--out", self.out)
            self.assertIn(done.status, (2, 3), keys)
            self.assertIn(part, done.err)
            self.assertFalse(os.path.exists(self.out))


if __name__ == "__main__":
    unittest.main()
