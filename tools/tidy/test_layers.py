# SPDX-License-Identifier: Apache-2.0
import unittest

import layers
from tree import Tree

TABLE = """# src: layers
| layer | may include | sentence |
|---|---|---|
| base | | the vocabulary |
| host/api | base | the outside world |
| learn | base | learning |
| apps/cli | learn, base | the binary |
"""


def tree(**changes):
    files = {
        "src/README.md": TABLE,
        "src/base/result.h": "",
        "src/host/api/disk.h": '#include "base/result.h"\n',
        "src/learn/model.h": '#include <vector>\n#include "base/result.h"\n',
        "apps/cli/main.cc": '#include "learn/model.h"\n',
    }
    files.update(changes.pop("files", {}))
    return Tree(files)


def messages(rule, checked):
    return [str(finding) for finding in rule(checked)]


class LayersTest(unittest.TestCase):
    # A tree that follows its table has no findings.
    def test_clean_tree(self):
        self.assertEqual(messages(layers.check_table, tree()), [])
        self.assertEqual(messages(layers.check_includes, tree()), [])

    # An include upwards is reported with its line and with what is allowed.
    def test_forbidden_include(self):
        found = messages(layers.check_includes, tree(files={
            "src/base/result.h": '// text\n#include "learn/model.h"\n',
            "src/learn/model.h": '#include "host/api/disk.h"\n'}))
        self.assertEqual(len(found), 2)
        self.assertIn("src/base/result.h:2: layers: base may not include learn (allowed: nothing)", found[0])
        self.assertIn("learn may not include host/api (allowed: base)", found[1])

    # A commented-out include is no include.
    def test_comment(self):
        self.assertEqual(messages(layers.check_includes, tree(files={
            "src/base/result.h": '// #include "learn/model.h"\n/*\n#include "learn/model.h"\n*/\n'})), [])

    # Tests include what they like, but only what exists.
    def test_tests_are_free(self):
        found = messages(layers.check_includes, tree(files={
            "src/base/result_test.cc": '#include "learn/model.h"\n',
            "tests/process/kill_test.cc": '#include "apps/cli/main.cc"\n#include "gone/away.h"\n'}))
        self.assertEqual(len(found), 1)
        self.assertIn('kill_test.cc:2: layers: no file "gone/away.h"', found[0])

    # What a CMake list names as a test is one, whatever its name; what it names elsewhere is not.
    def test_listed_tests(self):
        files = {"src/learn/CMakeLists.txt": "gossamer_module(learn\n  SOURCES model.cc\n  TESTS a_test.cc fake.h\n"
                                             "    fake.cc\n  TEST_DEPS x)\ngossamer_test(more SOURCES b.cc DEPS y)\n"}
        for name in ("fake.h", "fake.cc", "b.cc", "model.cc", "x"):
            files["src/learn/" + name] = ""
        checked = tree(files=files)
        self.assertEqual([checked.is_test("src/learn/" + name) for name in ("fake.h", "fake.cc", "b.cc", "model.cc", "x")],
                         [True, True, True, False, False])

    # The longest row owns a file; one row's folder may lie in another's.
    def test_nested_layers(self):
        table = layers.read_table(Tree({"src/README.md": TABLE + "| host | | the group |\n"}))
        self.assertEqual(layers.layer_of("src/host/api/disk.h", table), "host/api")
        self.assertEqual(layers.layer_of("src/host/door.h", table), "host")
        self.assertIsNone(layers.layer_of("src/hostile/door.h", table))

    # Every row has a folder, every folder a row, and a row names only rows.
    def test_table_and_folders_agree(self):
        found = messages(layers.check_table, tree(files={
            "src/README.md": TABLE + "| net | base, wire | the network |\n",
            "src/kernels/dot.h": ""}))
        self.assertEqual(len(found), 3)
        self.assertIn("row 'net' has no folder src/net/", found[0])
        self.assertIn("row 'net' may include 'wire', which has no row", found[1])
        self.assertIn("folder src/kernels/ has no row", found[2])

    # Without a table nothing is allowed silently.
    def test_missing_table(self):
        self.assertIn("no layer table", messages(layers.check_table, Tree({"src/README.md": "# src\n"}))[0])


if __name__ == "__main__":
    unittest.main()
