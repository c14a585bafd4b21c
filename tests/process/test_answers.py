# SPDX-License-Identifier: Apache-2.0
"""No wrong answer without a word: what a user may type by mistake into eval and predict."""

import json
import os
import tempfile
import unittest

import program

KINDS = ["boots", "kettle", "tent", "lamp"]


def write_titles(path, records, key="labels"):
    with open(path, "w", encoding="utf-8") as file:
        for i in range(records):
            kind = KINDS[i % len(KINDS)]
            file.write(json.dumps({"text": f"{kind} number{i % 7} {KINDS[i % 3]}", key: [kind]}) + "\n")


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.TemporaryDirectory()
        write_titles(cls.path("train.jsonl"), 80)
        done = program.run("train", "xmc", "data.train=train.jsonl", "train.steps=20", "--out", "model", cwd=cls.home.name)
        assert done.status == 0, done.err

    @classmethod
    def tearDownClass(cls):
        cls.home.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.home.name, name)

    def write(self, name, *lines):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)
        return name

    def run_here(self, *arguments, **more):
        return program.run(*arguments, cwd=self.home.name, **more)

    def refused(self, arguments, *parts, status=3):
        done = self.run_here(*arguments)
        self.assertEqual((done.status, done.out), (status, ""), done.err)
        for part in (*parts, "to do"):
            self.assertIn(part, done.err)


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

    # Labels by number cannot be compared with labels by name.
    def test_numbers_for_names(self):
        self.write("numbers.jsonl", '{"text": "boots", "labels": [0]}')
        self.refused(["eval", "model", "--data", "numbers.jsonl"], "numbers.jsonl:1:1", "by name")


if __name__ == "__main__":
    unittest.main()
