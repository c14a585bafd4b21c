# SPDX-License-Identifier: Apache-2.0
import unittest
from pathlib import Path

import open_work
from tree import Finding


def sorted_out(findings, listed):
    new, known = open_work.sort_out(findings, listed)
    return [(finding.path, finding.rule) for finding in new], [(finding.path, finding.rule) for finding in known]


class OpenWorkTest(unittest.TestCase):
    # A listed path is silent for the listed rules alone; so are a listed folder's files and a listed class.
    def test_listed(self):
        findings = [Finding("a.md", 1, "page", ""), Finding("a.md", 2, "width", ""), Finding("src/a/b.h", 1, "of", ""),
                    Finding("src/c.h", 1, "class-size", "", "net::Links")]
        self.assertEqual(sorted_out(findings, {"a.md": "page", "src/a/": "of", "net::Links": "class-size"}),
                         ([("a.md", "width")], [("a.md", "page"), ("src/a/b.h", "of"), ("src/c.h", "class-size")]))

    # A path that only begins like a listed one is not it.
    def test_other_path(self):
        findings = [Finding("a.md.in", 1, "page", ""), Finding("a.md", 1, "page", "")]
        self.assertEqual(sorted_out(findings, {"a.md": "page"})[0], [("a.md.in", "page")])

    # An entry that breaks nothing any more is a finding, and so is one for a rule that takes none.
    def test_stale(self):
        new, _ = open_work.sort_out([Finding("b.cc", 1, "banned", "")], {"a.md": "page", "b.cc": "banned"})
        self.assertEqual([finding.rule for finding in new], ["banned", "open-work", "open-work"])
        self.assertIn("'a.md' breaks 'page' no more", new[1].message)

    # Such a finding stands at the entry's line.
    def test_line_of_an_entry(self):
        lines = Path(open_work.__file__).read_text(encoding="utf-8").splitlines()
        for place in list(open_work.LISTED)[:1]:
            new, _ = open_work.sort_out([], {place: "page"})
            self.assertIn(place, lines[new[0].line - 1])

    # The list is in order, each path once, and names only rules that may stand in it.
    def test_order(self):
        places = list(open_work.LISTED)
        self.assertEqual(places, sorted(places, key=lambda place: ("::" in place, place)))
        lines = Path(open_work.__file__).read_text(encoding="utf-8").partition("LISTED = {")[2].splitlines()
        self.assertEqual(sum(line.startswith('    "') for line in lines), len(places))
        for rules in open_work.LISTED.values():
            self.assertLessEqual(set(rules.split()), set(open_work.RULES))


if __name__ == "__main__":
    unittest.main()
