# SPDX-License-Identifier: Apache-2.0
"""Sizes: a file at most 500 lines, a function at most 70.

C++ functions are found by matching braces on code formatted by clang-format: a '{' at namespace or class level
whose head has parameters opens a function. Lambdas and local classes count as part of their function.
"""

import ast
import re
from dataclasses import dataclass

from tree import CODE, Finding, is_data

FILE_LINES = 500
FUNCTION_LINES = 70


@dataclass(frozen=True)
class Function:
    name: str
    first: int  # line of the head's first word
    last: int   # line of the closing brace

    @property
    def lines(self):
        return self.last - self.first + 1


def check_files(tree):
    for path in tree.paths(*CODE, ".py", ".sh", ".cmake", "CMakeLists.txt"):
        count = len(tree.lines(path))
        if count > FILE_LINES and not is_data(path):
            yield Finding(path, FILE_LINES + 1, "file-size",
                          f"{count} lines, at most {FILE_LINES}; split it where the idea changes")


def check_functions(tree):
    for path in tree.paths(*CODE, ".py"):
        if is_data(path):
            continue
        found = python_functions(tree.text(path)) if path.endswith(".py") else functions(tree.code(path))
        for function in found:
            if function.lines > FUNCTION_LINES:
                yield Finding(path, function.first, "function-size",
                              f"{function.name} has {function.lines} lines, at most {FUNCTION_LINES}; "
                              "move a step with a name of its own out")


def python_functions(text):
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        return [Function(f"unreadable Python ({error.msg})", error.lineno or 1, (error.lineno or 1) + FUNCTION_LINES)]
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [Function(node.name, node.lineno, node.end_lineno) for node in ast.walk(module) if isinstance(node, kinds)]


def functions(code):
    """The functions of stripped C++ (tree.strip_cpp), in order of their ends."""
    return _Scanner(_without_preprocessor(code)).scan()


def _without_preprocessor(code):
    lines = code.split("\n")
    continued = False
    for i, line in enumerate(lines):
        directive = continued or line.lstrip().startswith("#")
        continued = directive and line.endswith("\\")
        if directive:
            lines[i] = ""
    return "\n".join(lines)


_ATTRIBUTES = re.compile(r"\[\[.*?\]\]|\balignas\s*\([^)]*\)", re.DOTALL)
_TYPE = re.compile(r"^(?:typedef |static |constexpr |inline |extern )*(?:class|struct|union|enum)\b")


def _kind(head, in_parentheses):
    """What a '{' after `head` opens: namespace, type, function or value."""
    head = _ATTRIBUTES.sub(" ", head)
    head = _without_template(head.strip())
    if re.search(r"\bnamespace\b", head) or re.match(r'extern\s*"\s*"\s*$', head):
        return "namespace"
    if in_parentheses:
        return "value"
    if _TYPE.match(head) and not re.search(r"\)\s*(?:const|noexcept|override|final|\s)*$", head):
        return "type"
    if "(" not in head:
        return "value"
    assigned = re.search(r"(?<![=!<>])=(?!=)", re.sub(r"\(.*\)|operator\s*\S?=+", "", head, flags=re.DOTALL))
    lambda_head = re.search(r"\[[^\]]*\]\s*(?:\(|$)", head)
    return "value" if assigned and not lambda_head else "function"


def _without_template(head):
    while head.startswith("template"):
        depth = 0
        for i, char in enumerate(head):
            depth += (char == "<") - (char == ">" and head[i - 1] != "-")
            if char == ">" and depth == 0:
                head = head[i + 1:].strip()
                break
        else:
            return ""
    return head


class _Scanner:
    def __init__(self, code):
        self.code = code
        self.stack = []  # of (kind, head, first line)
        self.found = []
        self.restart(0)

    def restart(self, position):
        """A new head begins behind `position`."""
        self.head_begin = position
        self.parentheses = 0

    def scan(self):
        line = 1
        for position, char in enumerate(self.code):
            if char == "\n":
                line += 1
            elif char == "{":
                self.open(position)
            elif char == "}":
                self.close(position, line)
            elif not self.in_body() and char in "()":
                self.parentheses += 1 if char == "(" else -1
            elif not self.in_body() and char == ";" and self.parentheses <= 0:
                self.restart(position + 1)
            elif not self.in_body() and char == ":" and self.code[:position].rstrip().endswith(
                    ("public", "private", "protected")):
                self.restart(position + 1)
        return self.found

    def in_body(self):
        return bool(self.stack) and self.stack[-1][0] in ("function", "value")

    def open(self, position):
        if self.in_body():
            self.stack.append((self.stack[-1][0], None, 0, 0))
            return
        head = self.code[self.head_begin:position]
        begin = self.head_begin + len(head) - len(head.lstrip())
        kind = _kind(head, self.parentheses > 0)
        self.stack.append((kind, head, begin, self.parentheses))
        if kind in ("namespace", "type"):
            self.restart(position + 1)

    def close(self, position, line):
        if not self.stack:
            return
        kind, head, begin, parentheses = self.stack.pop()
        if head is None:
            return
        rest = re.match(r"\s*([,{(.])", self.code[position + 1:position + 200])
        if kind in ("function", "value") and rest:
            self.parentheses = parentheses
            return  # a member initialiser or a value inside a longer head, which goes on
        if kind == "function":
            self.found.append(Function(_name(head), self.code.count("\n", 0, begin) + 1, line))
        if kind != "value" or parentheses <= 0:
            self.restart(position + 1)
        else:
            self.parentheses = parentheses


def _name(head):
    head = _without_template(_ATTRIBUTES.sub(" ", head).strip())
    test = re.match(r"((?:TYPED_)?TEST\w*|\w*_PROP)\s*\(([^)]*)\)", head)
    if test:
        return f"{test.group(1)}({' '.join(test.group(2).split())})"
    name = re.search(r"([\w:~]*operator\s*[^\s(]+|[\w:~]+)\s*\(", head)
    return name.group(1) if name else "a function"


RULES = (check_files, check_functions)
