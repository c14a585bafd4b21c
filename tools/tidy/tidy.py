#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/tidy/tidy.py [ROOT]: checks the house rules over the tree; exit status 1 when one is broken.

Each finding is one line, FILE:LINE: RULE: what is wrong and what to do. The rules and their reasons are in
README.md beside this file. Further ways to call it:

  tidy.py --open [START...]   what open_work.py lists, as findings of paths and classes that begin with START
  tidy.py --classes           the twenty largest classes
  tidy.py --words [FILE...]   the sentences of all pages in numbers; of each FILE with those that are long
"""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import banned
import classes
import formatting
import house
import layers
import open_work
import own_names
import sizes
import text
import words
from tree import load_tree

RULES = layers.RULES + sizes.RULES + classes.RULES + banned.RULES + house.RULES + own_names.RULES
RULES += text.RULES + words.RULES
ROOT = Path(__file__).resolve().parents[2]


def findings_of(tree, listed):
    """(findings, those of them that `listed` knows and that are left out), both sorted."""
    with ThreadPoolExecutor(1) as beside:
        formats = beside.submit(lambda: [finding for rule in formatting.RULES for finding in rule(tree)])
        found = {finding for rule in RULES for finding in rule(tree)}
        found.update(formats.result())
    new, known = open_work.sort_out(sorted(found), listed)
    return sorted(new), known


def check(root):
    begin = time.monotonic()
    tree = load_tree(root)
    findings, known = findings_of(tree, open_work.LISTED)
    for finding in findings:
        print(finding)
    files = sum(1 for _ in tree.paths())
    skipped = "" if formatting.available() else f", formatting skipped ({formatting.PROGRAM} is not installed)"
    print(f"tidy: {files} files, {len(RULES + formatting.RULES)} rules, {len(findings)} findings, {len(known)} more in "
          f"open_work.py, {time.monotonic() - begin:.1f} s{skipped}")
    return 1 if findings else 0


def show_open(starts):
    _, known = findings_of(load_tree(ROOT), open_work.LISTED)
    for finding in known:
        if not starts or finding.path.startswith(tuple(starts)) or finding.subject.startswith(tuple(starts)):
            print(finding)
    return 0


def show_classes(_):
    print("\n".join(classes.largest(load_tree(ROOT), 20)))
    return 0


def show_words(files):
    if not files:
        tree = load_tree(ROOT)
        print("\n".join(words.figures(path, tree.text(path)) for path in tree.paths(".md")))
    for file in files:
        page = Path(file).read_text(encoding="utf-8")
        print("\n".join([words.figures(file, page), *words.long_sentences(file, page)]))
    return 0


def main(arguments):
    shows = {"--open": show_open, "--classes": show_classes, "--words": show_words}
    if arguments and arguments[0] in shows:
        return shows[arguments[0]](arguments[1:])
    return check(Path(arguments[0]) if arguments else ROOT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
