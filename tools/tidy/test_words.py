# SPDX-License-Identifier: Apache-2.0
import unittest

import words
from tree import Tree


def found(rule, files):
    return [str(finding) for finding in rule(Tree(files))]


def sentence(count):
    return " ".join(["word"] * count) + ".\n"


class PagesTest(unittest.TestCase):
    # Nine of ten sentences have at most 30 words: one in ten may have more, two may not.
    def test_nine_of_ten(self):
        self.assertEqual(found(words.check_pages, {
            "a.md": sentence(30) * 9 + sentence(40), "tests/corpus/b.md": sentence(50)}), [])
        bad = found(words.check_pages, {"a.md": sentence(30) * 8 + sentence(31) * 2})
        self.assertIn("a.md:1: page: nine of ten sentences have at most 31 words", bad[0])

    # 40 words pass, 41 fail with line and number.
    def test_sentence(self):
        self.assertEqual(found(words.check_sentences, {"a.md": sentence(40)}), [])
        bad = found(words.check_sentences, {"a.md": "\n" + sentence(41)})
        self.assertIn("a.md:2: sentence: a sentence of 41 words", bad[0])

    # 120 characters pass, 121 fail; tables, code, generated blocks and a line that is one link are free.
    def test_widths(self):
        long = "x" * 121
        self.assertEqual(found(words.check_widths, {
            "a.md": f"{'x' * 120}\n| {long} |\n```\n{long}\n```\n<!-- g -->\n{long}\n<!-- /g -->\n"
                    f"- [a]({long}).\n"}), [])
        self.assertEqual(len(found(words.check_widths, {"a.md": f"{long}\nsee [a]({long})\n"})), 2)

    # The figures of a page, and its long sentences.
    def test_figures(self):
        self.assertEqual(words.figures("a.md", sentence(3) + sentence(50)),
                         "a.md: 2 sentences, median 3, 90th percentile 50, longest 50")
        self.assertEqual(words.figures("a.md", "# A\n"), "a.md: no sentence")
        self.assertEqual(len(words.long_sentences("a.md", sentence(30) + sentence(31))), 1)


class CommentsTest(unittest.TestCase):
    # A sentence in a header's comments has at most 40 words; sources and tests are free.
    def test_long(self):
        comment = "// " + "word " * 20 + "\n// " + "word " * 20 + "{}.\nint x;\n"
        self.assertEqual(found(words.check_comments, {
            "src/a.h": comment.format(""), "src/a.cc": comment.format("x"), "tests/a.h": comment.format("x")}), [])
        self.assertIn("src/a.h:2: comment: a sentence of 41 words",
                      found(words.check_comments, {"src/a.h": "\n" + comment.format("x")})[0])

    # No comment begins with Of, in any language; code, tests and the middle of a line are free.
    def test_beginnings(self):
        self.assertEqual(found(words.check_beginnings, {
            "src/a.h": "// One. Of it all.\nint Of = 1;  // of\n", "src/a_test.cc": "// Of it.\n",
            "tools/a.py": "x = 'Of it'\n", "a.md": "# Of it\n"}), [])
        for path, text in (("src/a.cc", "int x;  // Of it.\n"), ("proto/a.proto", "  // Of it.\n"),
                           ("tools/a.py", "# Of it\n"), ("src/CMakeLists.txt", "# Of it\n"),
                           ("tools/run", "#!/bin/sh\n# Of it\n")):
            self.assertEqual(len(found(words.check_beginnings, {path: text})), 1, path)

    # A subject is a noun, in pages and in comments of headers.
    def test_subjects(self):
        self.assertEqual(found(words.check_subjects, {
            "a.md": "`who` and whose.\n```\nwho\n```\n", "src/a.cc": "// who\n", "src/a.h": "int who;\n"}), [])
        bad = found(words.check_subjects, {
            "a.md": "\nWho asks.\n", "src/a.h": "// a\n// whoever\nint x;  // what is of it, whom\n"})
        self.assertEqual([line.split("'")[:2] for line in bad], [
            ["a.md:2: subject: ", "Who"], ["src/a.h:2: subject: ", "whoever"], ["src/a.h:3: subject: ", "what is of"],
            ["src/a.h:3: subject: ", "whom"]])


if __name__ == "__main__":
    unittest.main()
