# SPDX-License-Identifier: Apache-2.0
import unittest

import own_names
from tree import Tree

ONE = """namespace gossamer::net {
namespace {
constexpr Duration kLong{250};
struct Peer {
  static constexpr int kMost = 7;
};
int size_of(const Peer& peer) {
  const int same = 1;
  return same;
}
}  // namespace
constexpr int kShared = 3;
}  // namespace gossamer::net
"""


def found(files):
    return [(one.path, one.line, one.message.split()[0]) for one in own_names.check_own_names(Tree(files))]


class OwnNamesTest(unittest.TestCase):
    # A constant, a type and a function of the same parameters are told; what stands inside of them is not.
    def test_each_kind(self):
        two = ONE.replace("gossamer::net {\n", "gossamer::net {\n\n", 1)
        self.assertEqual(found({"src/net/one.cc": ONE, "src/net/two.cc": two}),
                         [("src/net/two.cc", 4, "kLong"), ("src/net/two.cc", 5, "Peer"),
                          ("src/net/two.cc", 8, "size_of()")])

    # A function with other parameters, another folder, a test, and sources that are compiled alone may share names.
    def test_what_may_share(self):
        other = "namespace {\nint size_of(int x) {\n  return x;\n}\n}\n"
        self.assertEqual(found({"src/net/one.cc": ONE, "src/net/two.cc": other, "src/host/one.cc": ONE,
                                "src/net/one_test.cc": ONE}), [])
        alone = {"src/net/CMakeLists.txt": "gossamer_module(net EACH_ALONE)"}
        self.assertEqual(found({"src/net/one.cc": ONE, "src/net/two.cc": ONE, **alone}), [])

    # Constants of arrays, and those whose type has arguments, are read too.
    def test_constants(self):
        for line in ("constexpr int kLong[] = {1};", "const std::map<int, Pair<int>> kLong = {};",
                     "inline constexpr double kLong = 1;", "const Made kLong;"):
            other = f"namespace {{\n{line}\n}}\n"
            self.assertEqual(found({"src/net/one.cc": ONE, "src/net/two.cc": other}), [("src/net/two.cc", 2, "kLong")],
                             line)


if __name__ == "__main__":
    unittest.main()
