# SPDX-License-Identifier: Apache-2.0
"""python3 -m unittest discover -s bench"""

import sys
import unittest

import measure


def python(code):
    return [sys.executable, "-I", "-c", code]


class RunTest(unittest.TestCase):
    # Output, CPU and memory are those of the command, however much memory the measuring program has.
    def test_cost(self):
        ballast = bytearray(200_000_000)
        text, cost = measure.run(python("x = bytearray(50_000_000); print(len(x))"))
        self.assertEqual(text, "50000000\n")
        self.assertEqual(len(ballast), 200_000_000)
        self.assertGreater(cost["peak_rss_bytes"], 50_000_000)
        self.assertLess(cost["peak_rss_bytes"], 100_000_000)
        self.assertGreater(cost["cpu_s"], 0)

    # A failure says what was run, its status and its last words. So does a command that does not exist.
    def test_failures(self):
        for command, parts in ((python("import sys; print('last words'); sys.exit(3)"), ("exit status 3", "last words")),
                               (["/no/such/program"], ("/no/such/program: exit status 127", "No such file"))):
            with self.assertRaises(measure.Failed) as caught:
                measure.run(command)
            for part in parts:
                self.assertIn(part, str(caught.exception))

    # A command that takes too long is killed.
    def test_limit(self):
        with self.assertRaisesRegex(measure.Failed, "not done after 1 s"):
            measure.run(python("while True: pass"), limit_s=1)


if __name__ == "__main__":
    unittest.main()
