# SPDX-License-Identifier: Apache-2.0
"""The shape of C++: its types and functions, found by matching braces on code formatted by clang-format.

A '{' at namespace or class level opens a function when its head has parameters. Lambdas and local classes count as
part of their function.
"""

import bisect
import re
from dataclasses import dataclass, field

NAMESPACE, TYPE, FUNCTION, VALUE = "namespace", "type", "function", "value"


@dataclass
class Block:
    """What one pair of braces holds; positions are those of the text that Shape keeps."""
    kind: str
    head: str
    begin: int     # of the head's first word
    open: int      # of the '{'
    parentheses: int = 0
    close: int = 0  # of the '}'
    inner: list = field(default_factory=list)  # blocks of a namespace or type, in order
    outer: object = None                       # the Block around it


class Shape:
    """The blocks of stripped C++ (tree.strip_cpp)."""

    def __init__(self, code):
        self.code = _without_preprocessor(code)
        self._ends = [match.start() for match in re.finditer("\n", self.code)]
        self.blocks = _Scanner(self.code).scan()  # in order of their ends

    def line(self, position):
        return bisect.bisect_left(self._ends, position) + 1

    def first(self, block):
        return self.line(block.begin)

    def last(self, block):
        return self.line(block.close)

    def functions(self):
        return [block for block in self.blocks if block.kind == FUNCTION]

    def types(self):
        return [block for block in self.blocks if block.kind == TYPE]


def shape_of(tree, path):
    return tree.once("shape", path, lambda: Shape(tree.code(path)))


_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)


def _without_preprocessor(code):
    return _DIRECTIVE.sub(lambda match: "\n" * match.group(0).count("\n"), code)


_ATTRIBUTES = re.compile(r"\[\[.*?\]\]|\balignas\s*\([^)]*\)", re.DOTALL)
_TYPE = re.compile(r"^(?:typedef |static |constexpr |inline |extern )*(?:class|struct|union|enum)\b")


def bare_head(head):
    """A head without attributes and without `template <...>`."""
    if "[[" in head or "alignas" in head:
        head = _ATTRIBUTES.sub(" ", head)
    return _without_template(head.strip())


def _kind(head, in_parentheses):
    """What a '{' after `head` opens."""
    head = bare_head(head)
    if re.search(r"\bnamespace\b", head) or re.match(r'extern\s*"\s*"\s*$', head):
        return NAMESPACE
    if in_parentheses:
        return VALUE
    if _TYPE.match(head) and not re.search(r"\)\s*(?:const|noexcept|override|final|\s)*$", head):
        return TYPE
    if "(" not in head:
        return VALUE
    if "=" not in head:
        return FUNCTION
    assigned = re.search(r"(?<![=!<>])=(?!=)", re.sub(r"\(.*\)|operator\s*\S?=+", "", head, flags=re.DOTALL))
    lambda_head = re.search(r"\[[^\]]*\]\s*(?:\(|$)", head)
    return VALUE if assigned and not lambda_head else FUNCTION


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


_OUTSIDE = re.compile(r"[{}();:]")
_ACCESS = re.compile(r"\b(?:public|private|protected)\s*$")
_INSIDE = re.compile(r"[{}]")
_GOES_ON = re.compile(r"\s*[,{(.]")


class _Scanner:
    def __init__(self, code):
        self.code = code
        self.stack = []  # of Block, the innermost last
        self.found = []
        self.restart(0)

    def restart(self, position):
        """A new head begins behind `position`."""
        self.head_begin = position
        self.parentheses = 0

    def scan(self):
        position = 0
        while match := _OUTSIDE.search(self.code, position):
            position = match.end()
            token = match.group(0)
            if token == "{":
                position = self.open(match.start())
            elif token == "}":
                self.close(match.start())
            elif token == "(":
                self.parentheses += 1
            elif token == ")":
                self.parentheses -= 1
            elif token == ";" and self.parentheses <= 0:
                self.restart(position)
            elif token == ":" and _ACCESS.search(self.code, max(0, match.start() - 12), match.start()):
                self.restart(position)
        return self.found

    def open(self, position):
        """Returns where to go on: inside a namespace or type, behind anything else."""
        head = self.code[self.head_begin:position]
        begin = self.head_begin + len(head) - len(head.lstrip())
        block = Block(_kind(head, self.parentheses > 0), head.strip(), begin, position, self.parentheses)
        block.outer = self.stack[-1] if self.stack else None
        self.stack.append(block)
        if block.kind in (NAMESPACE, TYPE):
            self.restart(position + 1)
            return position + 1
        end = self.matching(position)
        self.close(end)
        return end + 1

    def matching(self, position):
        depth = 0
        for match in _INSIDE.finditer(self.code, position):
            depth += 1 if match.group(0) == "{" else -1
            if depth == 0:
                return match.start()
        return len(self.code)

    def close(self, position):
        if not self.stack:
            return
        block = self.stack.pop()
        if block.kind in (FUNCTION, VALUE) and _GOES_ON.match(self.code, position + 1):
            self.parentheses = block.parentheses
            return  # a member initialiser or a value inside a longer head, which goes on
        if block.kind == VALUE:
            if block.parentheses <= 0:
                self.restart(position + 1)
            return
        block.close = position
        self.found.append(block)
        if block.outer:
            block.outer.inner.append(block)
        self.restart(position + 1)


_NO_NAMES = ("decltype", "noexcept", "explicit", "requires")


def without_angles(text):
    """`text` without template arguments."""
    while True:
        shorter = re.sub(r"<[^<>]*>", "", text)
        if shorter == text:
            return text
        text = shorter


def function_name(block):
    """The name with its qualifiers, as `Outer::Inner::name`; a test's with its arguments."""
    head = bare_head(block.head)
    test = re.match(r"((?:TYPED_)?TEST\w*|\w*_PROP)\s*\(([^)]*)\)", head)
    if test:
        return f"{test.group(1)}({' '.join(test.group(2).split())})"
    operator = re.search(r"\boperator\b\s*(?:\(\)|[^\s(]+)?", head)
    if operator:
        return re.search(r"[\w:]*$", without_angles(head[:operator.start()])).group(0) + operator.group(0).strip()
    for name in re.finditer(r"((?:\w+::)*~?\w+)\s*\(", without_angles(head)):
        if name.group(1) not in _NO_NAMES:
            return name.group(1)
    return "a function"


def type_name(block):
    """The name of a class, struct or union; empty for an enum or a type without a name."""
    head = without_angles(bare_head(block.head))
    name = re.match(r"(?:\w+\s+)*?(?:class|struct|union)\s+(?!class\b)([\w:]+)", head)
    return name.group(1) if name and not re.match(r"(?:\w+\s+)*?enum\b", head) else ""


def is_struct(block):
    return re.match(r"(?:\w+\s+)*?(?:struct|union)\b", bare_head(block.head)) is not None


def scope_of(block):
    """(namespaces, types) around `block`, outermost first; a namespace without a name is left out."""
    namespaces, types = [], []
    while block := block.outer:
        if block.kind == TYPE:
            types.insert(0, type_name(block))
        else:
            name = re.search(r"\bnamespace\s+([\w:]+)", block.head)
            namespaces[:0] = name.group(1).split("::") if name else []
    return namespaces, types
