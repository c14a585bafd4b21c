# SPDX-License-Identifier: Apache-2.0
import tempfile
import unittest
from pathlib import Path

import formatting
import text
import tidy
from tree import Tree, load_tree

OPEN_END = "TO" "DO"


def found(rule, files):
    return [str(finding) for finding in rule(Tree(files))]


class LinesTest(unittest.TestCase):
    # Blanks at an end, carriage returns, tabs and a missing last line end are found; Makefiles keep tabs.
    def test_blanks_and_tabs(self):
        self.assertEqual(found(text.check_lines, {"a.cc": "int x;\n", "Makefile": "a:\n\tb\n", "b.png": b"\x89\0 \n"}), [])
        self.assertEqual(len(found(text.check_lines, {"a.cc": "x \ny\r\n\tz\nw"})), 4)

    # Text that a test reads may look as it must.
    def test_data_is_free(self):
        self.assertEqual(found(text.check_lines, {"tests/corpus/crlf.txt": "1:2 \r\n\t"}), [])

    # An open end names its issue.
    def test_open_ends(self):
        self.assertEqual(found(text.check_lines, {"a.cc": f"// {OPEN_END}(#12): faster\n// {OPEN_END}S\n"}), [])
        self.assertEqual(len(found(text.check_lines, {"a.cc": f"// {OPEN_END}: faster\n// {OPEN_END}(me) x\n"})), 2)

    # Paths of one machine are found; relative paths and parts of longer ones are not.
    def test_private_paths(self):
        clean = "build/tmp/x, ../tmp, $OUT/work, net/work and a/rooted\n"
        self.assertEqual(found(text.check_lines, {"a.md": clean}), [])
        for top in ("wo" "rk", "ro" "ot", "tm" "p", "ho" "me"):
            self.assertEqual(len(found(text.check_lines, {"a.md": f"see /{top}/x\n"})), 1, top)

    # Three statements in comments are dead code; prose and two examples are not.
    def test_dead_code(self):
        self.assertEqual(found(text.check_dead_code, {
            "a.cc": "// Sums the columns; return early.\n// x = 3 holds here.\n// Cost: f(n).\n"}), [])
        self.assertEqual(len(found(text.check_dead_code, {
            "a.cc": "  // const int x = 3;\n  // run(x);\n  // return x;\n  // }\n"})), 1)


class LinksTest(unittest.TestCase):
    # Links to files, folders, headings and the web pass; links in code blocks are not links.
    def test_clean(self):
        self.assertEqual(found(text.check_links, {
            "docs/a.md": "[b](b.md) [up](../src/) [h](b.md#two-words-12) ![p](p.svg) [w](https://x.y) [own](#top)\n# Top\n"
                         "`[no](gone.md)`\n```\n[no](gone.md)\n```\n",
            "docs/b.md": "## Two words: 1.2\n", "docs/p.svg": "", "src/x.h": ""}), [])

    # A missing file and a missing heading are found with the line.
    def test_dead(self):
        dead = found(text.check_links, {"docs/a.md": "# A\n[b](gone.md)\n[h](#nowhere)\n[d](d.md \"t\")\n"})
        self.assertEqual([line.split(":")[1] for line in dead], ["2", "3", "4"])


class WholeTest(unittest.TestCase):
    # tidy over a folder without git sees the files, not the build outputs, and says what it did.
    def test_folder_on_disk(self):
        with tempfile.TemporaryDirectory() as folder:
            for path, content in {"src/README.md": "# src\n", "build/x.cc": "rand()\n", "a.md": "x \n"}.items():
                Path(folder, path).parent.mkdir(parents=True, exist_ok=True)
                Path(folder, path).write_text(content)
            tree = load_tree(folder)
            self.assertEqual(list(tree.paths()), ["a.md", "src/README.md"])
            rules = {finding.rule for finding in tidy.findings_of(tree, {})[0]}
            self.assertEqual(rules, {"line", "layers"})

    # Where clang-format is installed a badly formatted file is found, a good one is not.
    @unittest.skipUnless(formatting.available(), formatting.PROGRAM + " is not installed")
    def test_format(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, ".clang-format").write_text("BasedOnStyle: Google\n")
            Path(folder, "good.cc").write_text("int x = 1;\n")
            Path(folder, "bad.cc").write_text("int y;\nint   x=1;\n")
            findings = list(formatting.check_format(load_tree(folder)))
            self.assertEqual([(f.path, f.line) for f in findings], [("bad.cc", 2)])


if __name__ == "__main__":
    unittest.main()
