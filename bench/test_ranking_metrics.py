# SPDX-License-Identifier: Apache-2.0
"""python3 -m unittest discover -s bench    (needs numpy)"""

import math
import pathlib
import tempfile
import unittest

import numpy
import ranking_metrics
import records

TRAIN = "4 3 4\n0,1 0:1\n0 1:2\n\u00200:1 2:0.5\n0,2 1:1\n"
TEST = "3 3 4\n0,3 0:1\n 1:1\n1 2:1\n"


def read(text):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "records.txt"
        path.write_text(text, encoding="ascii")
        return records.read(path)


class RecordsTest(unittest.TestCase):
    # Rows keep their features, values and labels. A line that starts with a space has no label.
    def test_read(self):
        train = read(TRAIN)
        self.assertEqual((len(train), train.features, train.labels), (4, 3, 4))
        self.assertEqual([train.truth(row).tolist() for row in range(4)], [[0, 1], [0], [], [0, 2]])
        self.assertEqual(train.begin.tolist(), [0, 1, 2, 4, 5])
        self.assertEqual(train.index.tolist(), [0, 1, 0, 2, 1])
        self.assertEqual(train.value.tolist(), [1, 2, 1, 0.5, 1])

    # A feature in every record weighs nothing, rows have length 1, and the words of the test take the training's idf.
    def test_weighted(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder) / name for name in ("train.txt", "test.txt")]
            paths[0].write_text("2 3 2\n0 0:1 1:1\n1 0:1 2:5\n", encoding="ascii")
            paths[1].write_text("1 3 2\n1 0:1 1:1 2:1\n", encoding="ascii")
            train, test = map(records.read, records.weighted(*paths, folder))
        self.assertEqual(train.index.tolist(), [1, 2])
        self.assertEqual(train.value.tolist(), [1, 1])
        numpy.testing.assert_allclose(test.value, [math.sqrt(0.5)] * 2, rtol=1e-4)


class MetricsTest(unittest.TestCase):
    # The metrics agree with their definitions by hand. The record without labels is left out, and -1 is no label.
    def test_by_hand(self):
        ranking = numpy.array([[0, 3, 1, 2, -1], [0, 1, 2, 3, -1], [0, 1, -1, -1, -1]])
        found = ranking_metrics.metrics(ranking, read(TRAIN), read(TEST))
        scale = (math.log(4) - 1) * 2.5**0.55
        often, once, never = (1 + scale * (n + 1.5) ** -0.55 for n in (3, 1, 0))
        self.assertAlmostEqual(found["P@1"], 100 * (1 + 0) / 2)
        self.assertAlmostEqual(found["P@3"], 100 * (2 / 3 + 1 / 3) / 2)
        self.assertAlmostEqual(found["P@5"], 100 * (2 / 5 + 1 / 5) / 2)
        self.assertAlmostEqual(found["PSP@1"], 100 * often / (never + once))
        self.assertAlmostEqual(found["PSP@3"], 100)

    # A peer that names a label twice, or ranks too few records, is not scored.
    def test_bad_ranking(self):
        with self.assertRaises(ValueError):
            ranking_metrics.metrics(numpy.zeros((3, 5), dtype=int), read(TRAIN), read(TEST))
        with self.assertRaises(ValueError):
            ranking_metrics.metrics(numpy.zeros((2, 5), dtype=int), read(TRAIN), read(TEST))


if __name__ == "__main__":
    unittest.main()
