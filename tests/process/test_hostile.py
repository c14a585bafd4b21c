# SPDX-License-Identifier: Apache-2.0
"""An unkind world: wrong kinds of paths, closed streams, readers that leave."""

import json
import os
import subprocess
import tempfile
import unittest

import program


class Hostile(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = directory.name
        self.train_path = self.path("train.txt")
        program.write_xmlc(self.train_path, 200, seed=1)

    def path(self, name):
        return os.path.join(self.root, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)
        return self.path(name)

    def trained(self):
        run = self.path("run")
        done = program.run("train", "xmc", f"data.train={self.train_path}", "train.steps=2", "--out", run, "--quiet")
        self.assertEqual(done.status, 0, done.err)
        return run

    def failed(self, status, arguments, *parts, stdin=""):
        done = program.run(*arguments, stdin=stdin)
        self.assertEqual((done.status, done.out), (status, ""), f"{arguments}: {done.err}")
        for part in (*parts, "expected ", "to do "):
            self.assertIn(part, done.err, arguments)
        return done


class Paths(Hostile):
    # A directory where a file belongs, and a file where a directory belongs, are told apart.
    def test_kinds(self):
        out = self.path("out")
        self.failed(1, ["train", "xmc", f"data.train={self.root}", "--out", out], "no imported records")
        self.failed(1, ["train", self.root + "/", "--out", out], "not a directory")
        self.failed(1, ["data", "import", "xmc", self.root, "--out", out], self.root)
        for command in (["train", "xmc", f"data.train={self.train_path}"], ["data", "import", "xmc", self.train_path]):
            self.failed(1, [*command, "--out", self.train_path], "a directory")
            self.failed(1, [*command, "--out", self.train_path + "/below"], "a part of it is a file")
        self.failed(1, ["predict", self.train_path, "1:1"], "no model")
        self.assertFalse(os.path.exists(out))

    # A file without read permission is refused with its permissions as the reason.
    def test_unreadable(self):
        os.chmod(self.train_path, 0)
        if os.access(self.train_path, os.R_OK):
            self.skipTest("root may read every file")
        self.failed(1, ["data", "import", "xmc", self.train_path, "--out", self.path("out")], "permission")


class Words(Hostile):
    # A missing argument is named as the help names it.
    def test_missing(self):
        self.failed(2, ["eval", "x"], "--data is missing", "--data FILE: test records")
        self.failed(2, ["predict"], "DIR is missing")
        self.failed(2, ["data", "import", "xmc"], "SRC is missing")
        self.failed(2, ["predict", "x", "--top"], "--top needs a value", "--top K")

    # Flags come after the command; asking for help works in any order.
    def test_order(self):
        self.failed(2, ["--json", "version"], "'--json'", "train, eval, predict, export, serve, data, bench, coordinator, join, token, node, status, stop, simulate, doctor, version")
        self.assertEqual(program.run("--help", "train").out, program.run("train", "--help").out)

    # A flag that would do nothing is refused, and so is reading standard input twice.
    def test_idle_flags(self):
        out = self.path("out")
        self.failed(2, ["data", "import", "xmc", self.train_path, "--test", "5", "--out", out], "--test")
        self.failed(2, ["data", "import", "jsonl", self.train_path, "--plain", "--out", out], "--plain")
        self.failed(2, ["data", "import", "dictionary", self.root, "--skip-bad", "5", "--out", out], "--skip-bad")
        self.failed(2, ["data", "import", "xmc", "-", "-", "--out", out], "twice", stdin="1 1:1\n")
        self.assertFalse(os.path.exists(out))


class Bytes(Hostile):
    # Garbage is refused with its place; no byte of it reaches the terminal as it is.
    def test_garbage(self):
        garbage = self.write("garbage", bytes(range(1, 256)) * 9)
        for kind in ("xmc", "jsonl"):
            done = self.failed(3, ["data", "import", kind, garbage, "--out", self.path("out")], f"{garbage}:")
            self.assertNotRegex(done.err, "[\x01-\x08\x0b-\x1f\x7f]")
        done = self.failed(3, ["predict", self.trained()], "stdin:1:1", stdin="\x1b[2J:\x07\n")
        self.assertIn(r"\x1b[2J:\x07", done.err)

    # A query in JSON is placed by its column, and nobody is told to skip it.
    def test_json_query(self):
        run = self.trained()
        done = self.failed(3, ["predict", run], "stdin:1:20:", "mend the query",
                           stdin='{"features":[[1,2]]\n')
        self.assertNotIn("--skip-bad", done.err)

    # An example shown to a person is short, however long the record is.
    def test_long_text(self):
        text = "wörter " * 100_000
        source = self.write("long.jsonl", (json.dumps({"text": text, "labels": ["x"]}) + "\n").encode())
        out = self.path("out")
        self.assertEqual(program.run("data", "import", "jsonl", source, "--out", out).status, 0)
        look = program.run("data", "inspect", out)
        self.assertEqual(look.status, 0, look.err)
        self.assertLess(max(map(len, look.out.splitlines())), 300)
        self.assertIn("wörter  ...", look.out)


class Streams(Hostile):
    def shell(self, command):
        return subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, timeout=program.TIMEOUT, check=False,
            env={**os.environ, "G": program.GOSSAMER, "RUN": self.path("run"), "DATA": self.train_path},
        )  # fmt: skip

    # A reader that leaves early ends the program without a message.
    def test_reader_leaves(self):
        self.trained()
        done = self.shell('set -o pipefail; yes 1:1 | head -50000 | "$G" predict "$RUN" | head -1; exit ${PIPESTATUS[2]}')
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertEqual(len(done.stdout.splitlines()), 1)

    # A run with closed streams trains as ever. No file of it takes the place of a stream and gets the stream's text.
    def test_closed(self):
        self.trained()
        wanted = program.run("predict", self.path("run"), "1:1").out
        for number, closed in enumerate(("2>&-", "<&- 2>&-", "<&- >&- 2>&-")):
            out = self.path(f"run{number}")
            done = self.shell(f'"$G" train xmc data.train="$DATA" train.steps=2 --out {out} {closed}')
            self.assertEqual(done.returncode, 1 if ">&- 2" in closed else 0)  # its last line had nowhere to go
            self.assertEqual(os.path.getsize(os.path.join(out, ".lock")), 0)
            self.assertEqual(program.run("predict", out, "1:1").out, wanted)
        self.assertEqual(self.shell('"$G" predict "$RUN" <&-').returncode, 1)
        self.assertEqual(self.shell('"$G" version >&-').returncode, 1)


class Killed(Hostile):
    # The remains of a killed import are no obstacle to the next import. Anything else is.
    def test_left_over(self):
        out = self.path("out")
        os.mkdir(out)
        self.write("out/records.cache.tmp", b"half")
        done = program.run("data", "import", "xmc", self.train_path, "--out", out)
        self.assertEqual(done.status, 0, done.err)
        self.assertEqual(os.listdir(out), ["records.cache"])
        other = self.path("other")
        os.mkdir(other)
        self.write("other/records.cache.tmp", b"half")
        self.write("other/note.tmp", b"mine")
        self.failed(2, ["data", "import", "xmc", self.train_path, "--out", other], "'note.tmp'")
        self.assertEqual(sorted(os.listdir(other)), ["note.tmp", "records.cache.tmp"])


if __name__ == "__main__":
    unittest.main()
