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

    # A product file that a test builds once more stays one.
    def test_product_in_a_test(self):
        checked = tree(files={"src/learn/x.cc": "", "src/learn/CMakeLists.txt":
                              "gossamer_module(learn SOURCES x.cc)\ngossamer_test(more SOURCES b.cc x.cc DEPS y)\n"})
        self.assertFalse(checked.is_test("src/learn/x.cc"))

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


class CirclesTest(unittest.TestCase):
    # Layers above each other are no circle; of a graph with one the way around is told.
    def test_graphs(self):
        self.assertIsNone(layers.circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}))
        self.assertEqual(layers.circle({"a": {"b"}, "b": {"c", "d"}, "d": {"b"}}), ["b", "d", "b"])
        self.assertEqual(layers.circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}), ["a", "b", "c", "a"])

    # Neither table nor includes of the clean tree have a circle; a test that includes upwards makes none.
    def test_clean(self):
        self.assertEqual(messages(layers.check_circles, tree(files={
            "src/base/result_test.cc": '#include "learn/model.h"\n'})), [])

    # A circle of the table is found at its row, a circle of includes at the include that begins it.
    def test_found(self):
        found = messages(layers.check_circles, tree(files={
            "src/README.md": TABLE.replace("| base | |", "| base | host/api |"),
            "src/base/result.h": '\n#include "learn/model.h"\n'}))
        self.assertEqual(len(found), 2)
        self.assertIn("src/README.md:4: circle: layers may include each other in a circle: base -> host/api -> base",
                      found[0])
        self.assertIn("src/learn/model.h:2: circle: layers include each other in a circle: learn -> base -> learn",
                      found[1])


class EnginesTest(unittest.TestCase):
    FILES = {"src/engines/sparse/a.h": "", "src/engines/check/b.h": "", "src/engines/run/c.h": ""}

    def found(self, path, header):
        files = {**self.FILES, path: self.FILES.get(path, "") + f'#include "{header}"\n'}
        return messages(layers.check_engines, tree(files=files))

    # An engine knows itself and what all share; so do its simulation and tests; commands know all.
    def test_clean(self):
        for path, header in (
                ("src/engines/sparse/fleet/x.h", "engines/sparse/a.h"), ("src/node/x.h", "engines/run/c.h"),
                ("src/engines/check/b.h", "engines/run/c.h"), ("src/commands/x.h", "engines/check/b.h"),
                ("src/simulation/sparse/x.h", "engines/sparse/a.h"), ("src/node/x_test.cc", "engines/check/b.h")):
            self.assertEqual(self.found(path, header), [], path)

    # Processes, the program, the other engine and what engines share know none.
    def test_found(self):
        for path, header in (
                ("src/engines/check/b.h", "engines/sparse/a.h"), ("src/node/x.h", "engines/sparse/a.h"),
                ("apps/cli/x.cc", "engines/check/b.h"), ("src/simulation/x.h", "engines/check/b.h"),
                ("src/simulation/sparse/x.h", "engines/check/b.h"), ("src/engines/run/c.h", "engines/sparse/a.h")):
            self.assertEqual(len(self.found(path, header)), 1, path)
        self.assertIn('src/node/x.h:1: engines: "engines/sparse/a.h": only src/commands/, src/engines/sparse/ and',
                      self.found("src/node/x.h", "engines/sparse/a.h")[0])

    # The toy engine includes what every engine shares, and itself.
    def test_toy(self):
        shared = ("src/engines/run/c.h", "src/commands/engines.h", "src/commands/engine/training.h", "src/commands/run/x.h",
                  "src/host/api/disk.h", "apps/cli/run_main.h", "tests/toy/toy.h")
        own = ("src/engines/sparse/a.h", "src/engines/check/b.h", "src/commands/train/x.h", "src/commands/train_fleet/x.h",
               "src/commands/lead.h", "src/learn/model.h", "src/simulation/fleet.h")
        for header in shared + own:
            found = messages(layers.check_toy, tree(files={
                header: "", "tests/toy/main.cc": f'#include "{header.removeprefix("src/")}"\n'}))
            self.assertEqual(len(found), header in own, header)
        self.assertIn('tests/toy/main.cc:1: engines: "simulation/fleet.h": tests/toy/ includes shared rooms alone', found[0])
        self.assertEqual(messages(layers.check_toy, tree(files={
            "src/engines/sparse/a.h": "", "tests/other/main.cc": '#include "engines/sparse/a.h"\n'})), [])

    # Code stands in the namespace of its folder, the longest one that is known; forward declarations of others are free.
    def test_namespaces(self):
        found = messages(layers.check_namespaces, tree(files={
            "src/base/result.h": "namespace gossamer {\n}\nnamespace gossamer::result_detail {\n}\n",
            "src/learn/model.h": "", "apps/cli/main.cc": "", "src/host/api/disk.h": "// namespace gossamer::x {\n",
            "src/cluster/placement/a.h": "namespace gossamer::placement::testing {\n}\n",
            "src/run/b.cc": "namespace gossamer::node { class C; }\nnamespace gossamer::run {\n}\n",
            "src/run/c.cc": "\nnamespace gossamer::node {\n}\n"}))
        self.assertEqual([line.split(":")[0:3] for line in found],
                         [["src/learn/model.h", "1", " namespace"], ["src/run/c.cc", "2", " namespace"]])
        self.assertIn("stands in gossamer::run", found[1])


if __name__ == "__main__":
    unittest.main()
