# SPDX-License-Identifier: Apache-2.0
"""No wrong answer without a word: what a user may type by mistake into eval and predict."""

import glob
import gzip
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import unittest

import program
from answers import Answers, write_titles


class Eval(Answers):
    # Records without the key "labels" are refused with the keys that they have, by eval and before training.
    def test_no_labels(self):
        write_titles(self.path("tags.jsonl"), 8, key="tags")
        self.refused(["eval", "model", "--data", "tags.jsonl", "--json"], "no record has a label", "'tags'", "jq -c")
        self.refused(["train", "xmc", "data.train=tags.jsonl", "--out", "never"], "no record has a label", "'tags'")
        self.refused(["train", "xmc", "data.train=train.jsonl", "data.test=tags.jsonl", "--out", "never"], "'tags'")
        self.assertFalse(os.path.exists(self.path("never")))
        self.write("other.jsonl", '{"title": "a", "tags": ["b"]}')
        self.refused(["eval", "model", "--data", "other.jsonl"], "'title', 'tags'")

    # Labels never seen in training are counted in the summary and on standard error. If all are, nothing is measured.
    def test_unseen_labels(self):
        self.write("some.jsonl", '{"text": "boots", "labels": ["boots", "zeppelin"]}', '{"text": "tent", "labels": ["tent"]}')
        done = self.run_here("eval", "model", "--data", "some.jsonl", "--json")
        self.assertEqual(done.status, 0, done.err)
        self.assertEqual((done.json()["labels"], done.json()["unseen_labels"]), (3, 1))
        self.assertIn("'zeppelin'", done.err)
        self.assertIn("1 of their 3 labels", self.run_here("eval", "model", "--data", "some.jsonl").out)
        self.write("none.jsonl", '{"text": "boots", "labels": ["zeppelin"]}')
        self.refused(["eval", "model", "--data", "none.jsonl"], "'zeppelin'", "labels such as")

    # A label without a name is called by its number.
    def test_unseen_numbers(self):
        self.write("seen.txt", *(f"{n % 3} {n % 3}:1 {3 + n % 3}:1" for n in range(60)))
        self.write("unseen.txt", "0 0:1 3:1", "17 1:1 4:1")
        trained = self.run_here("train", "xmc", "data.train=seen.txt", "train.epochs=1", "--out", "numbers")
        self.assertEqual(trained.status, 0, trained.err)
        self.assertIn("such as '17'", self.run_here("eval", "numbers", "--data", "unseen.txt").err)

    # Records of which the model knows no word are counted, in the figures and on standard error, also when quiet. If all
    # are, nothing is measured.
    def test_nothing_known(self):
        self.write("strange.jsonl", '{"text": "zapatos de cuero", "labels": ["boots"]}', '{"text": "tent", "labels": ["tent"]}')
        done = self.run_here("eval", "model", "--data", "strange.jsonl", "--json", "--quiet")
        self.assertEqual(done.status, 0, done.err)
        self.assertEqual((done.json()["samples"], done.json()["samples_nothing_known"]), (2, 1))
        self.assertIn("warning: 1 test record has no word or feature that the model knows", done.err)
        self.assertIn("2 test records; the model knows nothing of 1 of them", self.run_here("eval", "model", "--data", "strange.jsonl").out)
        self.write("alien.jsonl", '{"text": "zapatos de cuero", "labels": ["boots"]}', '{"text": "tent"}')
        self.refused(["eval", "model", "--data", "alien.jsonl"], "alien.jsonl", "1 record", "words of the training records")

    # A flag that is given twice could mean either value.
    def test_flag_twice(self):
        self.refused(["predict", "model", "boots", "--top", "2", "--top", "1"], "--top is given more than once", status=2)
        self.refused(["predict", "model", "boots", "--top"], "--top needs a value", status=2)

    # A baseline does not ask the net, so flags that choose the net beside it are refused.
    def test_flags_that_contradict(self):
        for baseline in ("nearest", "frequent"):
            self.refused(["eval", "model", "--data", "train.jsonl", "--baseline", baseline, "--net-alone"],
                         "--net-alone", f"--baseline {baseline}", "leave one", status=2)  # fmt: skip

    # A model.json that is empty, or has a key twice, is no model.
    def test_damaged_model(self):
        with open(self.path("model/model/model.json"), encoding="utf-8") as file:
            good = file.read()
        shutil.copytree(self.path("model"), self.path("damaged"))
        for text, got in (("", "an empty text"), ('{"hidden": 8,' + good[1:], "the key 'hidden' twice")):
            with open(self.path("damaged/model/model.json"), "w", encoding="utf-8") as file:
                file.write(text)
            self.refused(["predict", "damaged", "boots"], "damaged/model/model.json", got, "expected")

    # Labels by number cannot be compared with labels by name.
    def test_numbers_for_names(self):
        self.write("numbers.jsonl", '{"text": "boots", "labels": [0]}')
        self.refused(["eval", "model", "--data", "numbers.jsonl"], "numbers.jsonl:1:1", "by name")


