# SPDX-License-Identifier: Apache-2.0
import unittest
from xml.etree import ElementTree

import count_tests


def program(name, output, status="run", why=None):
    test = ElementTree.Element("testcase", name=name, status=status)
    if why:
        ElementTree.SubElement(test, "skipped", message=why)
    ElementTree.SubElement(test, "system-out").text = output
    return test


GOOD = program("base_test", "[==========] 39 tests from 5 suites ran. (8 ms total)\n[  PASSED  ] 39 tests.\n")
SOME = program(
    "link_test",
    "link_test.cc:4: Failure\n[  FAILED  ] Links.Carry (0 ms)\n"
    "[  FAILED  ] All/P.F/1, where GetParam() = 8-byte object <01-00> (2 ms)\n"
    "[==========] 5 tests from 2 test suites ran. (0 ms total)\n[  PASSED  ] 2 tests.\n[  SKIPPED ] 1 test.\n",
    "fail",
)


class Count(unittest.TestCase):
    # Claim: cases count, not programs, and failures are named by program and case.
    def test_cases_of_googletest(self):
        self.assertEqual(count_tests.count([GOOD, SOME], 8), (
            41, ["link_test: Links.Carry", "link_test: All/P.F/1"], [("link_test", 1)]
        ))

    # Claim: modules of Python's unittest count by cases, too.
    def test_cases_of_unittest(self):
        tests = [
            program("process.test_a", "Ran 12 tests in 3.1s\n\nOK (skipped=2)\n"),
            program(
                "process.test_b",
                "ERROR: test_x (test_b.B)\n---\nFAIL: test_y (test_b.B)\n---\nRan 5 tests in 1s\n\n"
                "FAILED (failures=1, errors=1)\n",
                "fail",
            ),
        ]
        self.assertEqual(count_tests.count(tests, 8), (
            13, ["process.test_b: test_x", "process.test_b: test_y"], [("process.test_a", 2)]
        ))

    # Claim: what is of neither framework is one case, and may skip.
    def test_other_programs(self):
        tests = [program("tidy", "0 findings\n"), program("lab", "", "notrun", "SKIP_RETURN_CODE=77")]
        self.assertEqual(count_tests.count(tests, 0), (1, [], [("lab", 1)]))

    # Claim: a program that crashes, leaks, hangs or cannot be started fails, whatever its cases say.
    def test_failures_without_a_case(self):
        for output in ("", "[==========] Running 3 tests\n", GOOD.findtext("system-out")):
            self.assertEqual(count_tests.count([program("a_test", output, "fail")], 8)[1], ["a_test"])
        gone = program("b_test", "", "notrun", "Unable to find executable")
        self.assertEqual(count_tests.count([GOOD, gone], 0)[1], ["b_test"])

    # Claim: a program that ends in the middle of its cases fails, though it ends with status 0.
    def test_an_early_end(self):
        begun = "Running main() from ./googletest/src/gtest_main.cc\n"
        self.assertEqual(count_tests.count([program("a_test", begun)], 0)[1], ["a_test"])
        whole = program("a_test", begun + GOOD.findtext("system-out"))
        self.assertEqual(count_tests.count([whole], 0), (39, [], []))

    # Claim: no program at all, or a status that nothing explains, is a failure.
    def test_nothing_ran(self):
        self.assertEqual(len(count_tests.count([], 0)[1]), 1)
        self.assertEqual(len(count_tests.count([GOOD], 7)[1]), 1)

    # Claim: without libtorch its tests skip, by name; where libtorch is, such a skip is a failure, and no other is.
    def test_tests_that_lack_torch(self):
        tests = [
            program("process.test_lm", "test_x (test_lm.Life) ... skipped 'no gossamer_torch.so: make torch builds it'\n"
                    "Ran 3 tests in 1s\n\nOK (skipped=1)\n"),
            program("torch_module_test", "There is no libtorch: make torch builds it.\n", "notrun", "SKIP_RETURN_CODE=77"),
            program("lab", "needs root\n", "notrun", "SKIP_RETURN_CODE=77"),
        ]  # fmt: skip
        skipped = [("process.test_lm", 1), ("torch_module_test", 1), ("lab", 1)]
        self.assertEqual(count_tests.count(tests, 0), (2, [], skipped))
        passed, failures, skipped_too = count_tests.count(tests, 0, has_torch=True)
        self.assertEqual((passed, skipped_too), (2, skipped))
        self.assertEqual([failure.partition(":")[0] for failure in failures], ["process.test_lm", "torch_module_test"])


if __name__ == "__main__":
    unittest.main()
