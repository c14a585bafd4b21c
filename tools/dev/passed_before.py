# SPDX-License-Identifier: Apache-2.0
"""Which tests need not run again, because they passed and all that they read is as it was.

A test has a key, a hash of
- the command, its environment, and every file that these name;
- every file of the tree but C++ sources, which act through programs alone;
- the libraries of the build that programs load, the packages and kernel of the system, and what its processor can do.
A program with a skipped case is not kept, because it may find tomorrow what it lacks today. Tests of the label `house`
read sources, so they always run. Without git nothing is known of the tree, and all tests run.
"""

import functools
import hashlib
import json
import os
import re
import subprocess
from pathlib import Path

import count_tests

_SOURCES = (".cc", ".h")
_VARIABLES = ("GOSSAMER_", "GTEST_")


@functools.cache
def _digest(path):
    """The hash of a file's bytes; each file is read once."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _tree(root):
    """A hash of the tree's files but C++ sources; None without git."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=root, capture_output=True, check=False
    )
    if listed.returncode != 0:
        return None
    hasher = hashlib.sha256()
    for name in sorted(os.fsdecode(name) for name in listed.stdout.split(b"\0") if name):
        path = Path(root, name)
        if not name.endswith(_SOURCES) and path.is_file():
            hasher.update(f"{name} {_digest(path)}\n".encode())
    return hasher.hexdigest()


def _machine(build):
    """What programs meet outside the tree: libraries that they load, packages, kernel, processor, variables."""
    said = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(_VARIABLES)]
    said.append(os.uname().release)
    packages = Path("/var/lib/dpkg/status")
    said += [_digest(path) for path in [*sorted(build.rglob("*.so")), packages] if path.is_file()]
    processor = Path("/proc/cpuinfo")
    if processor.is_file():
        said += sorted(set(re.findall(r"^(?:model name|flags)\s*:.*", processor.read_text(), re.M)))
    return "\n".join(said)


def _key(test, common):
    values = list(test["command"])
    for value in test["properties"]:
        if value["name"] in ("ENVIRONMENT", "LABELS"):
            values += value["value"]
    hasher = hashlib.sha256(common.encode())
    for value in values:
        hasher.update(value.encode() + b"\0")
        path = Path(value.partition("=")[2] or value)
        if path.is_absolute() and path.is_file():
            hasher.update(_digest(path).encode())
    return hasher.hexdigest()


def _labels(test):
    return [label for value in test["properties"] if value["name"] == "LABELS" for label in value["value"]]


def keys(tests, common):
    """The key of each test that may be left out."""
    return {test["name"]: _key(test, common) for test in tests if test.get("command") and "house" not in _labels(test)}


def after(before, now, tests):
    """The keys `before`, with those of `now` for tests that passed without a skipped case, and none for the others."""
    kept = dict(before)
    for test in tests:
        name = test.get("name")
        good, failures, skipped = count_tests.count([test], 0)
        kept.pop(name, None)
        if name in now and good and not failures and not skipped:
            kept[name] = now[name]
    return kept


def _kept(folder):
    try:
        return json.loads((folder / "passed.json").read_text())
    except (OSError, ValueError):
        return {}


def plan(folder):
    """(keys, names): the keys of the tests in a build folder, and which of them passed before with the same key."""
    shown = subprocess.run(
        ["ctest", "--test-dir", folder, "--show-only=json-v1"], capture_output=True, check=True, text=True
    )
    tests = [{"properties": [], **test} for test in json.loads(shown.stdout)["tests"]]
    tree = _tree(Path(__file__).resolve().parents[2])
    build = next((path for path in [folder, *folder.parents] if (path / "CMakeCache.txt").exists()), folder)
    now = keys(tests, tree + _machine(build)) if tree else {}
    before = _kept(folder)
    return now, [name for name, key in now.items() if before.get(name) == key]


def keep(folder, now, tests):
    """Remembers what passed of the tests in a folder, from the report of their run."""
    (folder / "passed.json").write_text(json.dumps(after(_kept(folder), now, tests)))
