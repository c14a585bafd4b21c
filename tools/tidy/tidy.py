#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/tidy/tidy.py [ROOT]: checks the house rules over the tree; exit status 1 when one is broken.

Each finding is one line, FILE:LINE: RULE: what is wrong and what to do. The rules and their reasons are in
README.md beside this file.
"""

import sys
import time
from pathlib import Path

import banned
import formatting
import house
import layers
import sizes
import text
from tree import load_tree

RULES = layers.RULES + sizes.RULES + banned.RULES + house.RULES + text.RULES + formatting.RULES


def findings_of(tree):
    return sorted({finding for rule in RULES for finding in rule(tree)})


def main(arguments):
    begin = time.monotonic()
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[2]
    tree = load_tree(root)
    findings = findings_of(tree)
    for finding in findings:
        print(finding)
    files = sum(1 for _ in tree.paths())
    skipped = "" if formatting.available() else f", formatting skipped ({formatting.PROGRAM} is not installed)"
    print(f"tidy: {files} files, {len(RULES)} rules, {len(findings)} findings, "
          f"{time.monotonic() - begin:.1f} s{skipped}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
