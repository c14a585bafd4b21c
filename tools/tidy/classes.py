# SPDX-License-Identifier: Apache-2.0
"""Classes: at most 600 lines over all files of the folder, at most 25 data members.

Lines are those of the declaration and of the member functions defined outside it. A struct of plain values is
apart: nothing in it is private, and what it defines as functions stands in it and is short.
"""

import posixpath
import re
from dataclasses import dataclass

import cpp
from tree import CODE, Finding, is_data

CLASS_LINES = 600
CLASS_MEMBERS = 25
PLAIN_LINES = 3  # of a function in a struct of plain values


@dataclass
class Class:
    name: str  # with its innermost namespace
    path: str
    line: int
    lines: int
    members: int
    plain: bool


def check_classes(tree):
    for one in classes(tree):
        if not one.plain and (one.lines > CLASS_LINES or one.members > CLASS_MEMBERS):
            yield Finding(one.path, one.line, "class-size",
                          f"{one.name} has {one.lines} lines and {one.members} data members, at most {CLASS_LINES} and "
                          f"{CLASS_MEMBERS}; move a part with a name of its own out", one.name)


def classes(tree):
    """The classes of product code."""
    return tree.once("classes", "", lambda: _classes(tree))


def _classes(tree):
    found = {}    # (folder, or file of a type that only it sees; full name as a tuple) -> Class
    outside = []  # (path, full name of the class, lines)
    for path in tree.paths(*CODE):
        if tree.is_test(path) or is_data(path):
            continue
        shape = cpp.shape_of(tree, path)
        place = posixpath.dirname(path) if path.endswith(".h") else path
        for block in shape.types():
            if name := cpp.type_name(block):
                namespaces, types = cpp.scope_of(block)
                one = _class(shape, block, "::".join([*namespaces[-1:], *types, name]), path)
                full = (*namespaces, *types, *name.split("::"))
                found[place, full] = one
                outside.append((path, full[:-1], one.lines if "::" in name else 0))
        outside += _defined_outside(shape, path)
    for path, full, lines in outside:
        places = (path, posixpath.dirname(path))
        around = (full[:length] for length in range(1, len(full) + 1))
        for one in {id(one): one for name in around if (one := _first(found, places, name))}.values():
            one.lines += lines
        if lines and (one := _first(found, places, full)):
            one.plain = False
    return list(found.values())


def _first(found, places, name):
    return next((found[place, name] for place in places if (place, name) in found), None)


def _class(shape, block, name, path):
    return Class(name, path, shape.first(block), shape.last(block) - shape.first(block) + 1,
                 data_members(shape, block), _is_plain(shape, block))


def _defined_outside(shape, path):
    """Member functions that stand outside of their class, as (path, full name of the class, lines)."""
    for block in shape.functions():
        if block.outer and block.outer.kind == cpp.TYPE:
            continue
        qualifiers = cpp.function_name(block).split("::")[:-1]
        if qualifiers:
            namespaces, _ = cpp.scope_of(block)
            yield path, (*namespaces, *qualifiers), shape.last(block) - shape.first(block) + 1


def _own_text(shape, block):
    """What stands in the type's braces, without the functions and types in them."""
    text, position = "", block.open + 1
    for inner in block.inner:
        text += shape.code[position:inner.begin] + (" __type " if inner.kind == cpp.TYPE else "; __function();")
        position = inner.close + 1
    return text + shape.code[position:block.close]


_ACCESS = re.compile(r"\b(public|private|protected)\s*:(?!:)")
_NO_MEMBER = re.compile(r"(?:using|typedef|friend|static|template|enum|class|struct|union|inline static)\b|__type$|$")
_ENUMERATION = re.compile(r"(?:\w+\s+)*?enum\b")


def _statements(shape, block):
    text = cpp.without_angles(_ACCESS.sub(";", _own_text(shape, block)))
    return [cpp.bare_head(part) for part in _split(text)]


def _split(text):
    """The parts between semicolons that stand in no braces."""
    depth, begin = 0, 0
    for match in re.finditer(r"[{};]", text):
        depth += {"{": 1, "}": -1, ";": 0}[match.group(0)]
        if match.group(0) == ";" and depth == 0:
            yield text[begin:match.start()].strip()
            begin = match.end()


def _is_function(statement):
    return "(" in re.split(r"[={]", statement)[0] or re.search(r"\boperator\b", statement) is not None


def data_members(shape, block):
    if _ENUMERATION.match(block.head):
        return 0
    count = 0
    for statement in _statements(shape, block):
        if not _NO_MEMBER.match(statement) and not _is_function(statement):
            while (bare := re.sub(r"\([^()]*\)|\{[^{}]*\}|\[[^\[\]]*\]", "", statement)) != statement:
                statement = bare
            count += 1 + statement.count(",")
    return count


def _is_plain(shape, block):
    if not cpp.is_struct(block) or {"private", "protected"} & set(_ACCESS.findall(_own_text(shape, block))):
        return False
    return all(shape.last(inner) - shape.first(inner) < PLAIN_LINES
               for inner in block.inner if inner.kind == cpp.FUNCTION)


def largest(tree, count):
    """Lines of text: the classes with the most lines, and where they stand."""
    by_size = sorted(classes(tree), key=lambda one: (-one.lines, -one.members, one.name))
    return [f"{one.lines:5} lines {one.members:3} members  {one.name}  {one.path}:{one.line}" + " (plain)" * one.plain
            for one in by_size[:count]]


RULES = (check_classes,)
