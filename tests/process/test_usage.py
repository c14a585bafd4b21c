# SPDX-License-Identifier: Apache-2.0
"""First encounters: help, wrong words, missing files, wrong data. Exit statuses are a contract."""

import json
import os
import subprocess
import tempfile
import unittest

import program
from ports import free_ports

COMMANDS = [
    ["train"],
    ["eval"],
    ["predict"],
    ["data", "import"],
    ["data", "inspect"],
    ["bench", "kernels"],
    ["bench", "links"],
    ["bench", "sparse-step"],
    ["coordinator"],
    ["join"],
    ["token", "create"],
    ["token", "list"],
    ["token", "revoke"],
    ["node", "expel"],
    ["status"],
    ["stop"],
    ["simulate"],
    ["doctor"],
    ["version"],
]


class Help(unittest.TestCase):
    # Every command explains itself on standard output, with an example of itself.
    def test_every_command(self):
        for command in COMMANDS:
            with self.subTest(command=command):
                done = program.run(*command, "--help")
                self.assertEqual(done.status, 0, done.err)
                self.assertEqual(done.err, "")
                example = done.out[done.out.index("Example:") :]
                self.assertIn("gossamer " + " ".join(command), example)

    # The general help names all commands. Without any command it goes to standard error with status 2.
    def test_general(self):
        done = program.run("--help")
        self.assertEqual(done.status, 0)
        for command in COMMANDS:
            self.assertIn(" ".join(command), done.out)
        self.assertEqual(program.run("help").out, done.out)
        nothing = program.run()
        self.assertEqual((nothing.status, nothing.out), (2, ""))
        self.assertIn("Usage: gossamer COMMAND", nothing.err)

    # `gossamer help train` and `gossamer data --help` print the help of the command.
    def test_ways_to_ask(self):
        self.assertEqual(program.run("help", "train").out, program.run("train", "--help").out)
        group = program.run("data", "--help")
        self.assertEqual(group.status, 0)
        self.assertIn("data import", group.out)
        self.assertIn("data inspect", group.out)


