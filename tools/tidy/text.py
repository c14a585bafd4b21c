# SPDX-License-Identifier: Apache-2.0
"""Lines and links: blanks, tabs, open ends without an issue, private paths, links to nothing."""

import posixpath
import re

from tree import Finding, is_data

# Written so that this file does not find itself.
_OPEN_ENDS = ("TO" "DO", "FIX" "ME", "XX" "X")
_FOLDERS = ("wo" "rk", "ro" "ot", "tm" "p", "ho" "me")
_OPEN_END = re.compile(rf"\b(?:{'|'.join(_OPEN_ENDS)})\b(?!\(#\d+\))")
_PRIVATE = re.compile(rf"(?<![\w./}}$)~-])/(?:{'|'.join(_FOLDERS)})(?=/|\b)")
_LINK = re.compile(r"!?\[[^\]\n]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
_TABS_ALLOWED = ("Makefile", ".mk", ".sessions", ".tsv")


def _texts(tree):
    return (path for path in tree.paths() if not is_data(path) and tree.text(path) and path != "LICENSE")


def check_lines(tree):
    for path in _texts(tree):
        text = tree.text(path)
        if not text.endswith("\n"):
            yield Finding(path, text.count("\n") + 1, "line", "no line end at the end of the file")
        tabs_allowed = path.endswith(_TABS_ALLOWED)
        open_ends = any(word in text for word in _OPEN_ENDS)
        private = any(f"/{folder}" in text for folder in _FOLDERS)
        for number, line in enumerate(text.split("\n"), 1):
            if line != line.rstrip():
                yield Finding(path, number, "line", "blanks (or a carriage return) at the end")
            if not tabs_allowed and "\t" in line:
                yield Finding(path, number, "line", "a tab; use blanks")
            if open_ends and _OPEN_END.search(line):
                yield Finding(path, number, "open-end", f"'{_OPEN_END.search(line).group(0)}' without an issue: write it as NAME(#12)")
            if private and _PRIVATE.search(line):
                yield Finding(path, number, "private-path",
                              f"'{_PRIVATE.search(line).group(0)}...': an absolute path of one machine; make it relative")


def _slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def _without_fences(text):
    return re.sub(r"^(```|~~~).*?^\1", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.DOTALL | re.MULTILINE)


def check_links(tree):
    """Relative links of *.md lead to a file or folder of the tree, and to a heading where they name one."""
    for path in tree.paths(".md"):
        for number, line in enumerate(_without_fences(tree.text(path)).split("\n"), 1):
            for link in _LINK.findall(re.sub(r"`[^`]*`", "", line)):
                if re.match(r"[a-z]+:", link):
                    continue
                target, _, anchor = link.partition("#")
                full = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
                if not tree.has(full):
                    yield Finding(path, number, "link", f"({link}) leads to no file; correct or remove it")
                elif anchor and full.endswith(".md"):
                    headings = re.findall(r"^#+\s+(.*)$", _without_fences(tree.text(full)), re.MULTILINE)
                    if anchor not in map(_slug, headings):
                        yield Finding(path, number, "link", f"({link}): {full} has no heading #{anchor}")


_STATEMENT = re.compile(r"^\s*//\s*(?:[\w:<>*&\s]+\s[\w.\[\]]+\s=\s.*;|(?:if|for|while)\s*\(.*\)\s*\{|\}|return\b.*;|[\w.:>-]+\(.*\);)\s*$")


def check_dead_code(tree):
    """Three commented-out statements in a row inside a .cc file; git remembers them better."""
    for path in tree.paths(".cc"):
        run = 0
        for number, line in enumerate(tree.lines(path), 1):
            run = run + 1 if _STATEMENT.match(line) else 0
            if run == 3:
                yield Finding(path, number - 2, "dead-code", "commented-out code; remove it")


RULES = (check_lines, check_links, check_dead_code)
