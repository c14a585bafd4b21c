# SPDX-License-Identifier: Apache-2.0
import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import check_commands

FENCE = "`" * 3
MAKEFILE = "X := 1\nbuild: x\n\techo\ndemo:\n"


def block(info, *lines):
    return "\n".join([f"{FENCE}console{' ' + info if info else ''}", *lines, FENCE, ""])


class CheckCommandsTest(unittest.TestCase):
    def check(self, document, tool="exit 0"):
        """(status, output) of a tree with `document` as its README, in which the program does `tool`."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "docs").mkdir()
            (root / "README.md").write_text("# Title\n\n" + document)
            (root / "Makefile").write_text(MAKEFILE)
            (root / "bin").mkdir()
            (root / "bin/gossamer").write_text(f"#!/bin/sh\n{tool}\n")
            (root / "bin/gossamer").chmod(0o755)
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                status = check_commands.main(["--root", str(root), "--build", str(root / "bin")])
            return status, output.getvalue()

    # Commands of `console run` blocks run in order, in one directory, with the built program first in PATH.
    def test_runs(self):
        status, output = self.check(block("run", "$ gossamer version > a.txt", "some output") +
                                    block("run", "$ test -s a.txt \\", "    && gossamer more"), "echo here")
        self.assertEqual((status, output), (0, "docs: 1 documents, 2 commands run, 0 complaints\n"))

    # A command that fails is a complaint with its place, its status and its output. Later ones do not run.
    def test_failure(self):
        status, output = self.check(block("run", "$ gossamer predict", "$ echo later"), "echo broken; exit 3")
        self.assertEqual(status, 1)
        self.assertIn("README.md:3: a command ended with status 3:\n$ gossamer predict\nbroken", output)
        self.assertNotIn("later\n", output.replace("echo later", ""))

    # Commands make and git clone are shown without running them. The target must exist.
    def test_make(self):
        self.assertEqual(self.check(block("", "$ git clone URL", "$ make build JOBS=2"))[0], 0)
        status, output = self.check(block("", "$ make bild"))
        self.assertEqual(status, 1)
        self.assertIn("no target 'bild'", output)

    # Other blocks are marked, with a reason where they are not run.
    def test_marks(self):
        self.assertEqual(self.check(block("norun takes an hour", "$ rm -rf x"))[0], 0)
        for document, words in ((block("norun", "$ x"), "needs a reason"), (block("", "$ ls"), "is not run"),
                                (block("maybe", "$ ls"), "unknown word"), (block("run", "text only"), "without a line")):
            status, output = self.check(document)
            self.assertEqual(status, 1, document)
            self.assertIn(words, output)

    # An example's commands find the files of its folder, and leave the folder as it is.
    def test_example(self):
        with tempfile.TemporaryDirectory() as folder:
            example = Path(folder) / "examples/one"
            example.mkdir(parents=True)
            (example / "data.txt").write_text("x")
            (example / "README.md").write_text(block("run", "$ test -s data.txt", "$ touch made.txt"))
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                status = check_commands.main(["--root", folder, "--build", folder])
            self.assertEqual((status, output.getvalue()), (0, "docs: 1 documents, 2 commands run, 0 complaints\n"))
            self.assertFalse((example / "made.txt").exists())

    # Blocks of other languages are left alone.
    def test_other_languages(self):
        self.assertEqual(self.check(f"{FENCE}cpp\n$ exit 1\n{FENCE}\n")[0], 0)


if __name__ == "__main__":
    unittest.main()
