# SPDX-License-Identifier: Apache-2.0
"""Probabilities of answers, compared with how often the answers are right."""

import json
import os
import random
import tempfile
import unittest

import program

KINDS = 12
WORDS = 40
CERTAINTY = [0.95, 0.8, 0.65, 0.5, 0.35]  # of the words in turn: how often a text with it has the word's own kind
BINS = 10


def write_vague(path, records, seed):
    """Texts whose words tell their kind with more or less certainty."""
    rng = random.Random(seed)
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(records):
            word = rng.randrange(WORDS)
            kind = word % KINDS
            if rng.random() >= CERTAINTY[word % len(CERTAINTY)]:
                kind = rng.choice([other for other in range(KINDS) if other != kind])
            text = " ".join([f"word{word}"] + [f"more{rng.randrange(60)}" for _ in range(3)])
            file.write(json.dumps({"text": text, "labels": [f"kind{kind}"]}) + "\n")


def calibration_error(pairs):
    """The mean distance of probability and share of right answers, in bins of like probability, by their sizes."""
    sums = [[0.0, 0] for _ in range(BINS)]
    for probability, right in pairs:
        place = sums[min(BINS - 1, int(probability * BINS))]
        place[0] += probability
        place[1] += right
    return sum(abs(probabilities - right) for probabilities, right in sums) / len(pairs)


class Probability(unittest.TestCase):
    # On records that training has never seen, the probabilities of the five best labels are right within 0.05, by all
    # views and by the net alone. Those of the best label are right within 0.1: 200 records were held out to learn them,
    # and a share among 200 has a standard error of 0.035.
    def test_error_on_unseen_records(self):
        with tempfile.TemporaryDirectory() as home:
            write_vague(os.path.join(home, "train.jsonl"), 4000, 1)
            write_vague(os.path.join(home, "unseen.jsonl"), 4000, 2)
            done = program.run("train", "xmc", "data.train=train.jsonl", "--out", "model", cwd=home)
            self.assertEqual(done.status, 0, done.err)
            with open(os.path.join(home, "unseen.jsonl"), encoding="utf-8") as file:
                records = [json.loads(line) for line in file]
            for more in ([], ["--net-alone"]):
                done = program.run("predict", "model", *more, cwd=home, stdin="".join(record["text"] + "\n" for record in records))
                answers = [answer["labels"] for answer in done.json_lines()]
                self.assertEqual(len(answers), len(records), done.err)
                for best, most in ((1, 0.1), (5, 0.05)):
                    pairs = [
                        (label["probability"], label["name"] in record["labels"])
                        for record, labels in zip(records, answers)
                        for label in labels[:best]
                    ]
                    with self.subTest(more=more, best=best):
                        self.assertEqual(len(pairs), best * len(records))
                        self.assertLess(calibration_error(pairs), most)


if __name__ == "__main__":
    unittest.main()
