# SPDX-License-Identifier: Apache-2.0
"""Sizes: a file at most 500 lines, a function at most 70, a folder at most 40 product files."""

import ast
import posixpath
from dataclasses import dataclass

import cpp
from tree import CODE, Finding, is_data

FILE_LINES = 500
FUNCTION_LINES = 70
FOLDER_FILES = 40


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
        found = (python_functions(tree.text(path)) if path.endswith(".py") else
                 functions(cpp.shape_of(tree, path), FUNCTION_LINES + 1))
        for function in found:
            if function.lines > FUNCTION_LINES:
                yield Finding(path, function.first, "function-size",
                              f"{function.name} has {function.lines} lines, at most {FUNCTION_LINES}; "
                              "move a step with a name of its own out")


def check_folders(tree):
    folders = {}
    for path in tree.paths(*CODE):
        if not is_data(path) and not tree.is_test(path):
            folder = posixpath.dirname(path)
            folders[folder] = folders.get(folder, 0) + 1
    for folder, count in folders.items():
        if count > FOLDER_FILES:
            yield Finding(folder, 1, "folder-size", f"{count} product files (.h, .cc), at most {FOLDER_FILES}; "
                          "give what belongs together a folder of its own")


def python_functions(text):
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        return [Function(f"unreadable Python ({error.msg})", error.lineno or 1, (error.lineno or 1) + FUNCTION_LINES)]
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [Function(node.name, node.lineno, node.end_lineno) for node in ast.walk(module) if isinstance(node, kinds)]


def functions(shape, lines=0):
    """The functions of C++ (cpp.Shape) with at least so many lines, in order of their ends."""
    return [Function(cpp.function_name(block), shape.first(block), shape.last(block)) for block in shape.functions()
            if shape.last(block) - shape.first(block) + 1 >= lines]


RULES = (check_files, check_functions, check_folders)
