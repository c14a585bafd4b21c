# SPDX-License-Identifier: Apache-2.0
"""Banned calls, each with what to write instead and the places where it is right, with the reason."""

import functools
import re
from dataclasses import dataclass

from tree import CODE, Finding

TESTS = "tests"  # stands for code that Tree.is_test calls so


@dataclass(frozen=True)
class Ban:
    names: str  # a pattern of identifiers: code without any of them is not searched
    pattern: str
    instead: str
    allowed: tuple = ()  # (path prefix or TESTS, reason)


POSIX = ("src/host/posix/", "the seam's real side is made of these")
GRPC = ("src/host/grpc/", "the network's real side; its events come from gRPC's threads")
SIGNALS = ("apps/", "the program's outermost shell")
PRINTS = ("src/base/check.cc", "a broken CHECK has only stderr left")
TOOLS = ("tools/", "developers' programs")
PEERS = ("tests/process/", "programs that tests of processes run")
TABLES = ("tests/simulation/", "a program whose output is the tables of a document")
JSON = (("src/json/", "the room that counts levels"),
        ("src/learn/data/read/jsonl_lines.cc", "makes no value, and counts levels itself"),
        ("src/learn/tokens/document_line.cc", "makes no value, and counts levels itself"),
        ("src/commands/engine/prediction_service.cc", "says where and why, and counts levels itself"))
RECORDS = ("tests/unchanged/", "a program whose output is recorded")

BANS = (
    Ban(r"\w+_clock|chrono|clock_gettime|gettimeofday",
        r"\bstd::chrono::\w+::now\b|\b\w+_clock::now\b|\bclock_gettime\b|\bgettimeofday\b",
        "take a host::Clock and call now()", (POSIX,)),
    Ban(r"s?rand|random_device|mt19937\w*|\w+_distribution|shuffle",
        r"(?<![\w.>:])(?:std::)?s?rand\s*\(|\brandom_device\b|\bmt19937|\bstd::\w+_distribution\b|\bstd::shuffle\b",
        "take a gossamer::Rng, or build one from (seed, Purpose, a, b)"),
    Ban(r"(?:secure_)?getenv|setenv",
        r"\b(?:secure_)?getenv\b|\bsetenv\b", "read configuration in apps/ and pass a value",
        (POSIX, SIGNALS, (TESTS, "optional data sets are found by GOSSAMER_DATA"))),
    Ban(r"j?thread|pthread_create|async",
        r"\bstd::j?thread\b|\bpthread_create\b|\bstd::async\b", "take a host::Compute and call run(task)",
        (POSIX, SIGNALS, (TESTS, "tests drive a seam from several threads"))),
    Ban(r"\w*mutex|condition_variable\w*|\w+_lock|lock_guard",
        r"\bstd::\w*mutex\b|\bstd::condition_variable|\bstd::lock_guard\b|\bstd::unique_lock\b|\bstd::scoped_lock\b",
        "give the object one owner thread; workers get spans and return",
        (POSIX, GRPC, ("src/host/sim/", "a Disk may be used by any thread"))),
    Ban(r"sleep_for|sleep_until|\w*sleep",
        r"\bsleep_for\b|\bsleep_until\b|\bu?sleep\s*\(|\bnanosleep\b",
        "wait on an event, or move the simulated clock", (POSIX,)),
    Ban(r"cout|cerr|clog|cin|iostream|print\w*|f?printf|f?puts",
        r"\bstd::(?:cout|cerr|clog|cin)\b|#\s*include\s*<iostream>|\bfmt::print|(?<![\w:])(?:std::)?f?printf\s*\("
        r"|\bstd::f?puts\b|(?<![\w:.])f?puts\s*\(",
        "return values or events; only apps/ prints", (SIGNALS, PRINTS, TOOLS, PEERS, TABLES, RECORDS)),
    Ban(r"f(?:re)?open|[io]?fstream|filesystem",
        r"\bf(?:re)?open\s*\(|#\s*include\s*<fstream>|\bstd::[io]?fstream\b|\bstd::filesystem\b|#\s*include\s*<filesystem>",
        "take a host::Disk",
        (POSIX, SIGNALS, (TESTS, "tests make and look into temporary directories"),
         TOOLS)),
    Ban(r"c?assert",
        r"(?<![\w.])assert\s*\(|#\s*include\s*<cassert>", "CHECK(condition, values...) stays on in every build"),
    Ban(r"abort|_?exit|quick_exit|terminate",
        r"(?<![\w.>:])(?:std::)?(?:abort|_?exit|quick_exit|terminate)\s*\(",
        "CHECK for our bug, Result for the world's failure",
        (SIGNALS, PRINTS, POSIX, (TESTS, "children of process tests end themselves"))),
    Ban(r"dynamic_cast|typeid",
        r"\bdynamic_cast\b|\btypeid\s*\(", "a virtual function, a variant or a template says what the type does"),
    Ban(r"sto\w+|ato\w|strto\w+",
        r"\bstd::(?:sto(?:i|l|ul|ll|ull|f|d|ld))\b|(?<![\w:])(?:std::)?(?:ato[ifl]|strto\w+)\s*\(",
        "std::from_chars: no exception, no locale, says how far it read", ((TESTS, "a test may throw"),)),
    Ban(r"parse|sax_parse|accept|from_\w+",
        r"\b\w*[jJ]son::(?:parse|sax_parse|accept|from_\w+)\s*\(", "read_json() refuses what is nested too deeply",
        JSON + ((TESTS, "a test may read what the program wrote"),)),
    Ban(r"using",
        r"\busing\s+namespace\s+std\s*;", "name what you use"),
    Ban(r"goto",
        r"(?<![\w.])goto\s+\w+\s*;", "return early from a small function"),
    Ban(r"__\w+__",
        r"\b__(?:DATE|TIME|TIMESTAMP)__\b", "builds are reproducible: use the project's version"),
)


def _allowed(tree, path, ban):
    return any(tree.is_test(path) if place == TESTS else path.startswith(place) for place, _ in ban.allowed)


_BY_NAME = [(re.compile(ban.names), re.compile(ban.pattern), ban) for ban in BANS]


@functools.cache
def _bans_of(name):
    """(pattern, ban) of each ban that code with this identifier may break."""
    return tuple((pattern, ban) for names, pattern, ban in _BY_NAME if names.fullmatch(name))


def check_banned(tree):
    for path in tree.paths(*CODE, under=("src/", "apps/", "tests/", "bench/", "examples/", "tools/")):
        code = tree.code(path)
        for pattern, ban in {pair for name in set(re.findall(r"[A-Za-z_]\w*", code)) for pair in _bans_of(name)}:
            if _allowed(tree, path, ban):
                continue
            for match in pattern.finditer(code):
                yield Finding(path, code.count("\n", 0, match.start()) + 1, "banned",
                              f"'{match.group(0).strip()}': {ban.instead}")


RULES = (check_banned,)
