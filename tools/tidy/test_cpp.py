# SPDX-License-Identifier: Apache-2.0
import unittest

import cpp
from tree import strip_cpp


def shape_of(code):
    return cpp.Shape(strip_cpp(code))


def found_in(code):
    shape = shape_of(code)
    return [(cpp.function_name(block), shape.first(block), shape.last(block)) for block in shape.functions()]


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

    # A name has its qualifiers, without template arguments, whatever the result's type and the attributes are.
    def test_qualified_names(self):
        code = ("template <class T>\nstd::function<void(int)> A<T>::Inner::make(int x) {\n}\n"
                "[[nodiscard]] decltype(auto) B::get() {\n}\nA::operator bool() const {\n}\n"
                "bool operator<(const std::vector<int>& a, int b) {\n}\nint C::operator()(int x) {\n}\n")
        self.assertEqual([name for name, _, _ in found_in(code)],
                         ["A::Inner::make", "B::get", "A::operator bool", "operator<", "C::operator()"])


class TypesTest(unittest.TestCase):
    # Classes and structs have their names, enums none; each knows the namespaces and types around it.
    def test_names_and_scopes(self):
        shape = shape_of("namespace a::b {\nnamespace {\nclass [[nodiscard]] C final : public D<int> {\n"
                         "  struct E {\n  };\n};\n}\nenum class F { kOne };\ntemplate <class T>\nstruct G<T*> {\n};\n"
                         "struct C::H {\n};\n}\n")
        found = [(cpp.type_name(block), cpp.scope_of(block), cpp.is_struct(block)) for block in shape.types()]
        space = ["a", "b"]
        self.assertEqual(found, [("E", (space, ["C"]), True), ("C", (space, []), False), ("", (space, []), False),
                                 ("G", (space, []), True), ("C::H", (space, []), True)])

    # A function whose result is a struct is a function.
    def test_struct_as_result(self):
        self.assertEqual(found_in("struct A f(int x) {\n}\n"), [("f", 1, 2)])


if __name__ == "__main__":
    unittest.main()
