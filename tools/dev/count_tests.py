# SPDX-License-Identifier: Apache-2.0
"""What a run of ctest came to, case by case.

One ctest is a whole program, because to start a program costs more than most cases take. The program says how many
cases passed, and which failed. A program that failed without naming a case counts as one failure. So does one that
ended in the middle of its cases, though with status 0, and a status of ctest that no failure explains.

A test that lacks libtorch skips, and says that `make torch` builds it. Where that was run, such a skip is a failure.
"""

import re

# The end of a GoogleTest program, and of a module of Python's unittest.
_GTEST_BEGINS = "Running main() from "
_GTEST_PASSED = re.compile(r"^\[  PASSED  \] (\d+) tests?\.", re.M)
_GTEST_SKIPPED = re.compile(r"^\[  SKIPPED \] (\d+) tests?[.,]", re.M)
_GTEST_FAILED = re.compile(r"^\[  FAILED  \] (\S+?)(?:, where .*)? \(\d+ ms\)$", re.M)
_UNITTEST_RAN = re.compile(r"^Ran (\d+) tests? in ", re.M)
_UNITTEST_SKIPPED = re.compile(r"^(?:OK|FAILED) \(.*skipped=(\d+)", re.M)
_UNITTEST_FAILED = re.compile(r"^(?:FAIL|ERROR): (\S+) ", re.M)

# How a test says that it lacks what `make torch` builds.
_LACKS_TORCH = re.compile(r"(?:^|\s)make torch builds it\b")


def _number(pattern, text):
    found = pattern.findall(text)
    return int(found[-1]) if found else 0


def _cases(output):
    """(passed, skipped, names of failed) of one program's output; None if it is neither framework's."""
    if "[==========]" in output or _GTEST_FAILED.search(output):
        return _number(_GTEST_PASSED, output), _number(_GTEST_SKIPPED, output), _GTEST_FAILED.findall(output)
    if _UNITTEST_RAN.search(output):
        failed = _UNITTEST_FAILED.findall(output)
        skipped = _number(_UNITTEST_SKIPPED, output)
        return max(0, _number(_UNITTEST_RAN, output) - skipped - len(failed)), skipped, failed
    return None


def _held(test):
    """Whether a program passed or said itself that it skips. One that could not be started is `notrun`, too."""
    if test.get("status") == "run":
        output = test.findtext("system-out") or ""
        return _GTEST_BEGINS not in output or _GTEST_PASSED.search(output) is not None
    skipped = test.find("skipped")
    return skipped is not None and skipped.get("message", "").startswith("SKIP_RETURN_CODE")


def count(tests, status, has_torch=False):
    """(passed, failures, skipped): a number, names, and pairs of a program and its number.

    `tests` are the elements `testcase` of what `ctest --output-junit` wrote. `has_torch`: no test may lack libtorch.
    """
    passed, failures, skipped = 0, [], []
    for test in tests:
        name, held, output = test.get("name"), _held(test), test.findtext("system-out") or ""
        cases = _cases(output)
        if has_torch and _LACKS_TORCH.search(output):
            failures.append(f"{name}: lacks torch, which is here")
        if test.get("status") == "notrun" and held:
            skipped.append((name, 1))
        elif cases is None:
            passed += held
        else:
            passed += cases[0]
            if cases[1]:
                skipped.append((name, cases[1]))
        if not held:
            failures += [f"{name}: {case}" for case in cases[2]] if cases and cases[2] else [name]
    if not len(tests):
        failures.append(f"ctest ended with status {status} and ran nothing")
    elif status != 0 and not failures:
        failures.append(f"ctest ended with status {status}")
    return passed, failures, skipped


def lines(tests, status, has_torch=False):
    """For tools/dev/run-tests: "PASSED FAILED", a line for each failure, a line "skipped: NAME: N" for each program."""
    passed, failures, skipped = count(tests, status, has_torch)
    said = [f"{passed} {len(failures)}", *failures, *(f"skipped: {name}: {number}" for name, number in skipped)]
    return "".join(f"{line}\n" for line in said)
