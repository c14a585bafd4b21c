# SPDX-License-Identifier: Apache-2.0
"""The files under inspection, as text, and what a rule reports.

A Tree is immutable: paths relative to the root, '/'-separated, to content. Rules are functions
`rule(tree) -> iterable of Finding`; tests hand them small trees made of strings.
"""

import os
import posixpath
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

CODE = (".cc", ".h")
DATA_FOLDERS = {"corpus", "testdata", "golden"}
OUTPUT_FOLDERS = {".git", "build", "runs", ".venv", "__pycache__"}


@dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    rule: str
    message: str
    subject: str = ""  # what open_work.py names instead of the path, if anything

    def __str__(self):
        return f"{self.path}:{self.line}: {self.rule}: {self.message}"


class Tree:
    """`files` maps a path to its bytes or text; `root` is set when the files are on a disk."""

    def __init__(self, files, root=None):
        self.root = root
        self._content = {path: _bytes(content) for path, content in files.items()}
        self._text = {}
        self._code = {}
        self._tests = {}
        self._once = {}
        self.folders = {""}
        for path in self._content:
            while path := posixpath.dirname(path):
                self.folders.add(path)

    def paths(self, *suffixes, under=()):
        """Sorted paths that end with one of `suffixes` (all without any) and lie below one of `under`."""
        for path in sorted(self._content):
            if (not suffixes or path.endswith(suffixes)) and (not under or path.startswith(tuple(under))):
                yield path

    def has(self, path):
        return path in self._content or path.rstrip("/") in self.folders

    def size(self, path):
        return len(self._content[path])

    def text(self, path):
        """The file as text; empty for one that is not UTF-8 or holds zero bytes, as binary data does."""
        if path not in self._text:
            content = self._content[path]
            try:
                self._text[path] = "" if b"\0" in content else content.decode("utf-8")
            except UnicodeDecodeError:
                self._text[path] = ""
        return self._text[path]

    def lines(self, path):
        return self.text(path).splitlines()

    def code(self, path):
        """C++ text with comments and the inside of literals blanked; lines stay where they are."""
        if path not in self._code:
            self._code[path] = strip_cpp(self.text(path))
        return self._code[path]

    def once(self, what, path, make):
        """What `make()` returned when it was first asked for `what` of `path`."""
        if (what, path) not in self._once:
            self._once[what, path] = make()
        return self._once[what, path]

    def is_test(self, path):
        """Code of tests: in tests/, named *_test.* or test_*.py, or listed for tests alone in its CMakeLists.txt."""
        if path.startswith("tests/") or _TEST_NAME.search(path):
            return True
        folder, name = posixpath.split(path)
        if folder not in self._tests:
            lists = folder + "/CMakeLists.txt"
            self._tests[folder] = _listed_tests(self.text(lists)) if lists in self._content else set()
        return name in self._tests[folder]


_TEST_NAME = re.compile(r"_test\.(?:cc|h)$|(?:^|/)test_[^/]*\.py$")


def _bytes(content):
    return content.encode("utf-8") if isinstance(content, str) else content


def is_data(path):
    """Inputs of tests: any bytes may stand there."""
    return bool(DATA_FOLDERS.intersection(path.split("/")[:-1]))


_WORD = re.compile(r"#[^\n]*|[()]|[^\s()#]+")


def _listed_tests(cmake_list):
    """Names that stand behind TESTS of gossamer_module or SOURCES of gossamer_test, and nowhere else."""
    tests, product = set(), set()
    before = command = keyword = ""
    for word in _WORD.findall(cmake_list):
        if word == "(":
            command, keyword = before, ""
        elif re.fullmatch(r"[A-Z_]+", word):
            keyword = word
        elif not word.startswith("#"):
            of_tests = keyword == "TESTS" or (command == "gossamer_test" and keyword == "SOURCES")
            of_tests = of_tests or (command == "add_library" and word.startswith("test_"))  # a library of tests
            (tests if of_tests else product).add(word)
        before = word
    return tests - product


def _listed(root):
    """What git tracks or would add; without git everything but build outputs."""
    try:
        listed = subprocess.run(
            ["git", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard"],
            check=True, capture_output=True).stdout
        return [path for path in listed.decode().split("\0") if path]
    except (OSError, subprocess.CalledProcessError):
        found = []
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name not in OUTPUT_FOLDERS]
            found += [Path(folder, name).relative_to(root).as_posix() for name in names]
        return found


def load_tree(root):
    root = Path(root)
    files = {}
    for path in _listed(root):
        full = root / path
        if full.is_file() and not full.is_symlink():
            files[path] = full.read_bytes()
    return Tree(files, root)


_TOKEN = re.compile(
    r'//[^\n]*'
    r'|/\*.*?\*/'
    r'|R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'",
    re.DOTALL)


def strip_cpp(text):
    """Blanks comments and the inside of literals; include lines keep their path."""

    def blank(match):
        token = match.group(0)
        if token.startswith("/"):
            return re.sub(r"[^\n]", " ", token)
        line_start = text.rfind("\n", 0, match.start()) + 1
        if text[line_start:match.start()].lstrip().startswith("#include"):
            return token
        return token[0] + re.sub(r"[^\n]", " ", token[1:-1]) + token[-1]

    return _TOKEN.sub(blank, text)
