# SPDX-License-Identifier: Apache-2.0
import unittest

import classes
from tree import Tree

HEADER = """namespace gossamer::net {
class Links final : public Base<int> {
 public:
  struct Options {
    int a = 1;
    int b{2};
  };
  explicit Links(Options options) : options_(options), c_{1} {
    work();
  }
  Links(const Links&) = delete;
  bool operator==(const Links&) const = default;
  [[nodiscard]] int size() const { return 3; }
  void open(int x = f(1), std::map<int, int> y = {});
  virtual void close() = 0;
  using Map = std::map<int, std::vector<int>>;
  static constexpr int kMost = 7;
  friend class Other;
  enum class Phase { kOne, kTwo };
  struct Peer;

 private:
  const Options options_;
  Map map_ = {};
  std::function<void(int, int)> use_;
  int c_{1}, d_ = g(1, 2);
  Base& base_;
  Phase phase_ = Phase::kOne;
  std::array<int, 3> e_{1, 2, 3};
};
}  // namespace gossamer::net
"""


def found(files):
    return {one.name: one for one in classes.classes(Tree(files))}


class CountsTest(unittest.TestCase):
    # Data members are counted one by one; functions, types, names and constants of the class are none.
    def test_members(self):
        one = found({"src/net/links.h": HEADER})
        self.assertEqual((one["net::Links"].members, one["net::Links"].lines), (8, 29))
        self.assertEqual((one["net::Links::Options"].members, one["net::Links::Options"].lines), (2, 4))

    # The bodies in all files of the folder count, those of nested types too; other folders and tests do not.
    def test_bodies(self):
        body = "namespace gossamer::net {\nvoid Links::open(int x) {\n  y();\n}\n"
        peer = body.replace("Links::open", "Links::Peer::go") + "struct Links::Peer {\n  int a;\n};\n}\n"
        files = {"src/net/links.h": HEADER, "src/net/links.cc": body + "}\n", "src/net/opening.cc": body + "}\n",
                 "src/net/peer.cc": peer,
                 "src/net/links_test.cc": body + "}\n", "src/host/links.cc": body + "}\n"}
        one = found(files)
        self.assertEqual(one["net::Links"].lines, 29 + 3 + 3 + 3 + 3)
        self.assertEqual((one["net::Links::Peer"].lines, one["net::Links::Peer"].plain), (6, False))

    # A class that only one file sees owns the bodies in that file; a namespace's name parts equal names.
    def test_same_names(self):
        local = ("namespace gossamer::{} {{\nnamespace {{\nclass A {{\n  int x_;\n  void f();\n}};\n"
                 "void A::f() {{\n}}\n}}\n}}\n")
        one = found({"src/net/b.cc": local.format("net"), "src/net/c.cc": local.format("host"),
                     "src/net/a.h": "namespace gossamer::net {\nclass A {\n};\n}\n"})
        self.assertEqual([(each.path, each.lines) for each in classes.classes(Tree({
            "src/net/b.cc": local.format("net"), "src/net/c.cc": local.format("net")}))],
            [("src/net/b.cc", 6), ("src/net/c.cc", 6)])
        self.assertEqual(one["host::A"].lines, 6)


class PlainTest(unittest.TestCase):
    def is_plain(self, text, more=""):
        return classes.classes(Tree({"src/a/a.h": text, "src/a/a.cc": more}))[0].plain

    # A struct whose functions are short and stand in it is plain.
    def test_plain(self):
        self.assertTrue(self.is_plain("struct A {\n  int x = 1;\n  int y() const { return x; }\n  A() = default;\n};\n"))

    # A class is not, nor a struct with a private part, a long function, or one defined elsewhere.
    def test_not_plain(self):
        self.assertFalse(self.is_plain("class A {\n  int x;\n};\n"))
        self.assertFalse(self.is_plain("struct A {\n private:\n  int x;\n};\n"))
        self.assertFalse(self.is_plain("struct A {\n  int y() {\n    a();\n    return b();\n  }\n};\n"))
        self.assertFalse(self.is_plain("struct A {\n  int y();\n};\n", "int A::y() {\n}\n"))


class LimitsTest(unittest.TestCase):
    def messages(self, lines, members, word="class"):
        text = (f"namespace gossamer::a {{\n{word} B {{\n" + "".join(f"  int m{i}_;\n" for i in range(members)) +
                "\n" * (lines - members - 2) + "};\n}\n")
        return [str(finding) for finding in classes.check_classes(Tree({"src/a/b.h": text}))]

    # 600 lines and 25 data members pass, one more of either fails with both numbers; plain values are free.
    def test_limits(self):
        self.assertEqual(self.messages(600, 25), [])
        self.assertIn("src/a/b.h:2: class-size: a::B has 601 lines and 25 data members", self.messages(601, 25)[0])
        self.assertIn("600 lines and 26 data members", self.messages(600, 26)[0])
        self.assertEqual(self.messages(700, 30, "struct"), [])

    # The largest come first.
    def test_largest(self):
        lines = classes.largest(Tree({"src/a/a.h": "class A {\n};\nclass B {\n  int x_;\n};\n"}), 1)
        self.assertEqual(lines, ["    3 lines   1 members  B  src/a/a.h:3"])


if __name__ == "__main__":
    unittest.main()
