# SPDX-License-Identifier: Apache-2.0
"""Reports of a fleet's nodes about themselves: the page for Prometheus, lines of the log, versions."""

import json
import os
import re
import socket
import unittest
import urllib.error
import urllib.request

import program
from fleet import DEADLINE, Fleet

PAGE = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "protocols", "metrics.md")


def scrape(at):
    """{name: [(labels, value)]} of a page, as Prometheus reads it."""
    samples = {}
    with urllib.request.urlopen(at, timeout=DEADLINE) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith("#"):
                continue
            name, labels, value = re.fullmatch(r"(\w+)(\{.*\})? (\S+)", line).groups()
            pairs = dict(re.findall(r'(\w+)="([^"]*)"', labels or ""))
            samples.setdefault(name, []).append((pairs, float(value)))
    return samples


def value(samples, name, **labels):
    """The one value with these labels."""
    found = [number for pairs, number in samples.get(name, []) if labels.items() <= pairs.items()]
    return found[0] if len(found) == 1 else None


class Reports(unittest.TestCase):
    def setUp(self):
        self.fleet = Fleet(self)
        flags = ("--metrics", "127.0.0.1:0", "--log-level", "debug", "--log-format")
        self.leader = self.fleet.lead("--listen", "127.0.0.1:0", *flags, "json")
        self.member = self.fleet.join("a", *flags, "logfmt")
        self.pages = {}
        for who, process in (("leader", self.leader), ("a", self.member)):
            line = process.wait_for_line("metrics at ")
            self.pages[who] = re.search(r"http://\S+/metrics", line).group()
        self.fleet.join("b")
        self.fleet.wait_for_members(2)

    def wait_for(self, who, accept):
        for _ in program.looks(DEADLINE):
            samples = scrape(self.pages[who])
            if accept(samples):
                return samples
        raise AssertionError(f"{who}: {samples}")

    # A member may be missed and begin again at any time on a busy machine. So values that belong together are compared
    # on one page, until they fit.
    def tells_of_the_fleet(self, page):
        begun = [one for one in self.fleet.events() if one["event"] == "begun"]
        held = [number for _, number in page.get("gossamer_coordinator_member_things", [])]
        return (
            value(page, "gossamer_coordinator_members", state="serving") == 2
            and value(page, "gossamer_coordinator_phase", phase="settled") == 1
            and value(page, "gossamer_coordinator_things") == sum(held) == 12
            and [number for _, number in page["gossamer_link_up"]] == [1, 1]
            and "gossamer_link_round_trip_seconds" in page
            and value(page, "gossamer_events_total", event="begun") == len(begun) >= 2
        )

    def agrees_with_the_leader(self, page):
        node = page["gossamer_node_info"][0][0]["node"]
        things = value(scrape(self.pages["leader"]), "gossamer_coordinator_member_things", node=node)
        both_met = len(page.get("gossamer_link_round_trip_seconds", [])) == 2
        return both_met and (things or 0) > 0 and value(page, "gossamer_member_things") == things

    # Each node's page has exactly the names of its protocol page, and the values of status.
    def test_metrics(self):
        with open(PAGE, encoding="utf-8") as file:
            tables = file.read().split("\n## ")
        names = {
            table.split("\n")[0]: set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) for table in tables
        }
        leader = self.wait_for("leader", self.tells_of_the_fleet)
        self.assertEqual(set(leader), names["Every node"] | names["Coordinators"])
        self.assertEqual(value(leader, "gossamer_coordinator_leads"), 1)
        self.assertEqual(value(leader, "gossamer_node_info", role="coordinator", node="1"), 1)
        step = value(leader, "gossamer_coordinator_committed_step")
        self.wait_for("leader", lambda page: value(page, "gossamer_coordinator_committed_step") > step)

        member = self.wait_for("a", self.agrees_with_the_leader)
        self.assertEqual(set(member), names["Every node"] | names["Members"] | names["Members of a fleet check"])
        steps = value(member, "gossamer_check_steps_total")
        self.wait_for("a", lambda page: value(page, "gossamer_check_steps_total") > steps)

    # Requests for other paths get 404. A hundred scrapes, one after the other, are answered.
    def test_other_pages(self):
        with self.assertRaises(urllib.error.HTTPError) as error:
            scrape(self.pages["a"].replace("/metrics", "/secrets"))
        self.assertEqual(error.exception.code, 404)
        error.exception.close()
        self.wait_for("leader", lambda page: "gossamer_epoch" in page)
        for _ in range(100):
            self.assertIn("gossamer_epoch", scrape(self.pages["leader"]))

    # Every line has time, level, run and epoch. Every event stands in events.jsonl and in the log.
    def test_log(self):
        self.assertEqual(self.fleet.ask("stop", self.fleet.run).status, 0)
        leader = self.leader.finish().err.splitlines()
        lines = [json.loads(line) for line in leader]
        for line in lines:
            self.assertLessEqual({"time", "level", "run", "node", "epoch"}, set(line))
            self.assertEqual(line["node"], 1)
        events = self.fleet.events()
        told = [
            (line["event"], line.get("peer", 0), line["epoch"])
            for line in lines
            if line["level"] != "debug" and "event" in line
        ]
        self.assertEqual(told, [(one["event"], one["node"], one["epoch"]) for one in events])
        self.assertIn("link_up", [line.get("event") for line in lines if line["level"] == "debug"])
        self.assertEqual({line["run"] for line in lines if "event" in line}, {events[0]["run"]})
        for line in self.member.finish().err.splitlines():
            self.assertRegex(line, r"^time=\S+Z level=(debug|info|warning) run=\w* node=\d+ epoch=\d+ (event|text)=")


class Words(unittest.TestCase):
    # A taken port, and an unknown level or format, are refused.
    def test_of_flags(self):
        fleet = Fleet(self)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            at = f"127.0.0.1:{taken.getsockname()[1]}"
            for flags, status, words in (
                (("--metrics", at), 1, at),
                (("--metrics", "here"), 2, "HOST:PORT"),
                (("--log-level", "loud"), 2, "debug, info"),
                (("--log-format", "xml"), 2, "logfmt"),
            ):
                done = fleet.ask("coordinator", "check", "--out", fleet.run, "--listen", "127.0.0.1:0", *flags)
                self.assertEqual(done.status, status, done.err)
                self.assertIn(words, done.err)
        fleet.lead("--listen", "127.0.0.1:0")  # the directory serves for the next attempt

    # The versions by which nodes agree are in both forms of output.
    def test_of_versions(self):
        versions = program.run("version", "--json").json()
        self.assertEqual(versions["wire_versions"], {"link": {"min": 1, "max": 1}})
        self.assertIn("wire", program.run("version").out)


if __name__ == "__main__":
    unittest.main()
