# SPDX-License-Identifier: Apache-2.0
"""Layers: the table in src/README.md is the rule, every #include is checked against it; engines stand apart."""

import posixpath
import re

from tree import CODE, Finding

TABLE = "src/README.md"
_ROW = re.compile(r"^\|([^|]*)\|([^|]*)\|.*\|\s*$")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"\n]+)"', re.MULTILINE)


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
    folder = posixpath.dirname(path)
    while folder:
        layer = folder if folder.startswith("apps/") else folder.removeprefix("src/")
        if layer in table and folder_of(layer) == folder:
            return layer
        folder = posixpath.dirname(folder)
    return None


def resolve(tree, path, include):
    """The file that `#include "include"` in `path` means, or None."""
    for base in ("src", "", posixpath.dirname(path), "apps", "tests"):
        candidate = posixpath.normpath(posixpath.join(base, include))
        if tree.has(candidate):
            return candidate
    return None


def includes(tree, path):
    """(line, what stands between the quotes, the file that it means or None) of each include in `path`."""
    def find():
        code = tree.code(path)
        return [(code.count("\n", 0, found.start(1)) + 1, found.group(1), resolve(tree, path, found.group(1)))
                for found in _INCLUDE.finditer(code)]
    return tree.once("includes", path, find)


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
        for number, include, target in includes(tree, path):
            if target is None:
                yield Finding(path, number, "layers",
                              f'no file "{include}" in src/; headers of libraries stand in <>')
                continue
            other = layer_of(target, table)
            if layer is None or tree.is_test(path) or other in (layer, None):
                continue
            if other not in table[layer][1]:
                allowed = ", ".join(sorted(table[layer][1])) or "nothing"
                yield Finding(path, number, "layers",
                              f"{layer} may not include {other} (allowed: {allowed}); move the code, or argue "
                              f"for a wider row in {TABLE} (code for tests only: list it under TESTS)")


def circle(graph):
    """The first circle of node -> nodes, as [a, b, a]; None without one."""
    done = set()

    def walk(way):
        for to in sorted(graph.get(way[-1], ())):
            if to in way:
                return way[way.index(to):] + [to]
            if to not in done and (found := walk(way + [to])):
                return found
        done.add(way[-1])
        return None

    return next((found for node in sorted(graph) if node not in done and (found := walk([node]))), None)


def check_circles(tree):
    """Neither what the table allows nor what product code includes leads from a layer back to it."""
    table = read_table(tree)
    allowed = {layer: names - {layer} for layer, (_, names) in table.items()}
    if found := circle(allowed):
        yield Finding(TABLE, table[found[0]][0], "circle",
                      f"layers may include each other in a circle: {' -> '.join(found)}; take one name out of a row")
    between = {}  # (layer, layer) -> the first include that leads from the one to the other
    for path in tree.paths(*CODE, under=("src/", "apps/")):
        for number, _, target in () if tree.is_test(path) else includes(tree, path):
            pair = (layer_of(path, table), layer_of(target, table) if target else None)
            if None not in pair and pair[0] != pair[1]:
                between.setdefault(pair, (path, number))
    graph = {}
    for layer, other in between:
        graph.setdefault(layer, set()).add(other)
    if found := circle(graph):
        yield Finding(*between[found[0], found[1]], "circle",
                      f"layers include each other in a circle: {' -> '.join(found)}; move what both need below them")


ENGINES = "src/engines/"
SHARED = "run"  # the folder of what every engine needs


def _engine_of(path):
    """The engine whose folder holds `path`, or None."""
    parts = path[len(ENGINES):].split("/") if path.startswith(ENGINES) else []
    return parts[0] if len(parts) > 1 and parts[0] != SHARED else None


def _knows(path, engine):
    """Whether `path` may include the engine's headers."""
    return path.startswith(("src/commands/", f"{ENGINES}{engine}/", f"src/simulation/{engine}/"))


TOY = "tests/toy/"  # an engine that shows what the shared rooms are enough for
COMMANDS = "src/commands/"
SHARED_COMMANDS = (f"{COMMANDS}engines.h", f"{COMMANDS}engine/", f"{COMMANDS}run/")  # those of every engine


def check_toy(tree):
    """The toy engine includes shared rooms alone: no engine of the product, and no command of one."""
    for path in tree.paths(*CODE, under=(TOY,)):
        for number, include, target in includes(tree, path):
            target = target or ""
            own = target.startswith(COMMANDS) and not target.startswith(SHARED_COMMANDS)
            if own or target.startswith(("src/learn/", "src/simulation/")) or _engine_of(target):
                yield Finding(path, number, "engines",
                              f'"{include}": {TOY} includes shared rooms alone, of commands '
                              f'{", ".join(SHARED_COMMANDS)}; move what every engine needs there')


def check_engines(tree):
    """Only commands and an engine's own simulation know an engine, and no engine knows another."""
    for path in tree.paths(*CODE, under=("src/", "apps/", "bench/", "examples/", "tools/")):
        for number, include, target in () if tree.is_test(path) else includes(tree, path):
            engine = _engine_of(target or "")
            if engine and not _knows(path, engine):
                yield Finding(path, number, "engines",
                              f'"{include}": only src/commands/, {ENGINES}{engine}/ and src/simulation/{engine}/ know '
                              "this engine; take a value or an interface from below the engines")


# Folder -> its namespace below gossamer; a folder inside has the same, unless it stands here itself.
NAMESPACES = {
    "src/base/": "", "src/json/": "", "src/kernels/": "kernels", "src/exact/": "exact", "src/host/": "host", "src/net/": "net", "src/cluster/": "cluster",
    "src/cluster/placement/": "placement", "src/learn/data/": "data", "src/learn/text/": "text", "src/learn/tokens/": "tokens", "src/learn/lsh/": "lsh",
    "src/learn/sparse/": "sparse", "src/settings/": "settings", "src/tensors/": "tensors", "src/run/": "run",
    "src/engines/run/": "engine", "src/engines/check/": "check", "src/engines/sparse/": "sparse_engine",
    "src/engines/pipeline/": "pipeline",
    "src/simulation/": "simulation", "src/node/": "node", "src/commands/": "commands", "apps/cli/": "cli",
}
_NAMESPACE = re.compile(r"^namespace gossamer(?:::(\w+))?[\w:]* \{(?!.*\})", re.MULTILINE)


def check_namespaces(tree):
    """A file declares in the namespace of its room. Forward declarations of others stand on one line."""
    for path in tree.paths(*CODE, under=("src/", "apps/")):
        room = max((folder for folder in NAMESPACES if path.startswith(folder)), key=len, default=None)
        if room is None:
            yield Finding(path, 1, "namespace", "its folder has no namespace; add it to NAMESPACES in tools/tidy/layers.py")
            continue
        code = tree.code(path)
        for found in _NAMESPACE.finditer(code):
            name = found.group(1) or ""
            if name != NAMESPACES[room] and not (room == "src/base/" and name.endswith("_detail")):
                wanted = "::".join(filter(None, ("gossamer", NAMESPACES[room])))
                yield Finding(path, code.count("\n", 0, found.start()) + 1, "namespace",
                              f"namespace gossamer::{name} in {room}; code of this folder stands in {wanted}")


RULES = (check_table, check_includes, check_circles, check_engines, check_toy, check_namespaces)
