# SPDX-License-Identifier: Apache-2.0
"""Words: sentences short enough to be read once, comments that begin with their subject."""

import re

import prose
from tree import CODE, Finding, is_data

SENTENCE_WORDS = 40
PAGE_WORDS = 30  # nine of ten sentences of a page have at most so many
LINE_CHARACTERS = 120


def _pages(tree):
    return (path for path in tree.paths(".md") if not is_data(path))


def _sentences(tree, path):
    return tree.once("sentences", path, lambda: list(prose.page_sentences(tree.text(path))))


def _lines(tree, path):
    return tree.once("lines", path, lambda: prose.page_lines(tree.text(path)))


def check_pages(tree):
    for path in _pages(tree):
        counts = [sentence.words for sentence in _sentences(tree, path)]
        if counts and prose.percentile(counts, 0.9) > PAGE_WORDS:
            yield Finding(path, 1, "page", f"nine of ten sentences have at most {prose.percentile(counts, 0.9)} words; "
                          f"the limit is {PAGE_WORDS}: one idea a sentence (tidy.py --words {path})")


def check_sentences(tree):
    for path in _pages(tree):
        for sentence in _sentences(tree, path):
            if sentence.words > SENTENCE_WORDS:
                yield Finding(path, sentence.line, "sentence", _too_long(sentence))


def _too_long(sentence):
    return (f"a sentence of {sentence.words} words, at most {SENTENCE_WORDS}; one idea a sentence: "
            f"'{' '.join(sentence.text.split()[:6])} ...'")


def _header_comments(tree):
    """(path, paragraph) of each comment in a header of product code."""
    for path in tree.paths(".h"):
        if not is_data(path) and not tree.is_test(path):
            found = tree.once("comments", path, lambda: list(prose.comments(tree.text(path), tree.code(path))))
            yield from ((path, paragraph) for paragraph in found)


def check_comments(tree):
    for path, paragraph in _header_comments(tree):
        for sentence in prose.sentences(paragraph):
            if sentence.words > SENTENCE_WORDS:
                yield Finding(path, sentence.line, "comment", _too_long(sentence))


_ONE_LINK = re.compile(r"\s*(?:[-*+]\s+|\d+\.\s+|\[[^\]]+\]:\s*)?(?:!?\[[^\]]*\]\([^)]*\)|<?https?://\S+>?)[.,;]?\s*$")
_FREE = (prose.TABLE, prose.CODE, prose.GENERATED)


def check_widths(tree):
    for path in _pages(tree):
        for line in _lines(tree, path):
            if len(line.text) > LINE_CHARACTERS and line.kind not in _FREE and not _ONE_LINK.match(line.text):
                yield Finding(path, line.number, "width",
                              f"{len(line.text)} characters, at most {LINE_CHARACTERS}; break the line")


_OF = {"//": re.compile(r"(?:^|\s)//[/!]?\s*Of\s"), "#": re.compile(r"(?:^|\s)#\s*Of\s")}


def _comment_mark(tree, path):
    if path.endswith((*CODE, ".proto")):
        return "//"
    if path.endswith((".py", ".sh", ".cmake", "CMakeLists.txt")) or tree.text(path).startswith("#!"):
        return "#"
    return None


def check_beginnings(tree):
    """A comment begins with the thing it describes."""
    for path in tree.paths():
        mark = None if is_data(path) or tree.is_test(path) else _comment_mark(tree, path)
        if mark is None or "Of " not in tree.text(path):
            continue
        for number, line in enumerate(tree.lines(path), 1):
            if _OF[mark].search(line):
                yield Finding(path, number, "of", "a comment that begins with 'Of'; begin with the thing it describes")


_NOBODY = re.compile(r"\b(?:who|whoever|whom)\b|\bwhat\s+is\s+of\b", re.IGNORECASE)


def check_subjects(tree):
    """A subject is a noun: member, node, coordinator, row."""
    for path in _pages(tree):
        prose_lines = [(line.number, "" if line.kind in (prose.CODE, prose.GENERATED) else line.text)
                       for line in _lines(tree, path)]
        yield from _subjects(path, prose_lines)
    for path, paragraph in _header_comments(tree):
        yield from _subjects(path, paragraph)


def _subjects(path, paragraph):
    text = prose.without_spans("\n".join(words for _, words in paragraph))
    for match in _NOBODY.finditer(text):
        number = paragraph[text.count("\n", 0, match.start())][0]
        yield Finding(path, number, "subject",
                      f"'{' '.join(match.group(0).split())}': name it: a member, a node, a row")


def figures(path, text):
    """One line: how long the sentences of a page are."""
    counts = [sentence.words for sentence in prose.page_sentences(text)]
    if not counts:
        return f"{path}: no sentence"
    return (f"{path}: {len(counts)} sentences, median {prose.percentile(counts, 0.5)}, "
            f"90th percentile {prose.percentile(counts, 0.9)}, longest {max(counts)}")


def long_sentences(path, text):
    """A line for each sentence of a page above PAGE_WORDS."""
    return [f"  {path}:{sentence.line}: {sentence.words} words: {sentence.text}"
            for sentence in prose.page_sentences(text) if sentence.words > PAGE_WORDS]


RULES = (check_pages, check_sentences, check_comments, check_widths, check_beginnings, check_subjects)
