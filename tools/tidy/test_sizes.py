# SPDX-License-Identifier: Apache-2.0
import unittest

import sizes
from tree import Tree, strip_cpp


def found_in(code):
    return [(f.name, f.first, f.last) for f in sizes.functions(strip_cpp(code))]


def body(lines):
    return "  work();\n" * lines


class FunctionsTest(unittest.TestCase):
    # Free functions, in and out of namespaces, are found with the line of their first word.
    def test_free_functions(self):
        self.assertEqual(found_in("namespace a {\n\nint f(int x) {\n  return x;\n}\n}  // namespace a\n"
                                  "void g() {\n}\n"), [("f", 3, 5), ("g", 7, 8)])

    # A head over several lines counts from its first line; template and attribute belong to it.
    def test_long_heads(self):
        code = "template <class T, class U = std::vector<T>>\n[[nodiscard]] std::map<T, U>\nmake(T a,\n     U b) {\n}\n"
        self.assertEqual(found_in(code), [("make", 1, 5)])

    # Member functions inside a class are found one by one; the class itself is not a function.
    def test_classes(self):
        code = ("class [[nodiscard]] A final : public B<int> {\n public:\n  A() : x_(1), y_{2} {\n    go();\n  }\n"
                "  int x() const { return x_; }\n\n private:\n  int x_ = 0;\n  int y_{3};\n};\n")
        self.assertEqual(found_in(code), [("A", 3, 5), ("x", 6, 6)])

    # Tables, brace initialisers, enums and structs are not functions, whatever calls they contain.
    def test_values(self):
        code = ("constexpr Key kKeys[] = {\n    {.name = f(1)},\n    {.name = g(2)},\n};\n"
                "const auto kTable = make_table({\n    {1, 2},\n});\nenum class E { kA, kB };\n"
                "struct P { int x = 0; std::vector<int> v = {1, 2}; };\nvoid f(P p = {}) {\n}\n")
        self.assertEqual(found_in(code), [("f", 10, 11)])

    # Lambdas and local structs count as part of the function around them.
    def test_lambdas(self):
        code = "void f() {\n  struct S {\n    void g() {\n    }\n  };\n  run([&](int w) {\n    h(w);\n  });\n}\n"
        self.assertEqual(found_in(code), [("f", 1, 9)])

    # Braces in literals, comments and macros do not count.
    def test_literals(self):
        code = ("#define OPEN() \\\n  {\nvoid f() {\n  g(\"}\", '}', R\"x(}\")x\", 1'000'000);  // }\n  /* } */\n}\n")
        self.assertEqual(found_in(code), [("f", 3, 6)])

    # A test case carries its names; operators and destructors are functions.
    def test_names(self):
        code = ("TEST(Rng, IsUniform) {\n}\nbool operator==(A a, A b) {\n}\nA::~A() {\n}\n"
                "A& A::operator=(A&& other) noexcept {\n}\n")
        self.assertEqual([name for name, _, _ in found_in(code)],
                         ["TEST(Rng, IsUniform)", "operator==", "A::~A", "A::operator="])

    # A namespace-level lambda is a function of its own.
    def test_lambda_constant(self):
        self.assertEqual(len(found_in("constexpr auto kSquare = [](int x) {\n  return x * x;\n};\n")), 1)


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


if __name__ == "__main__":
    unittest.main()
