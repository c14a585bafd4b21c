#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_ctest.py FOLDER RESULT [ARGUMENT...]: runs ctest with the arguments in a build folder, and counts cases.

Leaves out the tests that passed before and that read nothing else now (passed_before.py), unless the environment has
ALL=1. RESULT is a file for tools/dev/run-tests: how many cases passed and failed, the failures, what was skipped.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import count_tests
import passed_before

# What ctest shall write into its report: all that a program says.
_WHOLE = ["--test-output-size-passed", "10000000", "--test-output-size-failed", "10000000"]


def _finds_none(command):
    listed = subprocess.run([*command, "-N"], capture_output=True, text=True, check=False)
    return "\nTotal Tests: 0\n" in listed.stdout


def _run(command):
    """The status of a ctest, which ends if this program is told to."""
    with subprocess.Popen(command, stderr=subprocess.STDOUT) as ctest:
        signal.signal(signal.SIGTERM, lambda *_: ctest.terminate())
        return ctest.wait()


def _report(path):
    try:
        return ElementTree.parse(path).getroot().findall("testcase")
    except (OSError, ElementTree.ParseError):
        return []


def _has_torch(folder):
    """Whether the tests belong to the release build, and `make torch` was run before."""
    build = Path(__file__).resolve().parents[2] / "build"
    return folder.is_relative_to(build / "release") and (build / "torch/requirements.txt").exists()


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: run_ctest.py FOLDER RESULT [ARGUMENT...]")
    folder, result, arguments = Path(sys.argv[1]).resolve(), Path(sys.argv[2]), sys.argv[3:]
    command = ["ctest", "--test-dir", str(folder), "--output-on-failure", *arguments]
    now, before = passed_before.plan(folder)
    if before and not os.environ.get("ALL"):
        print(f"{len(before)} programs passed before, and read nothing else now (ALL=1 runs them again)", flush=True)
        command += ["-E", f"^({'|'.join(before)})$"]
        if _finds_none(command):
            result.write_text("0 0\n")
            return
    xml = folder / "tests.xml"
    xml.unlink(missing_ok=True)
    status = _run([*command, "--no-tests=error", *_WHOLE, "--output-junit", str(xml)])
    tests = _report(xml)
    passed_before.keep(folder, now, tests)
    result.write_text(count_tests.lines(tests, status, _has_torch(folder)))


if __name__ == "__main__":
    main()
