# SPDX-License-Identifier: Apache-2.0
"""A small trained model, and a user who types at it."""

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
        done = program.run("train", "xmc", "data.train=train.jsonl", "train.steps=20", "predict.held_out=16", "--out", "model", cwd=cls.home.name)
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
