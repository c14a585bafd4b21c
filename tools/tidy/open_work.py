# SPDX-License-Identifier: Apache-2.0
"""Open work: places that break a newer rule and are not mended yet. The list may only shrink.

LISTED maps a path, or a class, to the rules that it breaks; a path with '/' at its end stands for all below it.
A finding that stands here is left out. An entry that breaks its rule no more is a finding itself.
"""

from pathlib import Path

from tree import Finding

RULES = ("circle", "engines", "folder-size", "class-size", "test-helper", "page", "sentence", "width", "comment", "of",
         "subject")  # nothing may be listed for the others


def sort_out(findings, listed):
    """(findings to report, findings that `listed` knows); an entry without one is reported too."""
    rules = {place: set(text.split()) & set(RULES) for place, text in listed.items()}
    folders = tuple(place for place in listed if place.endswith("/"))
    new, known, used = [], [], set()
    for finding in findings:
        places = [finding.subject or finding.path, *(folder for folder in folders if finding.path.startswith(folder))]
        place = next((place for place in places if finding.rule in rules.get(place, ())), None)
        (new if place is None else known).append(finding)
        used.add((place, finding.rule))
    for place, text in listed.items():
        new += [Finding("tools/tidy/open_work.py", _line(place), "open-work",
                        f"'{place}' breaks '{rule}' no more, or it may not be listed; remove it from the list")
                for rule in text.split() if (place, rule) not in used]
    return new, known


def _line(place):
    """Where the list names `place`."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next((number for number, line in enumerate(lines, 1) if line.startswith(f'    "{place}": ')), 1)


LISTED = {
}