class WrongWords(unittest.TestCase):
    def refused(self, arguments, *parts):
        done = program.run(*arguments)
        self.assertEqual(done.status, 2, f"{arguments}: {done.out}{done.err}")
        self.assertEqual(done.out, "")
        for part in parts:
            self.assertIn(part, done.err, f"{arguments}")
        self.assertIn("to do", done.err)

    # The nearest right word is named, whatever kind of word was wrong.
    def test_nearest(self):
        self.refused(["trian"], "'train'")
        self.refused(["data", "inport"], "'data import'")
        self.refused(["data"], "import, inspect")
        self.refused(["train", "xmc", "--outt", "x"], "--out")
        self.refused(["predict", "x", "--topp=3"], "--top")
        self.refused(["train", "xcm", "--out", "x"], "'xmc'")
        self.refused(["train", "xmc", "train.bach=3", "--out", "x"], "'train.batch'")
        self.refused(["train", "xmc", "batch=3", "--out", "x"], "'train.batch'")
        self.refused(["train", "--keys", "dictonary"], "'dictionary'")
        self.refused(["train", "--keys", "spares"], "no preset or engine", "'sparse'")
        self.refused(["data", "import", "xcm", "a", "--out", "b"], "'xmc'")
        self.refused(["bench", "sparse-step", "step=3"], "'steps'")
        self.refused(["coordinator", "check", "engine=sparse", "--out", "x"], "'engine=sparse'", "'engine=check'")

    # A flag that would do nothing is refused, and the kinds of data are named which have it.
    def test_flags_of_other_data(self):
        self.refused(["data", "import", "dictionary", "a", "--out", "b", "--skip-bad", "3"], "not for dictionary data",
                     "xmc, jsonl, sessions, text or lm data")  # fmt: skip
        for flag in (["--test", "3"], ["--keep", "x"], ["--plain"]):
            self.refused(["data", "import", "text", "a", "--out", "b", *flag], flag[0], "not for text data", "dictionary data")

    # Values out of range name the range; missing arguments are named.
    def test_values(self):
        self.refused(["train", "xmc", "train.batch=0", "--out", "x"], "'0'", "1..65536")
        self.refused(["train", "xmc", "model.hidden=100", "--out", "x"], "multiple of 16")
        self.refused(["train", "xmc", "loss.logq=some", "--out", "x"], "all, exact or none")
        self.refused(["train", "xmc", "train.batch", "--out", "x"], "key=value")
        self.refused(["train", "xmc"], "--out")
        self.refused(["train"], "CONFIG")
        with tempfile.TemporaryDirectory() as directory:
            self.refused(["train", "xmc", "--out", os.path.join(directory, "never-made")], "data.train")
            self.assertEqual(os.listdir(directory), [])
        self.refused(["eval", "x"], "--data")
        self.refused(["doctor", "--threads", "3"], "--threads")
        self.refused(["version", "now"], "'now'")
        self.refused(["bench", "sparse-step", "--threads", "0"], "1..1024")
        self.refused(["predict", "x", "--top", "many", "q"], "'many'")

    # A value that a shell has lost is no value: neither the next word, nor nothing, stands for it.
    def test_lost_values(self):
        with tempfile.TemporaryDirectory() as directory:
            train = ["train", "xmc", "data.train=x"]
            self.refused([*train, "--out=", "train.steps=9"], "--out needs a value")
            self.refused([*train, "--out", "--quiet"], "--out needs a value", "'--quiet'", "--out=--quiet")
            self.refused(["data", "import", "jsonl", "x", "--out", "--json"], "--out needs a value")
            self.refused([*train, "--out", directory, "--nodes", ""], "--nodes has an empty value")
            self.refused([*train, "--out", ""], "--out has an empty value")
            self.refused(["predict", "", "word"], "DIR has an empty value")
            self.refused(["predict", directory, "word", "--threshold", ""], "--threshold has an empty value")
            self.refused(["doctor", ""], "COORDINATOR has an empty value")
            self.refused(["doctor", "--token", "x"], "COORDINATOR")
            self.refused(["simulate", "cluster-chaos", "--seed", ""], "--seed has an empty value")
            self.refused([*train, "", "--out", directory], "empty value")
            self.refused(["train", "--resume=5", "--out", directory], "--resume takes no value")
            self.assertEqual(os.listdir(directory), [])

    # The value of a key is a text that TOML can hold: a run reads its keys again.
    def test_texts_of_keys(self):
        with tempfile.TemporaryDirectory() as directory:
            out = os.path.join(directory, "run")
            latin = [program.GOSSAMER, "train", "xmc", b"data.train=u\xff.jsonl", "--out", out]
            done = subprocess.run(latin, capture_output=True, timeout=program.TIMEOUT, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(b"UTF-8", done.stderr)
            self.assertFalse(os.path.exists(out))

    # Behind "--" a word that begins with a dash is no flag.
    def test_dashes(self):
        with tempfile.TemporaryDirectory() as directory:
            done = program.run("predict", directory, "--", "-purr")
            self.assertIn("no model", done.err)
            self.refused(["predict", directory, "-purr"], "no flag")

    # A TOML file's mistakes are named with file, line and column.
    def test_toml(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "my.toml")
            with open(path, "w", encoding="utf-8") as file:
                file.write("seed = 1\n[train]\nbach = 3\n")
            self.refused(["train", path, "--out", "x"], f"{path}:3:1", "'train.batch'")

    # An instruction set that does not exist is refused by name.
    def test_isa(self):
        done = program.run("version", environment={"GOSSAMER_ISA": "avx9"})
        self.assertEqual(done.status, 2)
        self.assertIn("GOSSAMER_ISA", done.err)
        forced = program.run("version", "--json", environment={"GOSSAMER_ISA": "scalar"})
        self.assertEqual(forced.json()["isa"], "scalar")

    # A token that stands in the wrong place is a secret still: no error repeats it.
    def test_tokens(self):
        token = "gossamer1.CmQxMjcuMC4wLjEQ_-s3cr3t"
        for arguments in (
            ["join", "127.0.0.1:1", token],
            ["join", token],
            ["join", "127.0.0.1:1", "--token-file", token],
            ["join", "127.0.0.1:1", "--" + token],
            ["status", token],
            ["token", "revoke", token, "x"],
            ["train", "token=" + token],
            ["train", "xmc", "train.batch=" + token, "--out", "x"],
            [token],
        ):
            with self.subTest(arguments=arguments):
                done = program.run(*arguments)
                self.assertNotEqual(done.status, 0)
                self.assertIn("gossamer1.***", done.err)
                self.assertNotIn("s3cr3t", done.err)


class World(unittest.TestCase):
    # Missing files are failures of the world: status 1, the path in the message, nothing made.
    def test_missing(self):
        with tempfile.TemporaryDirectory() as directory:
            out = os.path.join(directory, "run")
            for arguments in (
                ["train", "xmc", "data.train=/no/such/file.txt", "--out", out],
                ["train", "/no/such/config.toml", "--out", out],
                ["data", "import", "xmc", "/no/such/file.txt", "--out", out],
                ["data", "inspect", "/no/such"],
                ["eval", "/no/such", "--data", "/no/such/file.txt"],
                ["predict", "/no/such", "1:1"],
            ):
                with self.subTest(arguments=arguments):
                    done = program.run(*arguments)
                    self.assertEqual(done.status, 1, done.err)
                    self.assertEqual(done.out, "")
                    self.assertIn("/no/such", done.err)
            self.assertFalse(os.path.exists(out))

    # Standard output that cannot be written is an error. The program does not stay silent.
    def test_full_output(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full on this machine")
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = program.subprocess.run(
                [program.GOSSAMER, "version"], stdout=full, stderr=program.subprocess.PIPE, text=True, check=False
            )
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)


class Machine(unittest.TestCase):
    # --json prints one JSON object and nothing else.
    def test_json(self):
        version = program.run("version", "--json").json()
        self.assertIn(version["isa"], version["isas_supported"])
        self.assertEqual(version["codecs"], ["f32", "bf16", "int8"])
        self.assertRegex(version["version"], r"^\d+\.\d+\.\d+$")
        doctor = program.run("doctor", "--json").json()
        self.assertIs(doctor["ok"], True)
        names = [check["name"] for check in doctor["checks"]]
        machine = ["cpu", "cores", "memory", "huge pages", "clock", "disk", "network"]
        self.assertEqual(names, [*machine, "torch", "sentencepiece"])
        for check in doctor["checks"]:
            self.assertEqual(check["advice"] == "", check["health"] == "good", check)

    # The benchmark's figures are there and add up.
    def test_bench(self):
        done = program.run(
            *"bench sparse-step features=2000 labels=3000 hidden=32 batch=32 steps=4 --threads 2 --json".split()
        )
        self.assertEqual(done.status, 0, done.err)
        result = done.json()
        self.assertEqual(result["parameters"], 5000 * 32 + 3000)
        self.assertGreater(result["wall_ms_per_step"], 0)
        self.assertGreater(result["cpu_ms_per_step"], 0)
        self.assertGreaterEqual(result["active_rows"], 5)
        self.assertGreater(result["peak_rss_bytes"], 5000 * 32 * 12)
        # Another process may have had the cores for any time between steps.
        self.assertGreater(sum(result["phases_ms"].values()), 0)
        self.assertLess(sum(result["phases_ms"].values()), result["wall_ms_per_step"] + 0.001)
        self.assertEqual(result["options"]["batch"], 32)

    # The figures of the search are there, too. Every key has its line in the help, and a wrong one is named.
    def test_bench_search(self):
        done = program.run(
            *"bench sparse-search labels=2000 hidden=32 batch=32 queries=64 singles=3 --threads 2 --json".split()
        )
        self.assertEqual(done.status, 0, done.err)
        result = done.json()
        for name in ("wall_ms_per_query", "cpu_ms_per_query", "single_wall_ms", "single_cpu_ms", "score"):
            self.assertGreater(result[name], 0, name)
        self.assertGreater(result["peak_rss_bytes"], 2000 * 32 * 5)
        shown = program.run("bench", "sparse-search", "--help").out
        for name in result["options"]:
            self.assertIn(f"  {name}=", shown)
        self.assertIn("'queries'", program.run("bench", "sparse-search", "querys=3").err)

    # A mesh of three nodes in one process works with and without TLS. Every measurement has its figures, those of the
    # exchange for each node. The second mesh takes the authority that the first one made.
    def test_bench_links(self):
        with tempfile.TemporaryDirectory() as directory:
            words = "bench links bytes=200000 pings=3 rounds=5 transfers=2 --json".split()
            for authority in ((), (f"authority={directory}/authority",), (f"authority={directory}/authority",)):
                done = program.run(*words, *authority)
                self.assertEqual(done.status, 0, done.err)
                result = done.json()
                self.assertEqual(result["tls"], bool(authority))
                measured = [[one["name"] for one in node["measurements"]] for node in result["nodes"]]
                asked = ["round-trip", "message", "messages", "exchange", "control-beside-bulk"]
                self.assertEqual(measured, [asked, ["exchange"], ["exchange"]])
                counts = [one["count"] for one in result["nodes"][0]["measurements"]]
                self.assertEqual(counts, [3, 1, 1, 5, 3])

    # A node that does not come is named, with the text of the last attempt. Wrong words name the right ones.
    def test_bench_links_alone(self):
        peers = "peers=127.0.0.1:1,127.0.0.1:3"
        done = program.run("bench", "links", peers, "node=3")
        self.assertEqual(done.status, 2)
        self.assertIn("1..2", done.err)
        (port,) = free_ports(1)
        for patience in (1, 4, 16):  # on a busy machine no attempt may have ended within a second
            done = program.run("bench", "links", f"peers=127.0.0.1:{port},127.0.0.1:1", f"patience={patience}")
            self.assertEqual((done.status, done.out), (1, ""))
            self.assertIn(f"node-2: nothing moved for {patience} s", done.err)
            if "refused" in done.err:
                break
        self.assertIn("refused", done.err)
        self.assertIn("'exchange_bytes'", program.run("bench", "links", "exchange_byte=3").err)
        self.assertIn("control-beside-bulk", program.run("bench", "links", "measure=all").err)

    # --keys lists the default of every key, with the preset's own values.
    def test_keys(self):
        done = program.run("train", "--keys", "xmc")
        self.assertEqual(done.status, 0, done.err)
        self.assertIn("train.batch=256", done.out)
        self.assertIn("an integer 1..65536", done.out)
        self.assertIn("data.format=jsonl", program.run("train", "--keys", "dictionary").out)
        self.assertIn("seed=7", program.run("train", "--keys", "xmc", "seed=7").out)


class BadData(unittest.TestCase):
    GOOD = "3 10 5\n0,1 1:0.5 9:1\n2 3:1\n4 0:2\n"

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.path = os.path.join(self.directory.name, "data.txt")
        self.out = os.path.join(self.directory.name, "out")

    def write(self, text):
        with open(self.path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())

    # Bad records give status 3 with FILE:LINE:COLUMN, and leave nothing behind, by import and by train alike.
    def test_place(self):
        for text, place in (
            ("3 10 5\n0,1 1:0.5 9:1\n2 x:1\n4 0:2\n", ":3:3"),
            ("3 10 5\n0,1 1:0.5 10:1\n2 3:1\n4 0:2\n", ":2:11"),
            ("3 10 5\n0,1 1:nan 9:1\n2 3:1\n4 0:2\n", ":2:"),
            ("3 10 5\n7 1:0.5 9:1\n2 3:1\n4 0:2\n", ":2:1"),
            ("3 10 5\n0 1:0.5 9:1\n", ":"),
            ("", ""),
            (b"\x1f\x8b\x08\x00broken", ""),
            ('{"text": "a", "labels": ["b"]}\n{"text": 3}\n', ":2:"),
        ):
            for command in (
                ["data", "import", "jsonl" if text[:1] == "{" else "xmc", self.path],
                ["train", "xmc", f"data.train={self.path}"],
            ):
                with self.subTest(text=text, command=command[0]):
                    self.write(text)
                    done = program.run(*command, "--out", self.out)
                    self.assertEqual(done.status, 3, done.err)
                    self.assertIn(self.path + place, done.err)
                    self.assertFalse(os.path.exists(self.out), done.err)

    # --skip-bad leaves out at most as many bad lines as it says, and reports them.
    def test_skip(self):
        self.write("0 1:0.5\n0 x\n1 2:1\n1 y\n2 3:1\n")
        done = program.run("data", "import", "xmc", self.path, "--out", self.out, "--skip-bad", "2", "--json")
        self.assertEqual(done.status, 0, done.err)
        self.assertEqual((done.json()["records"], done.json()["skipped"]), (3, 2))
        self.assertIn(":2:3", done.err)
        again = program.run("data", "import", "xmc", self.path, "--out", self.out + "2", "--skip-bad", "1")
        self.assertEqual(again.status, 3)
        self.assertIn(":4:3", again.err)

    # Import and inspect agree; a directory with something in it is refused and untouched.
    def test_import_inspect(self):
        self.write(self.GOOD)
        done = program.run("data", "import", "xmc", self.path, "--out", self.out, "--json")
        self.assertEqual(done.status, 0, done.err)
        imported = done.json()
        self.assertEqual((imported["records"], imported["features"], imported["labels"]), (3, 10, 5))
        look = program.run("data", "inspect", self.out, "--json").json()
        self.assertEqual((look["records"], look["features"], look["labels"]), (3, 10, 5))
        self.assertEqual((look["feature_entries"], look["label_entries"], look["labels_unused"]), (4, 4, 1))
        self.assertEqual(look["examples"][0], "labels 0 1; features 1:0.5 9:1")
        before = sorted(os.listdir(self.out))
        again = program.run("data", "import", "xmc", self.path, "--out", self.out)
        self.assertEqual(again.status, 2)
        self.assertEqual(sorted(os.listdir(self.out)), before)

    # Text keeps the names of its labels; standard input works as a source.
    def test_text_from_stdin(self):
        lines = [{"text": "the meat of a deer", "labels": ["venison"]}, {"text": "a fish", "labels": ["cod", "eel"]}]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        done = program.run("data", "import", "jsonl", "-", "--out", self.out, "--json", stdin=text)
        self.assertEqual(done.status, 0, done.err)
        look = program.run("data", "inspect", self.out, "--json").json()
        self.assertEqual(look["records"], 2)
        self.assertEqual({each["label"] for each in look["frequent_labels"]}, {"venison", "cod", "eel"})


if __name__ == "__main__":
    unittest.main()
