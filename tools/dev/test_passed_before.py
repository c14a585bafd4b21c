# SPDX-License-Identifier: Apache-2.0
import os
import tempfile
import unittest
from pathlib import Path
from xml.etree import ElementTree

import passed_before


def ctest(name, *command, environment=(), label="memory"):
    properties = [{"name": "ENVIRONMENT", "value": list(environment)}, {"name": "LABELS", "value": [label]}]
    return {"name": name, "command": list(command), "properties": properties}


def report(name, output, status="run"):
    test = ElementTree.Element("testcase", name=name, status=status)
    ElementTree.SubElement(test, "system-out").text = output
    return test


PASSED = "[==========] 3 tests from 1 test suite ran. (8 ms total)\n[  PASSED  ] 3 tests.\n"


class Keys(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        passed_before._digest.cache_clear()

    def file(self, name, text):
        path = Path(self.folder.name, name)
        path.write_text(text)
        passed_before._digest.cache_clear()
        return str(path)

    def key(self, *arguments, common="tree", **more):
        return passed_before.keys([ctest("a_test", *arguments, **more)], common)["a_test"]

    # Claim: a key changes with the program, with a file that an argument or a variable names, and with the tree.
    def test_what_a_test_reads(self):
        program = self.file("program", "1")
        key = self.key(program, "--brief")
        self.assertEqual(key, self.key(program, "--brief"))
        self.assertNotEqual(key, self.key(program))
        self.assertNotEqual(key, self.key(program, "--brief", common="other tree"))
        self.assertNotEqual(key, self.key(program, "--brief", environment=["A=1"]))
        self.file("program", "2")
        self.assertNotEqual(key, self.key(program, "--brief"))
        named = [f"TOY={self.file('toy', '1')}"]
        before = self.key(program, environment=named)
        self.file("toy", "2")
        self.assertNotEqual(before, self.key(program, environment=named))

    # Claim: checks of the tree have no key, because they read sources; nor has a program that is not built.
    def test_what_always_runs(self):
        self.assertEqual(passed_before.keys([ctest("tidy", "/bin/true", label="house"), ctest("gone")], ""), {})

    # Claim: the tree is all of its files but C++ sources, new ones too.
    def test_tree(self):
        root = Path(self.folder.name)
        self.assertIsNone(passed_before._tree(root))
        os.system(f"git -C {root} init -q")
        self.file("page.md", "1")
        before = passed_before._tree(root)
        self.file("source.cc", "1")
        self.assertEqual(passed_before._tree(root), before)
        self.file("page.md", "2")
        self.assertNotEqual(passed_before._tree(root), before)


class After(unittest.TestCase):
    # Claim: only what passed whole is left out next time. A test that fails runs again, even with the key of before.
    def test_what_is_kept(self):
        now = {"a": "1", "b": "2", "c": "3", "d": "4"}
        tests = [
            report("a", PASSED),
            report("b", PASSED, "fail"),
            report("c", PASSED + "[  SKIPPED ] 1 test.\n"),
            report("house", PASSED),
        ]
        before = {"b": "2", "c": "3", "d": "old", "e": "5"}
        self.assertEqual(passed_before.after(before, now, tests), {"a": "1", "d": "old", "e": "5"})


if __name__ == "__main__":
    unittest.main()
