# SPDX-License-Identifier: Apache-2.0
"""Layers: the table in src/README.md is the rule, every #include is checked against it."""

import posixpath
import re

from tree import CODE, Finding

TABLE = "src/README.md"
_ROW = re.compile(r"^\|([^|]*)\|([^|]*)\|.*\|\s*$")
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def read_table(tree):
    """Layer -> (line, set of layers it may include)."""
    table = {}
    for number, line in enumerate(tree.lines(TABLE), 1):
        row = _ROW.match(line)
        if not row:
            continue
        layer = row.group(1).strip()
        if layer == "layer" or not layer.strip("-: "):
            continue
        allowed = {name.strip() for name in row.group(2).split(",") if name.strip()}
        table[layer] = (number, allowed)
    return table


def folder_of(layer):
    return layer if layer.startswith("apps/") else "src/" + layer


def layer_of(path, table):
    """The layer whose folder holds `path`, the longest one; None outside all of them."""
    best = None
    for layer in table:
        if path.startswith(folder_of(layer) + "/") and len(layer) > len(best or ""):
            best = layer
    return best


def resolve(tree, path, include):
    """The file that `#include "include"` in `path` means, or None."""
    for base in ("src", "", posixpath.dirname(path), "apps", "tests"):
        candidate = posixpath.normpath(posixpath.join(base, include))
        if tree.has(candidate):
            return candidate
    return None


def check_table(tree):
    """Rows without a folder, rows that name unknown layers, folders without a row."""
    table = read_table(tree)
    if not table:
        yield Finding(TABLE, 1, "layers", "no layer table; write one row per folder: | layer | may include | sentence |")
        return
    for layer, (line, allowed) in table.items():
        if folder_of(layer) not in tree.folders:
            yield Finding(TABLE, line, "layers", f"row '{layer}' has no folder {folder_of(layer)}/; remove the row")
        for name in sorted(allowed - table.keys()):
            yield Finding(TABLE, line, "layers", f"row '{layer}' may include '{name}', which has no row; add or remove it")
        if layer in allowed:
            yield Finding(TABLE, line, "layers", f"row '{layer}' names itself; a folder may always include itself")
    reported = set()
    for path in tree.paths(*CODE, under=("src/", "apps/")):
        folder = posixpath.dirname(path)
        if layer_of(path, table) is None and folder not in reported:
            reported.add(folder)
            yield Finding(path, 1, "layers", f"folder {folder}/ has no row in {TABLE}; add one that says what it may include")


def check_includes(tree):
    table = read_table(tree)
    for path in tree.paths(*CODE, under=("src/", "apps/", "tests/", "bench/", "examples/")):
        layer = layer_of(path, table)
        for number, line in enumerate(tree.code(path).splitlines(), 1):
            include = _INCLUDE.match(line)
            if not include:
                continue
            target = resolve(tree, path, include.group(1))
            if target is None:
                yield Finding(path, number, "layers",
                              f'no file "{include.group(1)}" in src/; headers of libraries stand in <>')
                continue
            other = layer_of(target, table)
            if layer is None or tree.is_test(path) or other in (layer, None):
                continue
            if other not in table[layer][1]:
                allowed = ", ".join(sorted(table[layer][1])) or "nothing"
                yield Finding(path, number, "layers",
                              f"{layer} may not include {other} (allowed: {allowed}); move the code, or argue "
                              f"for a wider row in {TABLE} (code for tests only: list it under TESTS)")


RULES = (check_table, check_includes)
