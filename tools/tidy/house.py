# SPDX-License-Identifier: Apache-2.0
"""The tree itself: READMEs, CMake lists, names, licence lines, blobs, headers, claims of tests."""

import posixpath
import re

from tree import CODE, Finding, is_data

README_LINES = 40
BLOB_BYTES = 512 * 1024
LAYERS = "src/README.md"  # the table has a row for each layer
LICENCE = "SPDX-License-Identifier: Apache-2.0"
_VAGUE = re.compile(r"^(?:utils?|helpers?|managers?|common|misc)$")
_NAMED_FILE = re.compile(r"`([\w./+-]+\.(?:h|cc|py|sh|cmake|md)|(?:[\w./-]+/)?CMakeLists\.txt)`")
_TEST = re.compile(r"^(?:(?:TYPED_)?TEST(?:_[FP])?|RC_GTEST_(?:FIXTURE_)?PROP)\(")


def _folders_with_files(tree, tops):
    """Folder -> its own file names, below `tops`, without data folders."""
    folders = {}
    for path in tree.paths(under=tops):
        if not is_data(path):
            folders.setdefault(posixpath.dirname(path), set()).add(posixpath.basename(path))
    return folders


def check_readmes(tree):
    """A folder that holds more than a CMake list says in a short README what it is for."""
    anywhere = {posixpath.basename(path) for path in tree.paths()}
    for folder, names in _folders_with_files(tree, ("src/", "apps/", "tools/", "tests/")).items():
        path = folder + "/README.md"
        if "README.md" not in names:
            if names != {"CMakeLists.txt"}:
                yield Finding(path, 1, "readme", "missing: say purpose, headers, owner thread, invariants, must not")
            continue
        lines = tree.lines(path)
        if len(lines) > README_LINES and path != LAYERS:
            yield Finding(path, README_LINES + 1, "readme", f"{len(lines)} lines, at most {README_LINES}; long texts live in docs/")
        for number, line in enumerate(lines, 1):
            for name in _NAMED_FILE.findall(line):
                if folder.startswith("tests") and name in anywhere:
                    continue  # tests across folders speak of files elsewhere
                if not any(tree.has(posixpath.normpath(posixpath.join(base, name))) for base in (folder, "src", "")):
                    yield Finding(path, number, "readme", f"names {name}, which does not exist; correct the name")


def check_cmake(tree):
    """Every source stands in the CMakeLists.txt of its folder, or of the nearest folder above that has one.

    Headers too in src/, where each is compiled alone; those of programs are built by what includes them.
    """
    for path in tree.paths(*CODE, under=("src/", "apps/", "tests/", "bench/", "examples/")):
        if path.endswith(".h") and not path.startswith("src/"):
            continue
        folder = posixpath.dirname(path)
        while folder and not tree.has(folder + "/CMakeLists.txt"):
            folder = posixpath.dirname(folder)
        lists = folder + "/CMakeLists.txt"
        name = posixpath.relpath(path, folder or ".")
        if not folder or is_data(path):
            continue
        if not re.search(rf"(?<![\w/.-]){re.escape(name)}(?![\w.])", tree.text(lists)):
            yield Finding(path, 1, "cmake", f"not in {lists}; add it, or nobody builds it")


def check_licence(tree):
    for path in tree.paths():
        lines = tree.lines(path)
        script = bool(lines) and lines[0].startswith("#!")
        source = path.endswith(CODE + (".py", ".sh", ".cmake")) or posixpath.basename(path) in ("CMakeLists.txt", "Makefile")
        if (source or script) and not is_data(path) and not any(LICENCE in line for line in lines[:2]):
            yield Finding(path, 1, "licence", f"the first line (after #!) must say {LICENCE}")


def check_headers(tree):
    """A header is included once and begins with what it is for."""
    for path in tree.paths(".h"):
        if is_data(path):
            continue
        lines = tree.lines(path)
        if "#pragma once" not in lines:
            yield Finding(path, 1, "header", "no #pragma once")
        above = lines[:lines.index("#pragma once")] if "#pragma once" in lines else lines[:30]
        if not any(re.match(r"//\s*\w", line) for line in above if "SPDX" not in line):
            yield Finding(path, 1, "header", "no first paragraph: say what it is for, thread rule, owner, errors")


def check_claims(tree):
    """The line above a test, or its first line, is a comment that states the claim."""
    for path in tree.paths("_test.cc"):
        lines = tree.lines(path)
        for i, line in enumerate(lines):
            if not _TEST.match(line):
                continue
            body = next((k + 1 for k in range(i, len(lines)) if lines[k].rstrip().endswith("{")), i)
            inside = lines[body].strip() if body < len(lines) else ""
            if not (i and lines[i - 1].startswith("//")) and not inside.startswith("//"):
                yield Finding(path, i + 1, "claim", "write the test's claim as a comment line above it")


def check_blobs(tree):
    for path in tree.paths():
        if tree.size(path) > BLOB_BYTES:
            yield Finding(path, 1, "blob", f"{tree.size(path)} bytes, at most {BLOB_BYTES}; make it at build or test time")


def check_names(tree):
    """No corner where anything may go."""
    for path in tree.paths(under=("src/", "apps/", "tools/", "tests/", "bench/")):
        for part in path.split("/"):
            for word in re.split(r"[_.-]", part):
                if _VAGUE.match(word):
                    yield Finding(path, 1, "name", f"'{word}' says nothing; name what it does")


def check_test_helpers(tree):
    """Files among product files that only tests use are named test_*, and no others are."""
    for path in tree.paths(*CODE, under=("src/", "apps/")):
        name = posixpath.basename(path)
        if is_data(path) or re.search(r"_test\.(?:cc|h)$", name):
            continue
        if tree.is_test(path) and not name.startswith("test_"):
            yield Finding(path, 1, "test-helper", f"only tests use it; name it test_{name}")
        if name.startswith("test_") and not tree.is_test(path):
            yield Finding(path, 1, "test-helper", "a product file; rename it, or list it under TESTS alone")


RULES = (check_readmes, check_cmake, check_licence, check_headers, check_claims, check_blobs, check_names,
         check_test_helpers)