class Predict(Answers):
    # Each line has its answer, a blank one too. Where the model knows nothing of the query, the answer says so.
    def test_an_answer_for_each_line(self):
        done = self.run_here("predict", "model", "--top", "1", stdin="boots\n\n \ntent zapatos\nzapatos de cuero\n")
        self.assertEqual(done.status, 0, done.err)
        boots, empty, blank, some, unknown = done.json_lines()
        self.assertEqual(boots["labels"][0]["name"], "boots")
        self.assertEqual(set(boots), {"labels"})
        self.assertEqual((empty["nothing_known"], set(empty)), (True, {"labels", "nothing_known"}))
        self.assertEqual(blank, empty)
        self.assertEqual((some["unknown_features"], set(some)), (1, {"labels", "unknown_features"}))
        self.assertEqual(unknown, {**empty, "unknown_features": 3})
        self.assertIn("3 queries were blank", done.err)

    # A byte order mark, with which some programs begin a file, is no part of the first query.
    def test_byte_order_mark(self):
        for query in ('{"text": "boots"}\n', "boots\n"):
            plain = self.run_here("predict", "model", stdin=query)
            marked = self.run_here("predict", "model", stdin="\ufeff" + query)
            self.assertEqual((marked.status, marked.out), (0, plain.out), marked.err)

    # A query that is the name of a file is answered as a text, and remarked upon. "-" is standard input.
    def test_a_file_is_no_query(self):
        done = self.run_here("predict", "model", "train.jsonl", "boots")
        self.assertEqual((done.status, len(done.json_lines())), (0, 2))
        self.assertIn("there is a file of this name", done.err)
        self.assertIn("gossamer predict DIR < train.jsonl", done.err)
        self.assertIn("'train.jsonl'", self.run_here("predict", "model", stdin="train.jsonl\n").err)
        self.assertEqual(self.run_here("predict", "model", "boots").err, "")
        dash = self.run_here("predict", "model", "-", stdin="boots\n\n")
        self.assertEqual(dash.out, self.run_here("predict", "model", stdin="boots\n\n").out)

    # Answers say how likely a label is right. A threshold leaves out what is less likely, and is checked.
    def test_probability(self):
        labels = self.run_here("predict", "model", "boots").json()["labels"]
        chances = [label["probability"] for label in labels]
        self.assertEqual(chances, sorted(chances, reverse=True))
        self.assertTrue(all(0 <= chance <= 1 for chance in chances), chances)
        few = self.run_here("predict", "model", "boots", "--threshold", str(chances[0])).json()["labels"]
        self.assertEqual(few, [label for label in labels if label["probability"] >= chances[0]])
        alone = self.run_here("predict", "model", "boots", "--net-alone").json()["labels"]
        self.assertIn("probability", alone[0])
        self.refused(["predict", "model", "boots", "--threshold", "2"], "between 0 and 1", status=2)
        done = self.run_here("train", "xmc", "data.train=train.jsonl", "train.steps=5", "predict.instances=false", "--out", "bare")
        self.assertEqual(done.status, 0, done.err)
        self.assertNotIn("probability", self.run_here("predict", "bare", "boots").json()["labels"][0])
        self.refused(["predict", "bare", "boots", "--threshold", "0.5"], "no probabilities", status=2)

    # A model without training records has probabilities too, also where the nodes of a fleet hold it in parts, with and
    # without records to measure it by.
    def test_probability_of_the_net(self):
        chances = []
        for more in ([], ["--nodes", "2"], ["--nodes", "2", "data.test=train.jsonl"]):
            out = f"net-{len(chances)}"
            done = self.run_here("train", "xmc", "data.train=train.jsonl", "train.steps=20", "predict.instances=false",
                                 "predict.held_out=16", *more, "--out", out)  # fmt: skip
            self.assertEqual(done.status, 0, done.err)
            labels = self.run_here("predict", out, "boots").json()["labels"]
            chances.append(labels[0]["probability"])
            self.assertGreater(len(self.run_here("predict", out, "boots", "--threshold", "0.001").json()["labels"]), 0)
        self.assertTrue(max(chances) - min(chances) < 0.02, chances)

    # A query in brackets is one query, as on standard input.
    def test_brackets(self):
        done = self.run_here("predict", "model", "[boots, tent]", "kettle")
        self.assertEqual((done.status, len(done.json_lines())), (0, 2), done.err)
        self.assertEqual(done.out, self.run_here("predict", "model", stdin="[boots, tent]\nkettle\n").out)
        self.refused(["predict", "model", "[1]"], "JSON array")

    # UTF-16, which programs of another system write, is not taken for a text of unknown words.
    def test_utf16(self):
        for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
            for query in ("boots\ntent\n", '{"text": "boots"}\n'):
                with self.subTest(encoding=encoding, query=query):
                    done = subprocess.run([program.GOSSAMER, "predict", self.path("model")], input=query.encode(encoding),
                                          capture_output=True, check=False)  # fmt: skip
                    self.assertEqual((done.returncode, done.stdout), (3, b""), done.stderr)
                    self.assertIn(b"UTF-16", done.stderr)
                    self.assertIn(b"iconv -f utf-16", done.stderr)

    # Keys of a query that nothing looks at are named, in the answer and on standard error.
    def test_ignored_keys(self):
        done = self.run_here("predict", "model", '{"text": "boots", "context": "tent"}', '{"text": "boots", "contxt": "tent"}', '{"text": "boots", "labels": []}')
        self.assertEqual([line.get("ignored_keys") for line in done.json_lines()], [["context"], ["contxt"], None])
        self.assertIn("warning: 2 queries had keys that nothing looks at, such as 'context'", done.err)

    # "-" beside queries is neither a query nor standard input.
    def test_dash_beside_queries(self):
        self.refused(["predict", "model", "boots", "-"], "'-' and 1 more", status=2)

    # Packed queries are named with what unpacks them.
    def test_packed_queries(self):
        done = subprocess.run([program.GOSSAMER, "predict", self.path("model")], input=gzip.compress(b"boots\ntent\n"), capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (3, b""), done.stderr)
        self.assertIn(b"gzip -dc FILE | gossamer predict DIR", done.stderr)

    # One query is not several.
    def test_one_query(self):
        self.assertIn("1 query was blank", self.run_here("predict", "model", "--quiet", stdin="\n").err)

    # A JSON array is not taken for a text.
    def test_json_array(self):
        done = self.run_here("predict", "model", stdin='[{"text": "boots"}]\n')
        self.assertEqual((done.status, done.out), (3, ""))
        self.assertIn("jq -c '.[]'", done.err)


