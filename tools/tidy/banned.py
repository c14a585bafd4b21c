# SPDX-License-Identifier: Apache-2.0
"""Banned calls, each with what to write instead and the places where it is right, with the reason."""

import re
from dataclasses import dataclass

from tree import CODE, Finding

TESTS = "tests"  # stands for code that Tree.is_test calls so


@dataclass(frozen=True)
class Ban:
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

BANS = (
    Ban(r"\bstd::chrono::\w+::now\b|\b\w+_clock::now\b|\bclock_gettime\b|\bgettimeofday\b",
        "take a host::Clock and call now()", (POSIX,)),
    Ban(r"(?<![\w.>:])(?:std::)?s?rand\s*\(|\brandom_device\b|\bmt19937|\bstd::\w+_distribution\b|\bstd::shuffle\b",
        "take a gossamer::Rng, or build one from (seed, Purpose, a, b)"),
    Ban(r"\b(?:secure_)?getenv\b|\bsetenv\b", "read configuration in apps/ and pass a value",
        (POSIX, SIGNALS, (TESTS, "optional data sets are found by GOSSAMER_DATA"))),
    Ban(r"\bstd::j?thread\b|\bpthread_create\b|\bstd::async\b", "take a host::Compute and call run(task)",
        (POSIX, SIGNALS, (TESTS, "tests drive a seam from several threads"))),
    Ban(r"\bstd::\w*mutex\b|\bstd::condition_variable|\bstd::lock_guard\b|\bstd::unique_lock\b|\bstd::scoped_lock\b",
        "give the object one owner thread; workers get spans and return",
        (POSIX, GRPC, ("src/host/sim/", "a Disk may be used by any thread"))),
    Ban(r"\bsleep_for\b|\bsleep_until\b|\bu?sleep\s*\(|\bnanosleep\b",
        "wait on an event, or move the simulated clock", (POSIX,)),
    Ban(r"\bstd::(?:cout|cerr|clog|cin)\b|#\s*include\s*<iostream>|\bfmt::print|(?<![\w:])(?:std::)?f?printf\s*\("
        r"|\bstd::f?puts\b|(?<![\w:.])f?puts\s*\(",
        "return values or events; only apps/ prints", (SIGNALS, PRINTS, TOOLS, PEERS, TABLES)),
    Ban(r"\bf(?:re)?open\s*\(|#\s*include\s*<fstream>|\bstd::[io]?fstream\b|\bstd::filesystem\b|#\s*include\s*<filesystem>",
        "take a host::Disk",
        (POSIX, SIGNALS, (TESTS, "tests make and look into temporary directories"),
         TOOLS)),
    Ban(r"(?<![\w.])assert\s*\(|#\s*include\s*<cassert>", "CHECK(condition, values...) stays on in every build"),
    Ban(r"(?<![\w.>:])(?:std::)?(?:abort|_?exit|quick_exit|terminate)\s*\(",
        "CHECK for our bug, Result for the world's failure",
        (SIGNALS, PRINTS, POSIX, (TESTS, "children of process tests end themselves"))),
    Ban(r"\bdynamic_cast\b|\btypeid\s*\(", "a virtual function, a variant or a template says what the type does"),
    Ban(r"\bstd::(?:sto(?:i|l|ul|ll|ull|f|d|ld))\b|(?<![\w:])(?:std::)?(?:ato[ifl]|strto\w+)\s*\(",
        "std::from_chars: no exception, no locale, says how far it read", ((TESTS, "a test may throw"),)),
    Ban(r"\busing\s+namespace\s+std\s*;", "name what you use"),
    Ban(r"(?<![\w.])goto\s+\w+\s*;", "return early from a small function"),
    Ban(r"\b__(?:DATE|TIME|TIMESTAMP)__\b", "builds are reproducible: use the project's version"),
)


def _allowed(tree, path, ban):
    return any(tree.is_test(path) if place == TESTS else path.startswith(place) for place, _ in ban.allowed)


def check_banned(tree):
    compiled = [(re.compile(ban.pattern), ban) for ban in BANS]
    everything = re.compile("|".join(f"(?:{ban.pattern})" for ban in BANS))
    for path in tree.paths(*CODE, under=("src/", "apps/", "tests/", "bench/", "examples/", "tools/")):
        code = tree.code(path)
        if not everything.search(code):
            continue
        for number, line in enumerate(code.splitlines(), 1):
            for pattern, ban in compiled:
                match = pattern.search(line)
                if match and not _allowed(tree, path, ban):
                    yield Finding(path, number, "banned", f"'{match.group(0).strip()}': {ban.instead}")


RULES = (check_banned,)
