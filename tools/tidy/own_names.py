# SPDX-License-Identifier: Apache-2.0
"""Names of one source: no two sources of a folder give the same name to a constant, a type or a function that only
they see. The builds with sanitizers compile up to 16 sources of a folder as one."""

import posixpath
import re

import cpp
from tree import Finding

_CONSTANT = re.compile(r"^(?:inline |static )*(?:constexpr|const)\b[^;{=(]*?\b(\w+)(?:\[[^\]]*\])?\s*[={;]", re.MULTILINE)


def check_own_names(tree):
    owners = {}  # (folder, name) -> the first file that has it
    for path in tree.paths(".cc", under=("src/", "apps/")):
        folder = posixpath.dirname(path)
        if tree.is_test(path) or _each_alone(tree, folder):
            continue
        for name, shown, line in _own_names(cpp.shape_of(tree, path)):
            owner = owners.setdefault((folder, name), path)
            if owner != path:
                yield Finding(path, line, "own-names",
                              f"{shown} is a name that only this file sees, and {posixpath.basename(owner)} has it too; "
                              "one of them needs another, as sources of a folder are compiled together")


def _each_alone(tree, folder):
    build = f"{folder}/CMakeLists.txt"
    return tree.has(build) and "EACH_ALONE" in tree.text(build)


def _own_names(shape):
    """(what tells it apart, what people read, line) of all that stands in a namespace without a name."""
    for block in shape.blocks:
        if block.kind != cpp.NAMESPACE or block.head.split() != ["namespace"]:
            continue
        for match in _CONSTANT.finditer(_outside(shape, block)):
            yield match[1], match[1], shape.line(block.open + 1 + match.start())
        for inner in block.inner:
            if inner.kind == cpp.TYPE and (name := cpp.type_name(inner)):
                yield name, name, shape.first(inner)
            elif inner.kind == cpp.FUNCTION:
                name = cpp.function_name(inner)
                if "::" not in name:  # the same name with other parameters is another function
                    yield re.sub(r"\s+", " ", inner.head), f"{name}()", shape.first(inner)


def _outside(shape, block):
    """The text of a namespace; blocks in it are blank, so that places stay."""
    text = list(shape.code[block.open + 1:block.close])
    for inner in block.inner:
        if inner.kind in (cpp.TYPE, cpp.FUNCTION):
            for place in range(inner.begin - block.open - 1, inner.close - block.open):
                if text[place] != "\n":
                    text[place] = " "
    return "".join(text)


RULES = (check_own_names,)
