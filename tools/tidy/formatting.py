# SPDX-License-Identifier: Apache-2.0
"""Formatting by the pinned clang-format, where it is installed."""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

from tree import CODE, Finding, is_data

PROGRAM = "clang-format-19"
_WARNING = re.compile(r"^(.*?):(\d+):\d+: (?:error|warning): code should be clang-formatted", re.MULTILINE)


def available():
    return shutil.which(PROGRAM) is not None


def check_format(tree):
    """Needs a tree on a disk; reports the first line of each file that differs."""
    if tree.root is None or not available():
        return
    paths = [path for path in tree.paths(*CODE) if not is_data(path)]
    jobs = os.cpu_count() or 1
    chunks = [paths[i::jobs] for i in range(jobs) if paths[i::jobs]]
    with ThreadPoolExecutor(jobs) as pool:
        outputs = list(pool.map(lambda chunk: _run(tree.root, chunk), chunks))
    seen = set()
    for path, line in (match for output in outputs for match in _WARNING.findall(output)):
        if path not in seen:
            seen.add(path)
            yield Finding(path, int(line), "format", f"run {PROGRAM} -i {path}")


def _run(root, paths):
    return subprocess.run([PROGRAM, "--dry-run", *paths], cwd=root, capture_output=True, text=True,
                          check=False).stderr


RULES = (check_format,)
