# SPDX-License-Identifier: Apache-2.0
import unittest

import banned
from tree import Tree

# One offending line per ban, in the order of banned.BANS, and one clean line that looks alike.
SAMPLES = (
    ("auto t = std::chrono::steady_clock::now();", "const Instant t = clock.now();"),
    ("int r = rand();", "int r = my_rand(); int b = brand(3); s.rand();"),
    ('auto p = getenv("HOME");', "auto p = environment.get();"),
    ("std::jthread worker(f);", "int std_thread = 1; std::this_thread_id x;"),
    ("std::mutex m;", "int mutex = 0;"),
    ("std::this_thread::sleep_for(d);", "clock.advance(d); oversleep(d);"),
    ("std::cout << 1;", "out += fmt::format(\"{}\", 1); std::snprintf(a, 3, b);"),
    ("std::ifstream in(path);", "disk.open_sequential(path);"),
    ("assert(x > 0);", "static_assert(x > 0); CHECK(x > 0, x);"),
    ("std::abort();", "run.abort_message(); transaction.abort();"),
    ("auto p = dynamic_cast<A*>(b);", "auto p = static_cast<A*>(b);"),
    ("int n = std::stoi(s);", "auto n = parse_integer(s);"),
    ("auto j = nlohmann::ordered_json::parse(text);", "const auto j = read_json<nlohmann::json>(text);"),
    ("using namespace std;", "using namespace std::string_view_literals;"),
    ("goto done;", "int done = 1; // goto done;"),
    ("auto d = __DATE__;", "auto d = kVersion;"),
)


def findings(path, line):
    return [str(finding) for finding in banned.check_banned(Tree({path: line + "\n"}))]


class BannedTest(unittest.TestCase):
    # Every ban has a sample here.
    def test_samples_are_complete(self):
        self.assertEqual(len(SAMPLES), len(banned.BANS))

    # The offending line is found by its own ban, which names the replacement; the clean line is not found.
    def test_each_ban(self):
        for ban, (offending, clean) in zip(banned.BANS, SAMPLES):
            with self.subTest(offending):
                found = findings("src/learn/a.cc", offending)
                self.assertEqual(len(found), 1, found)
                self.assertIn(ban.instead, found[0])
                self.assertEqual(findings("src/learn/a.cc", clean), [])

    # A place in the table's last column is free of that ban, and only of that.
    def test_allowed_places(self):
        self.assertEqual(findings("src/host/posix/clock.cc", SAMPLES[0][0]), [])
        self.assertEqual(len(findings("src/host/posix/clock.cc", SAMPLES[1][0])), 1)
        self.assertEqual(findings("apps/cli/main.cc", SAMPLES[6][0]), [])
        self.assertEqual(findings("tools/a/a.cc", SAMPLES[6][0]), [])
        self.assertEqual(findings("src/learn/a_test.cc", SAMPLES[2][0]), [])

    # Tests neither sleep nor read the clock.
    def test_tests_do_not_wait(self):
        self.assertEqual(len(findings("tests/process/kill_test.cc", SAMPLES[5][0])), 1)
        self.assertEqual(len(findings("src/learn/a_test.cc", SAMPLES[0][0])), 1)

    # Comments and literals are not code.
    def test_comments_and_literals(self):
        self.assertEqual(findings("src/learn/a.cc", '// std::mutex m;\nauto s = "std::mutex"; /* rand() */'), [])

    # Each allowed place carries its reason.
    def test_reasons(self):
        for ban in banned.BANS:
            for place, reason in ban.allowed:
                self.assertTrue(place and len(reason) > 10, ban.pattern)


if __name__ == "__main__":
    unittest.main()
