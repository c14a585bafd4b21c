# SPDX-License-Identifier: Apache-2.0
import unittest

import prose
from tree import strip_cpp


def page(text):
    return [(sentence.line, sentence.text) for sentence in prose.page_sentences(text)]


def texts(text):
    return [sentence.text for sentence in prose.page_sentences(text)]


def comments(text):
    return [[number for number, _ in paragraph] for paragraph in prose.comments(text, strip_cpp(text))]


class SentencesTest(unittest.TestCase):
    # A sentence ends at . ! ? before a blank, and carries the line of its first word.
    def test_ends(self):
        self.assertEqual(page("One is one. Two\n(is two.) Is\nit? Yes!\n"),
                         [(1, "One is one."), (1, "Two (is two.)"), (2, "Is it?"), (3, "Yes!")])

    # Numbers, names of files, code and abbreviations end nothing.
    def test_no_ends(self):
        for text in ("At 0.5 s of v1.2 it ends.", "See a.h, e.g. b.cc, i.e. (cf. c.cc) all.", "`a. b.` is code. ",
                     "A link [to a. b](x.md) vs. one."):
            self.assertEqual(len(texts(text)), 1 + text.startswith("A link"), text)

    # Words are what has a letter or digit; a code span is one word, of a link the text counts.
    def test_words(self):
        counted = [sentence.words for sentence in prose.page_sentences("A - `b c\nd` + [e f](g h.md) = 1.\n")]
        self.assertEqual(counted, [5])

    # The share's value is one of the list.
    def test_percentile(self):
        self.assertEqual([prose.percentile(range(1, 11), share) for share in (0.5, 0.9, 1)], [5, 9, 10])
        self.assertEqual(prose.percentile([7], 0.9), 7)


class PagesTest(unittest.TestCase):
    # Headings, tables, code, generated blocks and remarks are no prose.
    def test_left_out(self):
        self.assertEqual(texts("# Head one\nText.\n| a | b |\n\n```\ncode it\n```\n\n    more code\n\n"
                               "<!-- plot -->\nMade.\n<!-- /plot -->\n<!-- a remark\nover lines -->\n"
                               "End <!-- hidden --> here.\n"),
                         ["Text.", "End here."])

    # A list item begins a sentence, and lines below it go on with it; a blank line ends one.
    def test_items(self):
        self.assertEqual(texts("These:\n- one\n  goes on\n- two. Three\n\n1. four\n2. five\n\nsix\n\nseven\n"),
                         ["These:", "one goes on", "two.", "Three", "four", "five", "six", "seven"])

    # A number or a sign that a line happens to begin with makes no item.
    def test_no_item(self):
        self.assertEqual(texts("panels of\n64. Each is\n+ one.\n"), ["panels of 64.", "Each is + one."])

    # A marker that is not closed opens no generated block.
    def test_open_marker(self):
        self.assertEqual(texts("<!-- note -->\nText.\n"), ["Text."])


class CommentsTest(unittest.TestCase):
    # A blank line, code and a list item part paragraphs; the licence line is none.
    def test_paragraphs(self):
        self.assertEqual(comments("// SPDX-License-Identifier: x\n//\n// A\n// b.\n//\n// C:\n// - d\n//   e\n// F\n"
                                  "int x;\n// G\n"),
                         [[3, 4], [6], [7, 8], [9], [11]])

    # A comment behind code begins one, and goes on below at its column.
    def test_behind_code(self):
        self.assertEqual(comments("int x;  // A\n        // b\nint y;  // C\n// D\n"), [[1, 2], [3], [4]])

    # Rows of a table stand alone, and // in a literal is no comment.
    def test_rows(self):
        self.assertEqual(comments("// A:\n//   b  c\n//   d  e\n// F.\nauto s = \"// g\";\n"), [[1], [2], [3], [4]])


if __name__ == "__main__":
    unittest.main()
