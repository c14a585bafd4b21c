# SPDX-License-Identifier: Apache-2.0
"""A whole life of a model: train, evaluate, predict, stop, resume, move, delete what is not the model."""

import collections
import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

import program

FIELDS = """engine run_id nodes parameters steps samples epochs train_seconds load_seconds eval_seconds cpu_seconds
eval_cpu_seconds samples_per_second peak_rss_bytes bytes_sent_per_node_per_step background_bytes_per_node_per_step
final_loss metrics recoveries model_dir since_resume""".split()


class WithData(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = directory.name
        self.train_path = self.path("train.txt")
        self.test_path = self.path("test.txt")
        program.write_xmlc(self.train_path, 600, seed=1)
        self.test_lines = program.write_xmlc(self.test_path, 100, seed=2)
        self.out = self.path("run")

    def path(self, name):
        return os.path.join(self.root, name)

    def arguments(self, *more, out=None):
        return [
            "train",
            "xmc",
            f"data.train={self.train_path}",
            f"data.test={self.test_path}",
            "model.hidden=32",
            "train.batch=32",
            "train.epochs=6",
            "--threads",
            "2",
            "--out",
            out or self.out,
            *more,
        ]


class EndToEnd(WithData):
    # Keys of several nodes are accepted by one process, which says that it ignores them.
    def test_keys_of_nodes(self):
        done = program.run(*self.arguments("cluster.codec=bf16", "train.epochs=1"))
        self.assertEqual(done.status, 0, done.err)
        self.assertIn("cluster.codec is not looked at without --nodes\n", done.err)

    # The summary has every field of the contract, the model learns, and eval says the same about it. A baseline's figure
    # is that of the files.
    def test_train_eval_predict(self):
        done = program.run(*self.arguments("--json"))
        self.assertEqual(done.status, 0, done.err)
        summary = done.json()
        self.assertEqual(list(summary), FIELDS)
        self.assertEqual(summary["parameters"], 225 * 32 + 25)
        self.assertGreater(summary["metrics"]["P@1"], 80)
        for name in ("run.toml", "metrics.jsonl", "events.jsonl", "model", "curve.svg", "summary.json"):
            self.assertTrue(os.path.exists(os.path.join(self.out, name)), name)
        with open(os.path.join(self.out, "metrics.jsonl"), encoding="utf-8") as file:
            steps = [json.loads(line)["step"] for line in file]
        self.assertEqual(steps, list(range(1, summary["steps"] + 1)))

        measured = program.run("eval", self.out, "--data", self.test_path, "--threads", "2", "--json").json()
        self.assertEqual(measured["metrics"], summary["metrics"])
        self.assertEqual(measured["samples"], 100)

        # P@1 counted from the answers of predict is the same figure.
        answers = program.run("predict", self.out, stdin="".join(self.test_lines)).json_lines()
        self.assertEqual(len(answers), 100)
        hits = 0
        for line, answer in zip(self.test_lines, answers):
            truth = set(map(int, line.split(" ")[0].split(",")))
            scores = [each["score"] for each in answer["labels"]]
            self.assertEqual(scores, sorted(scores, reverse=True))
            hits += answer["labels"][0]["label"] in truth
        self.assertAlmostEqual(hits, measured["metrics"]["P@1"])

        # The baseline of frequent labels always says the label of most training records.
        sets = {}
        for path in (self.train_path, self.test_path):
            with open(path, encoding="utf-8") as file:
                sets[path] = [line.split(" ")[0].split(",") for line in file if ":" in line]
        counts = collections.Counter(label for labels in sets[self.train_path] for label in labels)
        most = min(counts, key=lambda label: (-counts[label], int(label)))
        program_says = program.run("eval", self.out, "--data", self.test_path, "--baseline", "frequent", "--json").json()
        self.assertAlmostEqual(sum(most in labels for labels in sets[self.test_path]), program_says["metrics"]["P@1"])

    # The same seed and threads give the same bytes; another seed does not.
    def test_same_bytes(self):
        models = []
        for name, seed in (("a", 5), ("b", 5), ("c", 6)):
            out = self.path(name)
            done = program.run(*self.arguments(f"seed={seed}", "--quiet", out=out))
            self.assertEqual((done.status, done.err), (0, ""))
            models.append(shards(out))
        self.assertEqual(models[0], models[1])
        self.assertNotEqual(models[0], models[2])

    # Hash tables for negatives learn, too, and the preset of SLIDE runs. eval says what their retrieval misses, here
    # nothing, as 25 labels share few buckets.
    def test_hash_tables(self):
        lsh = ("train.negatives=lsh", "train.sampled=64", "lsh.queries=8")
        summary = program.run(*self.arguments(*lsh, "--json")).json()
        self.assertGreater(summary["metrics"]["P@1"], 80)
        self.assertNotIn("retrieval@10", summary["metrics"])
        evaluate = ("eval", self.out, "--data", self.test_path)
        exact = program.run(*evaluate, "--net-alone", "--json").json()["metrics"]
        measured = program.run(*evaluate, "--net-alone", "--retrieval", "lsh", "--json").json()["metrics"]
        self.assertEqual(measured.pop("retrieval@10"), 100)
        self.assertEqual(measured.pop("retrieval@100"), 100)
        self.assertEqual(measured, exact)
        self.assertRegex(program.run(*evaluate, "--retrieval", "lsh").out, r"retrieval@10 +100\.00")
        self.assertEqual(
            program.run("predict", self.out, "0:1", "--retrieval", "lsh").out, program.run("predict", self.out, "0:1").out
        )
        for wrong in (("--retrieval", "hash"), ("--retrieval", "lsh", "--baseline", "frequent")):
            done = program.run(*evaluate, *wrong)
            self.assertEqual(done.status, 2)
            self.assertIn("--retrieval", done.err)
        slide = program.run("train", "slide", f"data.train={self.train_path}", "train.epochs=1", "--out", self.path("s"))
        self.assertEqual(slide.status, 0, slide.err)

    # A run can be moved, and needs neither data, cache nor checkpoints to answer as before.
    def test_model_is_self_contained(self):
        self.assertEqual(program.run(*self.arguments()).status, 0)
        query = "0:1 1:2 2:1"
        before = program.run("predict", self.out, query, "--top", "3")
        self.assertEqual(before.status, 0, before.err)
        moved = self.path("elsewhere")
        shutil.move(self.out, moved)
        for name in ("cache", "checkpoints"):
            shutil.rmtree(os.path.join(moved, name), ignore_errors=True)
        os.remove(self.train_path)
        os.remove(self.test_path)
        after = program.run("predict", moved, query, "--top", "3")
        self.assertEqual((after.status, after.out), (0, before.out), after.err)
        self.assertEqual(len(after.json()["labels"]), 3)
        alone = program.run("predict", os.path.join(moved, "model"), query, "--top", "3")
        self.assertEqual(alone.out, before.out)

    # Imported records train the same model as the file they came from.
    def test_imported_directory(self):
        imported = self.path("imported")
        self.assertEqual(program.run("data", "import", "xmc", self.train_path, "--out", imported).status, 0)
        self.assertEqual(program.run(*self.arguments()).status, 0)
        other = self.path("other")
        done = program.run(*self.arguments(f"data.train={imported}", out=other))
        self.assertEqual(done.status, 0, done.err)
        self.assertEqual(shards(self.out), shards(other))

    # A query that cannot be read is named with its place. Queries before it are answered.
    def test_bad_query(self):
        self.assertEqual(program.run(*self.arguments()).status, 0)
        done = program.run("predict", self.out, stdin="0:1\n\n5:1 x\n6:1\n")
        self.assertEqual(done.status, 3)
        self.assertEqual(len(done.json_lines()), 2)  # a blank line has an answer, too
        self.assertIn("stdin:3:5", done.err)
        twice = program.run("predict", self.out, "0:1 0:2")
        self.assertEqual(twice.status, 3)
        self.assertIn("argument 1", twice.err)


def shards(run):
    """The bytes of the model's tensors."""
    model = os.path.join(run, "model")
    names = sorted(name for name in os.listdir(model) if name.endswith(".safetensors"))
    assert names, os.listdir(model)
    content = []
    for name in names:
        with open(os.path.join(model, name), "rb") as file:
            content.append(file.read())
    return content


class Text(WithData):
    # A model of text takes raw text and answers with names.
    def test_dictionary(self):
        path = self.path("words.jsonl")
        animals = ["deer", "cow", "pig", "hen", "cod", "bee", "ant", "owl"]
        with open(path, "w", encoding="utf-8") as file:
            for number in range(400):
                animal = animals[number % len(animals)]
                text = f"the {'meat' if number % 3 else 'sound'} of a {animal} in winter {number % 7}"
                file.write(json.dumps({"text": text, "labels": [f"word of {animal}"]}) + "\n")
        done = program.run(
            "train", "dictionary", f"data.train={path}", f"data.test={path}", "model.hidden=32", "train.epochs=4",
            "--out", self.out, "--json",
        )  # fmt: skip
        self.assertEqual(done.status, 0, done.err)
        self.assertGreater(done.json()["metrics"]["P@1"], 95)
        answer = program.run("predict", self.out, "a deer's meat", "--top", "2").json()["labels"]
        self.assertEqual(answer[0]["name"], "word of deer")
        as_json = program.run("predict", self.out, '{"text": "a deer\'s meat"}', "--top", "2").json()["labels"]
        self.assertEqual(as_json, answer)


class NamedFeatures(WithData):
    # Records whose features have names train a model that measures, imports and answers by those names, in any order.
    # Unknown names are counted and change nothing.
    def test_names(self):
        def as_names(path):
            with open(path, encoding="utf-8") as file:
                lines = file.read().splitlines()[1:]
            named = path.replace(".txt", ".jsonl")
            with open(named, "w", encoding="utf-8") as file:
                for line in lines:
                    labels, *pairs = line.split(" ")
                    features = {f"word {pair.split(':')[0]}": float(pair.split(":")[1]) for pair in pairs}
                    record = {"features": features, "labels": [f"label {each}" for each in labels.split(",")]}
                    file.write(json.dumps(record) + "\n")
            return named

        train, test = as_names(self.train_path), as_names(self.test_path)
        more = (f"data.train={train}", f"data.test={test}", "--json")
        done = program.run(*self.arguments(*more))
        self.assertEqual(done.status, 0, done.err)
        summary = done.json()
        self.assertGreater(summary["metrics"]["P@1"], 80)
        for path in (test, self.imported(test)):
            measured = program.run("eval", self.out, "--data", path, "--threads", "2", "--json")
            self.assertEqual(measured.status, 0, measured.err)
            self.assertEqual(measured.json()["metrics"], summary["metrics"])
        other = self.path("other")
        again = program.run(*self.arguments(*more, f"data.train={self.imported(train)}", out=other))
        self.assertEqual(again.status, 0, again.err)
        self.assertEqual(shards(self.out), shards(other))

        known = '{"features": {"word 3": 1, "word 5": 2}}'
        turned = '{"features": {"word 5": 2, "nonsense": 9, "word 3": 1}}'
        answers = program.run("predict", self.out, known, turned).json_lines()
        self.assertEqual(answers[0]["labels"][0]["name"], "label 1")
        self.assertEqual(answers[1], {**answers[0], "unknown_features": 1})
        for query in ("3:1 5:2", '{"features": [[3, 1]]}', '{"text": "word 3"}'):
            refused = program.run("predict", self.out, query)
            self.assertEqual(refused.status, 2, refused.err)
            self.assertIn("named features", refused.err)

    def imported(self, path):
        out = path + ".imported"
        done = program.run("data", "import", "jsonl", path, "--out", out)
        self.assertEqual(done.status, 0, done.err)
        return out


class BeforeTraining(WithData):
    def refused(self, status, part, *more):
        done = program.run(*self.arguments(*more))
        self.assertEqual(done.status, status, done.err)
        self.assertIn(part, done.err)
        self.assertNotIn("step 1/", done.err)
        self.assertFalse(os.path.exists(self.out))

    # Errors in the test set are reported before the training, and leave nothing behind.
    def test_bad_test_set(self):
        self.refused(1, "/no/such", "data.test=/no/such/file.txt")
        with open(self.test_path, "a", encoding="utf-8") as file:
            file.write("1 y:1\n")
        self.refused(3, f"{self.test_path}:102:3")
        words = self.path("words.jsonl")
        with open(words, "w", encoding="utf-8") as file:
            file.write('{"text": "deer", "labels": [1]}\n')
        self.refused(2, "data.test", f"data.test={words}")

    # Inputs that cannot be read twice, or told apart, are refused. So is a test set whose features have names if those
    # of the training records have numbers.
    def test_unfit_sources(self):
        named = self.path("named.jsonl")
        with open(named, "w", encoding="utf-8") as file:
            file.write('{"features": {"deer": 1}, "labels": ["venison"]}\n')
        self.refused(2, "data.test", f"data.test={named}")
        self.refused(2, "data.format", "data.train=-")
        self.refused(2, "data import jsonl", "data.train=-", "data.format=jsonl", "data.test=")

    # A run that would not fit into memory is refused with advice that would fit.
    def test_memory(self):
        huge = self.path("huge.txt")
        with open(huge, "w", encoding="utf-8") as file:
            file.write("1 10 200000000\n0 1:1\n")
        self.refused(1, "would fit", f"data.train={huge}", "data.test=")


class Dictionaries(WithData):
    # A dictionary becomes records to train on and records held out. Both are used by their directory's name.
    def test_import(self):
        book = self.path("book.jsonl")
        with open(book, "w", encoding="utf-8") as file:
            for number in range(300):
                text = f"thing of sort {number % 9} and number {number} in the list of {number % 7} and {number % 5}"
                file.write(json.dumps({"text": text, "labels": [f"word {number % 9}"]}) + "\n")
        out = self.path("dictionary")
        done = program.run("data", "import", "dictionary", book, "--out", out, "--test", "20", "--json")
        self.assertEqual(done.status, 0, done.err)
        report = done.json()
        self.assertEqual(report["definitions"], 300)
        self.assertEqual(report["train"] + report["test"], 300)
        look = program.run("data", "inspect", out, "--json").json()
        self.assertEqual(look["records"], report["train"])
        wrong = program.run("data", "import", "dictionary", self.train_path, "--out", self.path("other"))
        self.assertEqual(wrong.status, 2, wrong.err)
        self.assertFalse(os.path.exists(self.path("other")))


class Continuing(WithData):
    # A directory with anything in it is refused without --resume, and keeps its content.
    def test_non_empty(self):
        os.mkdir(self.out)
        note = os.path.join(self.out, "note.txt")
        with open(note, "w", encoding="utf-8") as file:
            file.write("mine")
        for more in ([], ["--resume"]):
            done = program.run(*self.arguments(*more))
            self.assertEqual(done.status, 2)
            self.assertIn(self.out, done.err)
        self.assertEqual(os.listdir(self.out), ["note.txt"])

    # Gives the run.toml a line that older programs wrote, for a key that was removed. Another value than what all runs
    # do now is refused by name.
    def write_as_older_program(self, out, *more):
        path = os.path.join(out, "run.toml")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for value in (2, 1):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace("[cluster]\n", f"[cluster]\nmicrobatches = {value}\n"))
            if value == 2:
                done = program.run(*self.arguments(*more, "--resume", out=out))
                self.assertEqual(done.status, 2)
                self.assertIn("'cluster.microbatches' was removed", done.err)

    # Ctrl-C gives status 130 and a checkpoint. --resume ends with the bytes of a run that was never stopped.
    # One of the runs was made by an older program.
    def test_interrupt_and_resume(self):
        long = ["train.epochs=200", "checkpoint.every_minutes=0"]
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            out = self.path(f"stopped{status}")
            running = program.Running(*self.arguments(*long, out=out))
            running.wait_for_line("train ")
            running.signal(number)
            done = running.finish()
            self.assertEqual((done.status, done.out), (status, ""), done.err)
            self.assertIn("--resume", done.err)
            self.assertTrue(os.listdir(os.path.join(out, "checkpoints")))
            early = program.run("predict", out, "1:1")
            self.assertEqual(early.status, 1)
            self.assertIn("not finished", early.err)
            if number == signal.SIGINT:
                self.write_as_older_program(out, *long)
            resumed = program.run(*self.arguments(*long, "--resume", "--json", out=out))
            self.assertEqual(resumed.status, 0, resumed.err)
        whole = self.path("whole")
        self.assertEqual(program.run(*self.arguments(*long, out=whole)).status, 0)
        for status in (130, 143):
            self.assertEqual(shards(self.path(f"stopped{status}")), shards(whole))
        with open(os.path.join(self.path("stopped130"), "metrics.jsonl"), encoding="utf-8") as file:
            steps = [json.loads(line)["step"] for line in file]
        self.assertEqual(steps, sorted(set(steps)))

    # The summary of a resumed run covers the whole run; its times add up. The times of the last part stand beside them.
    def test_resumed_summary(self):
        long = ["train.epochs=100", "--json"]
        whole = program.run(*self.arguments(*long, out=self.path("whole"))).json()
        self.assertIsNone(whole["since_resume"])
        running = program.Running(*self.arguments(*long))
        running.wait_for_line("train ")
        running.signal(signal.SIGINT)
        self.assertEqual(running.finish().status, 130)
        resumed = program.run(*self.arguments(*long, "--resume")).json()
        for key in ("steps", "samples", "epochs", "parameters", "final_loss", "metrics"):
            self.assertEqual(resumed[key], whole[key], key)
        part = resumed["since_resume"]
        self.assertTrue(0 < part["step"] < resumed["steps"], part)
        for key in ("train_seconds", "load_seconds", "cpu_seconds"):
            self.assertTrue(0 < part[key] < resumed[key], (key, part, resumed))
        # One rate covers all samples and all seconds. The last part writes the model and so takes longer than its
        # steps.
        self.assertGreaterEqual(resumed["samples_per_second"], resumed["samples"] / resumed["train_seconds"])

    # A finished run gives its summary again; a key that differs is refused by name.
    def test_finished(self):
        first = program.run(*self.arguments("--json"))
        self.assertEqual(first.status, 0, first.err)
        again = program.run(*self.arguments("--json", "--resume"))
        self.assertEqual((again.status, again.out), (0, first.out), again.err)
        other = program.run(*self.arguments("--resume", "train.lr=0.5"))
        self.assertEqual(other.status, 2)
        self.assertIn("train.lr", other.err)

    # --resume on a directory that is not there starts a run.
    def test_resume_starts(self):
        done = program.run(*self.arguments("--resume", "--json"))
        self.assertEqual(done.status, 0, done.err)
        self.assertGreater(done.json()["steps"], 0)


class FullDisk(WithData):
    # A disk that is too small is a failure of the world that is reported before the work, with the bytes needed and
    # free. Nothing is left on it.
    def test_small_disk(self):
        mount = self.path("disk")
        os.mkdir(mount)
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=128k", "gossamer-test", mount], capture_output=True, text=True, check=False
        )
        if made.returncode != 0:
            self.skipTest(f"cannot mount a small disk here (needs root): {made.stderr.strip()}")
        try:
            records = self.path("many.txt")
            program.write_xmlc(records, 5000, seed=4)
            for command in (self.arguments(out=os.path.join(mount, "run")),
                            ["data", "import", "xmc", records, "--out", os.path.join(mount, "records")]):  # fmt: skip
                done = program.run(*command)
                self.assertEqual(done.status, 1, done.err)
                for part in (mount, "too small", "kB free", "to do"):
                    self.assertIn(part, done.err)
                self.assertEqual(os.listdir(mount), [])
        finally:
            subprocess.run(["umount", mount], check=True)


if __name__ == "__main__":
    unittest.main()