class Resume(Answers):
    # A run that stops says the whole command that goes on with it. That command needs neither CONFIG nor keys, and ends
    # with the model of a run that was never stopped.
    def test_the_printed_command(self):
        keys = ["data.train=train.jsonl", "train.batch=16", "train.steps=3000", "seed=5"]
        wanted = self.run_here("train", "xmc", *keys, "--out", "whole", "--threads", "1")
        self.assertEqual(wanted.status, 0, wanted.err)
        running = program.Running("train", "xmc", *keys, "--out", "a run", "--threads", "1", directory=self.home.name)
        running.wait_for_line("memory")
        running.signal(signal.SIGINT)
        done = running.finish()
        self.assertEqual(done.status, 130, done.err)
        printed = re.search(r"continue with: (gossamer train .*)", done.err)
        self.assertIsNotNone(printed, done.err)
        words = shlex.split(printed[1])
        self.assertEqual(words, ["gossamer", "train", "--resume", "--out", "a run", "--threads", "1"])
        again = self.run_here(*words[1:])
        self.assertEqual(again.status, 0, again.err)
        models = []
        for run in ("whole", "a run"):
            model = self.path(os.path.join(run, "model"))
            models.append({name: open(os.path.join(model, name), "rb").read() for name in sorted(os.listdir(model))})
        self.assertEqual(models[0], models[1])
        # A finished run says so. A key that differs is refused, one that does not is not.
        self.assertEqual(self.run_here(*words[1:], "--json").json()["steps"], 3000)
        self.assertEqual(self.run_here("train", "--resume", "seed=5", "--out", "a run").status, 0)
        self.refused(["train", "--resume", "seed=6", "--out", "a run"], "has another seed", status=2)

    # A run that machines have joined may have newer steps there: one process that goes on alone warns of it, also when
    # quiet. How it goes on after a stop is a result, and said when quiet, too.
    def test_a_run_of_machines(self):
        keys = ["data.train=train.jsonl", "train.batch=16", "train.steps=3000", "checkpoint.every_steps=50"]
        running = program.Running("train", "xmc", *keys, "--out", "joined", "--quiet", directory=self.home.name)
        for _ in program.looks(program.TIMEOUT):
            if glob.glob(self.path("joined/checkpoints/*.ckpt")):
                break
        running.signal(signal.SIGINT)
        done = running.finish()
        self.assertEqual(done.status, 130, done.err)
        self.assertRegex(done.err, r"^stopped after step \d+; continue with: gossamer train --resume --out joined\n$")
        lead = self.path("joined/nodes/coordinator")
        os.makedirs(lead)
        with open(os.path.join(lead, "lead.toml"), "w", encoding="utf-8") as file:
            file.write('engine = "sparse"\n')
        done = self.run_here("train", "--resume", "--out", "joined", "--quiet")
        self.assertEqual(done.status, 0, done.err)
        self.assertIn("warning: this run had a coordinator", done.err)
        self.assertIn("gossamer coordinator --resume --out joined", done.err)
        self.assertNotIn("machines", self.run_here("train", "--resume", "--out", "joined").err)

    # Without a run there is nothing to resume.
    def test_no_run(self):
        self.refused(["train", "--resume", "--out", "nowhere"], "no run to resume", "CONFIG", status=2)
        self.refused(["coordinator", "--resume", "--out", "nowhere"], "no run to resume", "CONFIG", status=2)
        self.refused(["coordinator", "--out", "nowhere"], "CONFIG is missing", status=2)
        self.refused(["train", "--resume"], "--out is missing", status=2)
        self.assertFalse(os.path.exists(self.path("nowhere")))


if __name__ == "__main__":
    unittest.main()
