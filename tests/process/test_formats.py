# SPDX-License-Identifier: Apache-2.0
"""Files in formats that are not read: each is named, and the printed command makes records of it."""

import csv
import json
import os
import re
import shlex
import shutil
import subprocess
import unittest

import program
from answers import KINDS, Answers


SHELLS = [shell for shell in ("sh", "bash", "dash", "zsh") if shutil.which(shell)]


class Formats(Answers):
    # The printed command, and the file that it writes.
    def printed(self, message):
        found = re.search(r"convert it:\n *(\(set -C; exec > (.*?) && \{ .*)\n", message)
        self.assertIsNotNone(found, message)
        return found[1], self.path(shlex.split(found[2])[0])

    # The records that the command in the message makes, by a shell.
    def converted(self, message, shell="sh"):
        command, new = self.printed(message)
        self.said = subprocess.run([shell, "-c", command], check=True, cwd=self.home.name, capture_output=True, text=True).stderr
        with open(new, encoding="utf-8") as file:
            records = [json.loads(line) for line in file if line.strip()]
        os.unlink(new)
        return records

    def message(self, name):
        done = self.run_here("eval", "model", "--data", name)
        self.assertEqual(done.status, 3, done.err)
        return done.err

    # Formats that are not read are named, and the command in the message makes records of them.
    def test_tables(self):
        self.write("a.csv", "id,title,tags", *[f'{i},"{k}, small",{k}' for i, k in enumerate(KINDS * 10)])
        self.write("b.tsv", "title\ttags", *[f"{k} small\t{k}" for k in KINDS * 10])
        self.write("c.ft", "", *[f"__label__{k} {k} small\n" for k in KINDS * 10])
        self.write("d.json", json.dumps([{"text": k, "labels": [k]} for k in KINDS * 10]))
        for name, format_name in (("a.csv", "CSV"), ("b.tsv", "TSV"), ("c.ft", "fastText"), ("d.json", "JSON array")):
            with self.subTest(name=name):
                for command in (["train", "xmc", f"data.train={name}", "--out", "never"],
                                ["train", "xmc", "data.train=train.jsonl", f"data.test={name}", "--out", "never"],
                                ["data", "import", "jsonl", name, "--out", "never"],
                                ["eval", "model", "--data", name]):  # fmt: skip
                    self.refused(command, format_name, name)
                convert, new = self.printed(self.message(name))
                if "jq" in convert and shutil.which("jq") is None:
                    continue
                subprocess.run(convert, shell=True, check=True, cwd=self.home.name, capture_output=True)
                with open(new, encoding="utf-8") as file:
                    self.assertEqual(len([line for line in file if line.strip()]), 40)
                done = self.run_here("train", "xmc", f"data.train={new}", "train.steps=5", "--out", "from-" + format_name)
                self.assertEqual(done.status, 0, done.err)
                answer = self.run_here("predict", "from-" + format_name, "kettle", "--top", "1").json()
                self.assertIn(answer["labels"][0]["name"], KINDS)
        self.assertFalse(os.path.exists(self.path("never")))

    # The format that comes through a pipe is named too, and the printed filter makes records of it, also of a packed file.
    def test_other_formats_through_pipes(self):
        self.write("p.csv", "title,tags", *[f"{k} small,{k}" for k in KINDS])
        wanted = [{"text": f"{k} small", "labels": [k]} for k in KINDS]
        for more, before in (("data import jsonl - --out never", "cat p.csv"), ("eval model --data -", "cat p.csv"),
                             ("eval model --data -", "gzip -c p.csv")):  # fmt: skip
            command = f"{before} | {os.path.abspath(program.GOSSAMER)} {more}"
            done = subprocess.run(command, shell=True, check=False, cwd=self.home.name, capture_output=True, text=True)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("the file is CSV", done.stderr)
            through = re.search(r"pipe it through:\n *(.*)\n *check it", done.stderr)[1]
            records = subprocess.run(f"{before} | {through}", shell=True, check=True, cwd=self.home.name, capture_output=True, text=True)
            self.assertEqual([json.loads(line) for line in records.stdout.splitlines()], wanted)

    # Printed converters lose no record of odd tables.
    def test_odd_tables(self):
        long = "word " * 50_000
        for name, content, wanted in (
            ("no_header.tsv", 'q\tfoo bar\nr\tan 8" pan\n', [("foo bar", ["q"]), ('an 8" pan', ["r"])]),
            ("mark.csv", "\ufefftext,label\nx y,a\n", [("x y", ["a"])]),
            ("several.csv", "it's,tags\nlong text,a|b\n", [("long text", ["a", "b"])]),
            ("one_name.csv", "text,text,label\none,two,a\n", [("one", ["a"])]),
            ("quote.csv", '5" pan,x\nd e f,y', [('5" pan', ["x"]), ("d e f", ["y"])]),
            ("blank.csv", "\n \ntext,label\n\nx y,a\n", [("x y", ["a"])]),
            ("excel.csv", "sep=;\r\ntext;label\r\nx, y;a\r\n", [("x, y", ["a"])]),
            ("semicolon.csv", '"Hello, world";a\n"foo, bar";b\n', [("Hello, world", ["a"]), ("foo, bar", ["b"])]),
            ("short.csv", "label,text\na,x\nb\n", [("x", ["a"]), ("", ["b"])]),
            ("long.csv", f"label,text\na,{long}\n", [(long, ["a"])]),
            ("spaces.csv", 'text, label\nx, "a, b"\ny, b\n', [("x", ["a", "b"]), ("y", ["b"])]),
            ("towns.csv", 'text,label\nx,"Dallas, TX"\ny,"Austin, TX"\n', [("x", ["Dallas, TX"]), ("y", ["Austin, TX"])]),
            ("pandas.csv", "text,tags\nit purrs,\"['cat', 'pet']\"\nit barks,[]\nx,\n", [("it purrs", ["cat", "pet"]), ("it barks", []), ("x", [])]),
            ("lists.csv", 'text,tags\nit purrs,"[""cat"", ""pet""]"\nx,[]\n', [("it purrs", ["cat", "pet"]), ("x", [])]),
            ("bars.txt", "text|label\nit purrs, loudly|cat\n", [("it purrs, loudly", ["cat"])]),
        ):
            with self.subTest(name=name):
                with open(self.path(name), "w", encoding="utf-8", newline="") as file:
                    file.write(content)
                records = self.converted(self.message(name))
                self.assertEqual([(r["text"], r["labels"]) for r in records], wanted)
                self.assertIn(f"0 of {len(wanted)} rows", self.said)

    # A row with too many cells is left out and counted. A command that fails leaves no file, so it can be tried again.
    def test_rows_that_do_not_fit(self):
        self.write("more.csv", "text,label", "x,a", "y, z,b", "w,c,")
        self.assertEqual([r["text"] for r in self.converted(self.message("more.csv"))], ["x", "w"])
        self.assertIn("1 of 3 rows have more than 2 cells", self.said)
        with open(self.path("late.csv"), "wb") as file:
            file.write(b"text,label\n" + b"x,a\n" * 20_000 + b"\xe9,b\n")
        command, new = self.printed(self.message("late.csv"))
        for shell in SHELLS:
            done = subprocess.run([shell, "-c", command], check=False, cwd=self.home.name, capture_output=True, text=True)
            self.assertEqual((done.returncode, os.path.exists(new)), (1, False), done.stderr)
            self.assertIn("UnicodeDecodeError", done.stderr)

    # Text of another encoding is named, and becomes UTF-8 text by the command.
    def test_latin_1(self):
        for name, content in (("latin.csv", "text,label\nx,a\ncaf\xe9,b\n"), ("first.csv", "caf\xe9,text\nb,caf\xe9 au lait\n")):
            with open(self.path(name), "w", encoding="latin-1") as file:
                file.write(content)
            message = self.message(name)
            self.assertIn("text that is not UTF-8", message)
            command, new = self.printed(message)
            subprocess.run(command, shell=True, check=True, cwd=self.home.name)
            with open(new, encoding="utf-8") as file:
                self.assertEqual(file.read(), content)
            self.assertIn("the file is CSV", self.message(os.path.basename(new)))

    # The whole line of a command can be copied: what it rests on stands on a line of its own.
    def test_a_line_for_the_command(self):
        self.write("w.csv", "id,text,label,day", "1,it purrs,cat,3")
        lines = [line.strip() for line in self.message("w.csv").splitlines()]
        self.assertTrue(lines[-2].endswith("|| ! rm -f w.jsonl; })"), lines)
        self.assertIn("'id', 'day' are not used", lines[-1])

    # A bare mark of fastText is a word.
    def test_fasttext(self):
        self.write("bare.ft", "__label__dog it barks at __label__ postman")
        self.assertEqual(self.converted(self.message("bare.ft")), [{"text": "it barks at __label__ postman", "labels": ["dog"]}])

    # JSON that is not an object a line becomes such lines, or the message says what elements have to be.
    @unittest.skipIf(shutil.which("jq") is None, "there is no jq")
    def test_json_shapes(self):
        wanted = [{"text": "it purrs", "labels": ["cat"]}, {"text": "it barks", "labels": ["dog", "pet"]}]
        pairs = [["it purrs", "cat"], ["it barks", ["dog", "pet"]]]
        for i, content in enumerate((
            json.dumps(wanted),
            json.dumps(wanted, indent=2),
            json.dumps(pairs),
            json.dumps([pair[::-1] for pair in pairs]),
            "".join(json.dumps(one, indent=2) + "\n" for one in wanted),
            json.dumps({"version": 1, "data": wanted}),
            json.dumps({"data": wanted}, indent=2),
        )):  # fmt: skip
            with self.subTest(content=content):
                self.write(f"shape{i}.json", content)
                self.assertEqual(self.converted(self.message(f"shape{i}.json")), wanted)
        self.write("bad_pairs.json", json.dumps([*pairs, ["x"]]))
        command, new = self.printed(self.message("bad_pairs.json"))
        self.assertNotEqual(subprocess.run(command, shell=True, check=False, cwd=self.home.name, capture_output=True).returncode, 0)
        self.assertFalse(os.path.exists(new))
        self.write("strings.json", json.dumps(["it purrs", "it barks"]))
        self.refused(["eval", "model", "--data", "strings.json"], "JSON array of strings", "have to be objects")

    # Plain text is not taken for XMLC text, nor for records of numbered features.
    def test_plain_text(self):
        self.write("q.txt", "it purrs at night", "2 dogs bark")
        for command in (["eval", "model", "--data", "q.txt"], ["train", "xmc", "data.train=q.txt", "--out", "never"]):
            self.refused(command, "the file is plain text", '{"text": "it purrs", "labels": ["cat"]}')

    # A table of one column gets no command. Neither do keys without a usual name.
    def test_no_command(self):
        self.write("one.csv", '"hello, world"', '"foo, bar"')
        self.refused(["eval", "model", "--data", "one.csv"], "CSV of one column")
        self.write("day.jsonl", '{"text": "a", "day": 3, "shop": 4}')
        self.refused(["eval", "model", "--data", "day.jsonl"], "'day', 'shop'")
        for name in ("one.csv", "day.jsonl"):
            self.assertNotIn("convert it", self.message(name))

    # No printed command writes over a file, in any shell, whatever names the file has.
    def test_overwrites_nothing(self):
        self.write("kept.csv", "text,label", "x,a")
        message = self.message("kept.csv")
        command, new = self.printed(message)
        for make in (lambda: self.write("kept.jsonl", "mine"), lambda: os.symlink("kept.csv", new), lambda: os.link(self.path("kept.csv"), new)):
            for shell in SHELLS:
                with self.subTest(shell=shell):
                    make()
                    with open(new, "rb") as file:
                        before = file.read()
                    self.assertNotEqual(subprocess.run([shell, "-c", command], check=False, cwd=self.home.name, capture_output=True).returncode, 0)
                    with open(new, "rb") as file:
                        self.assertEqual(file.read(), before)
                    os.unlink(new)
        for shell in SHELLS:
            self.assertEqual(self.converted(message, shell), [{"text": "x", "labels": ["a"]}])

    # What is packed is unpacked by the command.
    def test_packed(self):
        self.write("p1.csv", "text,label", "x,a")
        self.write("p2.jsonl", '{"title": "x", "tags": "a"}')
        for packer, end in (("gzip -c", "gz"), ("zstd -qc", "zst")):
            for name, tool in (("p1.csv", "python3"), ("p2.jsonl", "jq")):
                if shutil.which(packer.split()[0]) is None or shutil.which(tool) is None:
                    continue
                subprocess.run(f"{packer} {name} > {name}.{end}", shell=True, check=True, cwd=self.home.name)
                records = self.converted(self.message(f"{name}.{end}"))
                self.assertEqual([(r["text"], r["labels"]) for r in records], [("x", "a" if tool == "jq" else ["a"])])

    # Text of another encoding becomes UTF-8 text, with a name that says so.
    def test_utf_16(self):
        with open(self.path("wide.csv"), "w", encoding="utf-16") as file:
            file.write("text,label\nx,a\n")
        command, new = self.printed(self.message("wide.csv"))
        subprocess.run(command, shell=True, check=True, cwd=self.home.name)
        self.assertEqual(os.path.basename(new), "wide.utf-8.csv")
        self.assertEqual(self.converted(self.message("wide.utf-8.csv")), [{"text": "x", "labels": ["a"]}])

    # Sessions and plain text take nearly every line, so what is surely another format is refused.
    def test_lines_of_names(self):
        self.write("a.json", '[{"text": "a", "labels": ["b"]}]')
        self.write("t.csv", "title,tags", "a,b", "c,d")
        for preset, kind in (("next-item", "sessions"), ("word2vec", "text")):
            self.refused(["train", preset, "data.train=a.json", "--out", "never"], "JSON array")
            for name, format_name in (("a.json", "JSON array"), ("t.csv", "CSV")):
                self.refused(["data", "import", kind, name, "--out", "never"], format_name, "--as-is")
                self.assertEqual(self.run_here("data", "import", kind, name, "--as-is", "--out", kind + name).status, 0)

    # What an import tells has one record, and 2 records.
    def test_summary(self):
        self.write("one.jsonl", '{"text": "a", "labels": ["b"]}')
        self.assertRegex(self.run_here("data", "import", "jsonl", "one.jsonl", "--out", "one-record").out, r"^1 record \(.* 0 bad lines left out\)")
        self.write("one_line.txt", "a b a")
        self.assertRegex(self.run_here("data", "import", "text", "one_line.txt", "--out", "words").out, r"^3 words, 2 different")
        self.assertRegex(self.run_here("data", "import", "sessions", "one_line.txt", "--out", "sessions").out, r"^1 session of 2 items")

    # Labels by name among labels by number are refused by the import, with file and line.
    def test_mixed_labels(self):
        self.write("by_number.jsonl", '{"text": "a", "labels": [3]}')
        self.refused(["data", "import", "jsonl", "train.jsonl", "by_number.jsonl", "--out", "never"], "by_number.jsonl:1", "mixes")

    # Other keys are named with a command that renames them.
    def test_other_keys(self):
        self.write("shop.jsonl", '{"id": 3, "title": "a", "tags": ["b"]}')
        self.refused(["train", "xmc", "data.train=shop.jsonl", "--out", "never"], 'text: .["title"], labels: (.["tags"] // [])')
        self.write("tags.jsonl", '{"text": "a", "labels": []}', '{"text": "b", "tags": ["c"], "id": 3}')
        if shutil.which("jq"):
            self.assertEqual(self.converted(self.message("shop.jsonl")), [{"text": "a", "labels": ["b"]}])
            self.assertEqual([r["labels"] for r in self.converted(self.message("tags.jsonl"))], [[], ["c"]])

    # A pipe is read once. It is refused where it would be read twice, and read where once is enough.
    def test_pipes(self):
        command = f"cat train.jsonl | {os.path.abspath(program.GOSSAMER)}"
        for more, status, part in (
            ("train xmc data.train=/dev/stdin --out never", 2, "read once"),
            ("train xmc data.train=/dev/stdin data.format=jsonl --out never", 2, "data import jsonl -"),
            ("train xmc data.train=train.jsonl data.test=/dev/stdin --out never", 2, "a pipe"),
            ("data import jsonl /dev/stdin --out imported", 0, ""),
            ("eval model --data /dev/stdin --json", 0, ""),
            ("eval model --data - --json", 0, ""),
        ):
            with self.subTest(more=more):
                done = subprocess.run(f"{command} {more}", shell=True, check=False, cwd=self.home.name, capture_output=True,
                                      text=True)  # fmt: skip
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertIn(part, done.stderr)
                if more.startswith("eval"):
                    self.assertEqual(json.loads(done.stdout)["samples"], 80)
        self.assertFalse(os.path.exists(self.path("never")))
        with open(self.path("imported/records.jsonl"), encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()), 80)

    # A cell behind those that were looked at may hold no list, or a list of something else: the program ends there, and leaves no file.
    def test_other_cells_behind(self):
        for lists in ('["pet", "cat"]', "['pet', 'cat']"):
            for cell in ("dog", '"dog"', "'dog'", '[{"id": 1}]', "('a', 'b')", "{'a'}", '{"a": 1}', "3", "['a', ('b', 1)]", "['a', None, True]", '["a", null, true]'):
                with self.subTest(lists=lists, cell=cell), open(self.path("long.csv"), "w", newline="", encoding="utf-8") as file:
                    rows = csv.writer(file)
                    rows.writerows([["title", "tags"], *[[f"it purrs {i}", lists] for i in range(4000)], ["it barks", cell]])
                    file.flush()
                    command, new = self.printed(self.message("long.csv"))
                    done = subprocess.run(["sh", "-c", command], check=False, cwd=self.home.name, capture_output=True)
                    self.assertNotEqual(done.returncode, 0)
                    self.assertFalse(os.path.exists(new))

    # Records that came through a pipe are asked for once more where the run's copy of them is damaged. Others are refused.
    def test_pipe_again(self):
        records = "".join(f"{i % 2} {i % 2}:1 2:{1 + i % 3}\n" for i in range(40))
        keys = ["data.train=-", "data.format=xmc", "train.steps=20", "train.batch=8", "checkpoint.every_steps=5"]
        done = self.run_here("train", "xmc", *keys, "--out", "piped", stdin=records)
        self.assertEqual(done.status, 0, done.err)
        os.remove(self.path("piped/summary.json"))
        cache = self.path("piped/cache/train.cache")
        os.truncate(cache, os.path.getsize(cache) // 2)
        again = ["train", "--resume", "--out", "piped"]
        done = self.run_here(*again, stdin=records)
        self.assertEqual(done.status, 3, done.err)
        self.assertIn("give the same training records once more at -: rm -rf piped/cache; gossamer train --resume --out piped", done.err)
        shutil.rmtree(self.path("piped/cache"))
        done = self.run_here(*again, stdin=records[:-10] + records[-10:].replace("2:", "3:"))
        self.assertEqual(done.status, 3, done.err)
        self.assertIn("not the training records that the run began with", done.err)
        shutil.rmtree(self.path("piped/cache"))
        done = self.run_here(*again, stdin=records)
        self.assertEqual(done.status, 0, done.err)


if __name__ == "__main__":
    unittest.main()
