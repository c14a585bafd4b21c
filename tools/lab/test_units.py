# SPDX-License-Identifier: Apache-2.0
"""The parts of the lab that need neither root nor a kernel."""

import os
import tempfile
import unittest

import cgroups
import namespaces
import network
import units


class UnitsTest(unittest.TestCase):
    # Every unit of rates and times is read, at both ends of its range.
    def test_quantities(self):
        for text, bits in (
            ("10kbit", 10**4),
            ("10000bit", 10**4),
            ("1.5mbit", 1_500_000),
            ("100mbit", 10**8),
            ("100gbit", 10**11),
        ):
            self.assertEqual(units.parse_rate(text), bits)
        for text, microseconds in (
            ("0", 0),
            ("0ms", 0),
            ("250us", 250),
            ("20ms", 20_000),
            ("0.5ms", 500),
            ("60s", 60 * 10**6),
        ):
            self.assertEqual(units.parse_rtt(text), microseconds)
        for text, cores in (("0.01", 0.01), ("0.5", 0.5), ("2", 2.0), ("1024", 1024.0)):
            self.assertEqual(units.parse_cpu(text), cores)

    # A word that is no value, or out of range, is refused with the word and what was expected.
    def test_wrong_quantities(self):
        for parse, words in (
            (
                units.parse_rate,
                ("", "100", "mbit", "-1mbit", "100 mbit", "100mb", "9999bit", "101gbit", "1e3mbit"),
            ),
            (units.parse_rtt, ("", "20", "ms", "-1ms", "20 ms", "61s", "20min", "nan")),
            (units.parse_cpu, ("", "0", "-1", "half", "1025", "nan", "inf")),
        ):
            for word in words:
                with self.subTest(parse=parse.__name__, word=word), self.assertRaisesRegex(
                    ValueError, f"^'{word}' is no .*expected"
                ):
                    parse(word)

    # The last word on a node counts, for all sequences of up to three words about up to three nodes.
    def test_per_node(self):
        def words_of(length):
            if length == 0:
                return [[]]
            return [[*words, word] for words in words_of(length - 1) for word in ("A", "1=B", "2=C", "3=D")]

        for nodes in (1, 2, 3):
            for words in [words for length in range(4) for words in words_of(length)]:
                named = [int(word[0]) for word in words if "=" in word]
                if any(node > nodes for node in named):
                    with self.assertRaisesRegex(ValueError, f"there is no node '.'; expected 1 to {nodes}"):
                        units.per_node(words, nodes, str, "-")
                    continue
                expected = []
                for node in range(1, nodes + 1):
                    about = [word[-1] for word in words if "=" not in word or word.startswith(f"{node}=")]
                    expected.append(about[-1] if about else "-")
                self.assertEqual(units.per_node(words, nodes, str, "-"), expected, words)
        for word in ("0=A", "=A", "x=A", "-1=A", "1.0=A"):
            with self.assertRaises(ValueError):
                units.per_node([word], 3, str, "-")

    # A burst is worth at most 0.4 ms of the link from 100 Mbit/s on, and always has room for a super-packet
    # and headers.
    def test_bursts(self):
        self.assertEqual(
            [network.super_packet_bytes(rate) for rate in (10**4, 10**8, 10**9, 10**11, None)],
            [4096, 4096, 16384, 65536, 65536],
        )
        for rate in range(10**8, 10**10, 10**7):
            size = network.super_packet_bytes(rate)
            self.assertLessEqual(size * 1.25 / (rate / 8), 0.41e-3)
            self.assertGreaterEqual(size * 5 // 4 - size, 1024)

    # Quotas keep the kernel's smallest of 1 ms and give the share that was asked for.
    def test_quotas(self):
        self.assertEqual(cgroups.quota_of(0.5), (5000, 10000))
        self.assertEqual(cgroups.quota_of(2), (20000, 10000))
        for hundredths in range(1, 1000):
            quota, period = cgroups.quota_of(hundredths / 100)
            self.assertGreaterEqual(quota, 1000)
            self.assertLessEqual(period, 1_000_000)
            self.assertAlmostEqual(quota / period, hundredths / 100, delta=1e-3)


class NamesTest(unittest.TestCase):
    # Labs whose names begin alike do not find one another's namespaces.
    def test_of_lab(self):
        labs = ("a", "a-1", "a_1", "1", "11")
        with tempfile.TemporaryDirectory() as folder:
            made = {lab: [namespaces.name_of(lab, node) for node in (1, 11, namespaces.HUB)] for lab in labs}
            others = ["gossamer", "other.a.1", "gossamer.a.1.x"]
            for name in sum(made.values(), others):
                with open(os.path.join(folder, name), "w", encoding="ascii"):
                    pass
            before, namespaces.FOLDER = namespaces.FOLDER, folder
            self.addCleanup(setattr, namespaces, "FOLDER", before)
            for lab in labs:
                self.assertEqual(namespaces.of_lab(lab), sorted(made[lab]))
            self.assertEqual(namespaces.of_lab("b"), [])


class HierarchyTest(unittest.TestCase):
    """Both versions of control groups, as folders of plain files, which show what is written where."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, text):
        with open(os.path.join(self.folder.name, name), "w", encoding="ascii") as file:
            file.write(text)

    def read(self, name):
        with open(os.path.join(self.folder.name, name), encoding="ascii") as file:
            return file.read()

    def find(self, *mounts):
        self.write(
            "mounts", "".join(f"none {self.folder.name} {kind} {options} 0 0\n" for kind, options in mounts)
        )
        return cgroups.Hierarchy.find(os.path.join(self.folder.name, "mounts"))

    # Version 1 with the controller cpu goes first. Version 2 counts only where it has that controller.
    def test_find(self):
        self.write("cgroup.controllers", "cpuset cpu io\n")
        self.assertEqual(self.find(("cgroup2", "rw"), ("cgroup", "rw,cpu,cpuacct")).version, 1)
        self.assertEqual(self.find(("cgroup", "rw,cpuacct"), ("cgroup2", "rw")).version, 2)
        self.assertIsNone(self.find(("cgroup", "rw,cpuset"), ("tmpfs", "rw")))
        self.write("cgroup.controllers", "cpuset io\n")
        self.assertIsNone(self.find(("cgroup2", "rw")))

    # Each version's own files get the limit, and lose it.
    def test_limit(self):
        for version in (1, 2):
            hierarchy = cgroups.Hierarchy(self.folder.name, version)
            hierarchy.create(f"group{version}")
            hierarchy.limit(f"group{version}", 0.25)
        self.assertEqual(self.read("group1/cpu.cfs_period_us"), "10000")
        self.assertEqual(self.read("group1/cpu.cfs_quota_us"), "2500")
        self.assertEqual(self.read("group2/cpu.max"), "2500 10000")
        self.assertEqual(self.read("cgroup.subtree_control"), "+cpu")
        for version in (1, 2):
            cgroups.Hierarchy(self.folder.name, version).limit(f"group{version}", None)
        self.assertEqual(self.read("group1/cpu.cfs_quota_us"), "-1")
        self.assertEqual(self.read("group2/cpu.max"), "max 10000")

    # A lab's groups are found by name, their processes by the kernel's list. This process is left out.
    def test_members(self):
        hierarchy = cgroups.Hierarchy(self.folder.name, 2)
        for group in ("gossamer.a.1", "gossamer.a.2", "gossamer.a-1.1", "gossamer.a.x"):
            hierarchy.create(group)
        self.assertEqual(hierarchy.of_lab("a"), ["gossamer.a.1", "gossamer.a.2"])
        hierarchy.enter("gossamer.a.1")
        self.assertEqual(self.read("gossamer.a.1/cgroup.procs"), str(os.getpid()))
        self.write("gossamer.a.2/cgroup.procs", "17\n18\n")
        self.assertEqual(hierarchy.processes(["gossamer.a.1", "gossamer.a.2"]), {17, 18})
        hierarchy.enter("gossamer.a.3")  # no such group: nothing to enter
        self.assertFalse(os.path.exists(os.path.join(self.folder.name, "gossamer.a.3")))


if __name__ == "__main__":
    unittest.main()
