# SPDX-License-Identifier: Apache-2.0
"""Prose as sentences: of Markdown pages without code, tables and generated blocks, and of comments in headers."""

import math
import re
from dataclasses import dataclass

TEXT, ITEM, HEADING, TABLE, CODE, GENERATED, BLANK = "text", "item", "heading", "table", "code", "generated", "blank"


@dataclass(frozen=True)
class Line:
    number: int
    kind: str
    text: str


@dataclass(frozen=True)
class Sentence:
    line: int  # of its first word
    words: int
    text: str


_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_OPENS = re.compile(r"\s*<!-- ([\w-]+) -->\s*$")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_ITEM = re.compile(r"\s*(?:>\s*)?(?:[-*]|(?P<number>\d+)[.)])\s+")
_HEADING = re.compile(r"#{1,6}\s")
_TABLE = re.compile(r"\s*\|")
_INDENTED = re.compile(r" {4,}\S")


class _Items:
    """Finds list items; a number that follows none is a line of text that happens to begin with one."""

    def __init__(self):
        self.last = 0

    def match(self, line):
        found = _ITEM.match(line)
        number = found and found.group("number")
        if number:
            if int(number) not in (1, self.last + 1):
                return None
            self.last = int(number)
        return found


def page_lines(text):
    """Each line of a page with what it is; a generated block stands between `<!-- NAME -->` and `<!-- /NAME -->`."""
    closes = fence = None
    in_list, before = False, BLANK
    items, lines = _Items(), []
    for number, line in enumerate(text.split("\n"), 1):
        opens = _OPENS.match(line)
        begins = _FENCE.match(line)
        if closes:
            kind = GENERATED
            closes = None if line.strip() == closes else closes
        elif fence:
            kind = CODE
            fence = None if line.strip().startswith(fence) else fence
        elif opens and f"<!-- /{opens.group(1)} -->" in text:
            kind, closes = GENERATED, f"<!-- /{opens.group(1)} -->"
        elif begins:
            kind, fence = CODE, begins.group(1)
        elif not line.strip():
            kind = BLANK
        elif _TABLE.match(line):
            kind = TABLE
        elif items.match(line):
            kind, in_list = ITEM, True
        elif _INDENTED.match(line) and not in_list and before in (BLANK, CODE):
            kind = CODE
        else:
            kind = HEADING if _HEADING.match(line) else TEXT
            in_list = in_list and (before != BLANK or line.startswith(" "))
        before = kind
        lines.append(Line(number, kind, line))
    return lines


def page_sentences(text):
    """The sentences of a page. A list item is one or more of its own; headings and table rows are none."""
    without_remarks = _COMMENT.sub(lambda match: match.group(0) if "\n" not in match.group(0)
                                   else "\n" * match.group(0).count("\n"), text)
    paragraph = []
    for line in page_lines(without_remarks):
        if line.kind != TEXT and paragraph:
            yield from sentences(paragraph)
            paragraph = []
        if line.kind in (TEXT, ITEM):
            words = line.text[_ITEM.match(line.text).end():] if line.kind == ITEM else line.text.lstrip("> ")
            paragraph.append((line.number, _COMMENT.sub("", words)))
    yield from sentences(paragraph)


_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_END = re.compile(r"[.!?][)\]\"'*_”’]*$")
_ABBREVIATION = re.compile(r"[(\[\"'*_]*(?:e\.g|i\.e|vs|cf|resp|approx|ca|fig|al|\.\.)\.[)\]\"'*_,]*$", re.IGNORECASE)


def without_spans(text):
    """`text` with each code span as one word; lines stay where they are."""
    return _SPAN.sub(lambda match: "code" + "\n" * match.group(0).count("\n"), text)


def sentences(paragraph):
    """The sentences of (line number, text) pairs that follow each other."""
    if not paragraph:
        return
    text = without_spans("\n".join(words for _, words in paragraph))
    text = _LINK.sub(lambda match: match.group(1) + "\n" * match.group(0)[len(match.group(1)):].count("\n"), text)
    numbers = [number for number, _ in paragraph]
    begin, words = None, []
    for i, line in enumerate(text.split("\n")):
        for word in line.split():
            begin = begin or numbers[i]
            words.append(word)
            if _END.search(word) and not _ABBREVIATION.match(word):
                yield from _sentence(begin, words)
                begin, words = None, []
    yield from _sentence(begin, words)


def _sentence(begin, words):
    count = sum(1 for word in words if re.search(r"\w", word))
    if count:
        yield Sentence(begin, count, " ".join(words))


def percentile(values, share):
    """The smallest of `values` that at least this share of them does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


_MARK = re.compile(r"//[/!]?<?")


def comments(text, code):
    """The paragraphs of a header's // comments, as lists of (line number, text); `code` is tree.strip_cpp(text).

    A comment behind code begins a paragraph, and the lines below it at its column go on with it. An indented line
    that belongs to no list item is a row of a table, or code, and stands alone.
    """
    paragraph, column, items, kind = [], None, _Items(), TEXT
    for number, (line, bare) in enumerate(zip(text.split("\n"), code.split("\n")), 1):
        mark = _MARK.search(line, len(bare.rstrip()))
        words = line[mark.end():].rstrip() if mark else ""
        item = items.match(words)
        indented = words.startswith("   ")
        goes_on = words and not bare.strip() and not item and mark.start() == column
        goes_on = goes_on and kind == (ITEM if indented else TEXT)
        if paragraph and not goes_on:
            yield paragraph
            paragraph = []
        if not goes_on:
            kind = ITEM if item else TABLE if indented else TEXT
        if words and "SPDX-" not in words:
            column = mark.start()
            paragraph.append((number, words[item.end():] if item else words))
    if paragraph:
        yield paragraph
