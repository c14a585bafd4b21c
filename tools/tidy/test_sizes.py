# SPDX-License-Identifier: Apache-2.0
import unittest

import sizes
from tree import Tree


def body(lines):
    return "  work();\n" * lines


class LimitsTest(unittest.TestCase):
    # 70 lines pass, 71 fail, and the message says what to do.
    def test_function_limit(self):
        ok = Tree({"src/a.cc": "void f() {\n" + body(68) + "}\n"})
        bad = Tree({"src/a.cc": "void f() {\n" + body(69) + "}\n"})
        self.assertEqual(list(sizes.check_functions(ok)), [])
        self.assertIn("f has 71 lines, at most 70", str(next(iter(sizes.check_functions(bad)))))

    # The same limit holds for Python; a file that Python cannot read is a finding.
    def test_python(self):
        ok = Tree({"tools/a.py": "def f():\n" + "    g()\n" * 69})
        bad = Tree({"tools/a.py": "def f():\n" + "    g()\n" * 70, "tools/b.py": "def f(:\n"})
        self.assertEqual(list(sizes.check_functions(ok)), [])
        self.assertEqual(len(list(sizes.check_functions(bad))), 2)

    # 500 lines pass, 501 fail; data of tests is free.
    def test_file_limit(self):
        ok = Tree({"src/a.cc": "\n" * 500, "tests/golden/a.cc": "\n" * 900})
        bad = Tree({"src/a.h": "\n" * 501})
        self.assertEqual(list(sizes.check_files(ok)), [])
        self.assertIn("501 lines, at most 500", str(next(iter(sizes.check_files(bad)))))

    # 40 product files in a folder pass, 41 fail; tests, what only tests use and other folders do not count.
    def test_folder_limit(self):
        files = {f"src/a/f{i}.cc": "" for i in range(40)} | {"src/a/f_test.cc": "", "src/a/sub/f.h": ""}
        files |= {"src/a/test_f.h": "", "src/a/CMakeLists.txt": "gossamer_module(a TESTS f_test.cc test_f.h)\n"}
        self.assertEqual(list(sizes.check_folders(Tree(files))), [])
        self.assertIn("src/a:1: folder-size: 41 product files", str(next(iter(sizes.check_folders(Tree({
            **files, "src/a/g.h": ""}))))))


if __name__ == "__main__":
    unittest.main()
