# SPDX-License-Identifier: Apache-2.0
import unittest

import house
from tree import Tree

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"


def found(rule, files):
    return [str(finding) for finding in rule(Tree(files))]


class HouseTest(unittest.TestCase):
    # A folder with sources needs a README, one with a CMake list alone does not, data folders never.
    def test_readme_missing(self):
        self.assertEqual(found(house.check_readmes, {
            "src/a/README.md": "# a\n", "src/a/x.h": "", "src/CMakeLists.txt": "", "tests/corpus/b/1": ""}), [])
        self.assertIn("src/b/README.md:1: readme: missing", found(house.check_readmes, {"src/b/x.h": ""})[0])

    # A README has at most 40 lines and names only files that exist, from its folder, src/ or the root.
    def test_readme_content(self):
        clean = {"src/a/README.md": "`x.h`, `a/x.h`, `src/a/x.h`, `*_test.cc`, `model.json`\n" + "\n" * 39, "src/a/x.h": ""}
        self.assertEqual(found(house.check_readmes, clean), [])
        self.assertEqual(found(house.check_readmes, {"tests/b/README.md": "`x.h`\n", "src/a/README.md": "", "src/a/x.h": ""}), [])
        bad = found(house.check_readmes, {"src/a/README.md": "`y.h`, `b/CMakeLists.txt`\n" + "\n" * 40})
        self.assertEqual(len(bad), 3)
        self.assertIn("41 lines, at most 40", bad[0])

    # A source must stand in the nearest CMake list by its path from there; a longer name that ends alike is another.
    def test_cmake(self):
        lists = {"src/a/CMakeLists.txt": "gossamer_module(a SOURCES x.cc HEADERS sub/y.h)\n"}
        self.assertEqual(found(house.check_cmake, {**lists, "src/a/x.cc": "", "src/a/sub/y.h": ""}), [])
        self.assertEqual(found(house.check_cmake, {"apps/b/CMakeLists.txt": "x.cc", "apps/b/x.cc": "", "apps/b/y.h": ""}), [])
        self.assertEqual(len(found(house.check_cmake, {**lists, "src/a/y.h": "", "src/a/ax.cc": "", "src/a/x.c": ""})), 2)
        self.assertEqual(len(found(house.check_cmake, {"src/a/CMakeLists.txt": "ax.cc x.cc.in\n", "src/a/x.cc": ""})), 1)

    # The licence line stands first, or second below #!.
    def test_licence(self):
        self.assertEqual(found(house.check_licence, {
            "src/a.cc": SPDX, "tools/run": "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n", "README.md": "x\n",
            "tests/golden/old.cc": ""}), [])
        self.assertEqual(len(found(house.check_licence, {
            "src/a.cc": "int x;\n", "tools/run": "#!/bin/sh\n", "Makefile": "all:\n", "a/CMakeLists.txt": "",
            "b.py": "\n\n# SPDX-License-Identifier: Apache-2.0\n"})), 5)

    # A header has its guard and a first paragraph.
    def test_headers(self):
        self.assertEqual(found(house.check_headers, {"src/a.h": SPDX + "//\n// What it is for.\n#pragma once\n"}), [])
        self.assertEqual(len(found(house.check_headers, {"src/a.h": SPDX + "int x;\n"})), 2)
        self.assertIn("first paragraph", found(house.check_headers, {"src/a.h": SPDX + "#pragma once\n// Late.\n"})[0])

    # A test has its claim above it or as its first line.
    def test_claims(self):
        self.assertEqual(found(house.check_claims, {
            "src/a_test.cc": "// One is one.\nTEST(A, B) {\n}\nTEST_F(A, C) {\n  // Two is two.\n}\n",
            "src/b.cc": "TEST(A, B) {\n"}), [])
        self.assertEqual(len(found(house.check_claims, {
            "src/a_test.cc": "TEST(A, B) {\n  work();\n}\n\nTYPED_TEST(A, C) {\n  work();\n}\n"})), 2)

    # 512 KiB pass, one byte more does not.
    def test_blobs(self):
        self.assertEqual(found(house.check_blobs, {"a.bin": b"x" * house.BLOB_BYTES}), [])
        self.assertEqual(len(found(house.check_blobs, {"a.bin": b"x" * (house.BLOB_BYTES + 1)})), 1)

    # A file or folder named for nothing in particular is found; a word that only contains it is not.
    def test_names(self):
        self.assertEqual(found(house.check_names, {"src/commons/a.h": "", "src/a/utilisation.h": "", "docs/utils.md": ""}), [])
        self.assertEqual(len(found(house.check_names, {"src/utils/a.h": "", "src/a/string_util.h": "", "src/x_manager.cc": ""})), 3)

    # What only tests use is named test_* or *_test.*; a product file is not, though tests build it once more.
    def test_test_helpers(self):
        lists = {"src/a/CMakeLists.txt": "gossamer_module(a SOURCES x.cc\n  TESTS x_test.cc test_y.h)\n"
                                         "gossamer_test(z SOURCES z_test.cc x.cc DEPS a)  # alone\n"}
        clean = {**lists, "src/a/x.cc": "", "src/a/x_test.cc": "", "src/a/test_y.h": "", "src/a/z_test.cc": ""}
        self.assertEqual(found(house.check_test_helpers, clean), [])
        bad = found(house.check_test_helpers, {
            "src/a/CMakeLists.txt": "gossamer_module(a HEADERS test_x.h TESTS y.h)\n", "src/a/test_x.h": "", "src/a/y.h": ""})
        self.assertEqual(len(bad), 2)
        self.assertIn("src/a/test_x.h:1: test-helper: a product file", bad[0])
        self.assertIn("src/a/y.h:1: test-helper: only tests use it; name it test_y.h", bad[1])


if __name__ == "__main__":
    unittest.main()
