# SPDX-License-Identifier: Apache-2.0
"""No wrong answer without a word: what a user may type by mistake into eval and predict."""

import glob
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import unittest

import program

KINDS = ["boots", "kettle", "tent", "lamp"]


def write_titles(path, records, key="labels"):
    with open(path, "w", encoding="utf-8") as file:
        for i in range(records):
            kind = KINDS[i % len(KINDS)]
            file.write(json.dumps({"text": f"{kind} number{i % 7} {KINDS[i % 3]}", key: [kind]}) + "\n")


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.TemporaryDirectory()
        write_titles(cls.path("train.jsonl"), 80)
        done = program.run("train", "xmc", "data.train=train.jsonl", "train.steps=20", "predict.held_out=16", "--out", "model", cwd=cls.home.name)
        assert done.status == 0, done.err

    @classmethod
    def tearDownClass(cls):
        cls.home.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.home.name, name)

    def write(self, name, *lines):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)
        return name

    def run_here(self, *arguments, **more):
        return program.run(*arguments, cwd=self.home.name, **more)

    def refused(self, arguments, *parts, status=3):
        done = self.run_here(*arguments)
        self.assertEqual((done.status, done.out), (status, ""), done.err)
        for part in (*parts, "to do"):
            self.assertIn(part, done.err)


class Eval(Answers):
    # Records without the key "labels" are refused with the keys that they have, by eval and before training.
    def test_no_labels(self):
        write_titles(self.path("tags.jsonl"), 8, key="tags")
        self.refused(["eval", "model", "--data", "tags.jsonl", "--json"], "no record has a label", "'tags'", "jq -c")
        self.refused(["train", "xmc", "data.train=tags.jsonl", "--out", "never"], "no record has a label", "'tags'")
        self.refused(["train", "xmc", "data.train=train.jsonl", "data.test=tags.jsonl", "--out", "never"], "'tags'")
        self.assertFalse(os.path.exists(self.path("never")))
        self.write("other.jsonl", '{"title": "a", "tags": ["b"]}')
        self.refused(["eval", "model", "--data", "other.jsonl"], "'title', 'tags'")

    # Labels never seen in training are counted in the summary and on standard error. If all are, nothing is measured.
    def test_unseen_labels(self):
        self.write("some.jsonl", '{"text": "boots", "labels": ["boots", "zeppelin"]}', '{"text": "tent", "labels": ["tent"]}')
        done = self.run_here("eval", "model", "--data", "some.jsonl", "--json")
        self.assertEqual(done.status, 0, done.err)
        self.assertEqual((done.json()["labels"], done.json()["unseen_labels"]), (3, 1))
        self.assertIn("'zeppelin'", done.err)
        self.assertIn("1 of their 3 labels", self.run_here("eval", "model", "--data", "some.jsonl").out)
        self.write("none.jsonl", '{"text": "boots", "labels": ["zeppelin"]}')
        self.refused(["eval", "model", "--data", "none.jsonl"], "'zeppelin'", "labels such as")

    # Records of which the model knows no word are counted, in the figures and on standard error, also when quiet. If all
    # are, nothing is measured.
    def test_nothing_known(self):
        self.write("strange.jsonl", '{"text": "zapatos de cuero", "labels": ["boots"]}', '{"text": "tent", "labels": ["tent"]}')
        done = self.run_here("eval", "model", "--data", "strange.jsonl", "--json", "--quiet")
        self.assertEqual(done.status, 0, done.err)
        self.assertEqual((done.json()["samples"], done.json()["samples_nothing_known"]), (2, 1))
        self.assertIn("warning: of 1 test record the model knows none of its words", done.err)
        self.assertIn("2 test records; the model knows nothing of 1 of them", self.run_here("eval", "model", "--data", "strange.jsonl").out)
        self.write("alien.jsonl", '{"text": "zapatos de cuero", "labels": ["boots"]}', '{"text": "tent"}')
        self.refused(["eval", "model", "--data", "alien.jsonl"], "alien.jsonl", "1 record", "words of the training records")

    # A flag that is given twice could mean either value.
    def test_flag_twice(self):
        self.refused(["predict", "model", "boots", "--top", "2", "--top", "1"], "--top is given more than once", status=2)
        self.refused(["predict", "model", "boots", "--top"], "--top needs a value", status=2)

    # A baseline does not ask the net, so flags that choose the net beside it are refused.
    def test_flags_that_contradict(self):
        for baseline in ("nearest", "frequent"):
            self.refused(["eval", "model", "--data", "train.jsonl", "--baseline", baseline, "--net-alone"],
                         "--net-alone", f"--baseline {baseline}", "leave one", status=2)  # fmt: skip

    # A model.json that is empty, or has a key twice, is no model.
    def test_damaged_model(self):
        with open(self.path("model/model/model.json"), encoding="utf-8") as file:
            good = file.read()
        shutil.copytree(self.path("model"), self.path("damaged"))
        for text, got in (("", "an empty text"), ('{"hidden": 8,' + good[1:], "the key 'hidden' twice")):
            with open(self.path("damaged/model/model.json"), "w", encoding="utf-8") as file:
                file.write(text)
            self.refused(["predict", "damaged", "boots"], "damaged/model/model.json", got, "expected")

    # Labels by number cannot be compared with labels by name.
    def test_numbers_for_names(self):
        self.write("numbers.jsonl", '{"text": "boots", "labels": [0]}')
        self.refused(["eval", "model", "--data", "numbers.jsonl"], "numbers.jsonl:1:1", "by name")


class Predict(Answers):
    # Each line has its answer, a blank one too. Where the model knows nothing of the query, the answer says so.
    def test_an_answer_for_each_line(self):
        done = self.run_here("predict", "model", "--top", "1", stdin="boots\n\n \ntent zapatos\nzapatos de cuero\n")
        self.assertEqual(done.status, 0, done.err)
        boots, empty, blank, some, unknown = done.json_lines()
        self.assertEqual(boots["labels"][0]["name"], "boots")
        self.assertEqual(set(boots), {"labels"})
        self.assertEqual((empty["nothing_known"], set(empty)), (True, {"labels", "nothing_known"}))
        self.assertEqual(blank, empty)
        self.assertEqual((some["unknown_features"], set(some)), (1, {"labels", "unknown_features"}))
        self.assertEqual(unknown, {**empty, "unknown_features": 3})
        self.assertIn("3 queries were blank", done.err)

    # A byte order mark, with which some programs begin a file, is no part of the first query.
    def test_byte_order_mark(self):
        for query in ('{"text": "boots"}\n', "boots\n"):
            plain = self.run_here("predict", "model", stdin=query)
            marked = self.run_here("predict", "model", stdin="\ufeff" + query)
            self.assertEqual((marked.status, marked.out), (0, plain.out), marked.err)

    # A query that is the name of a file is answered as a text, and remarked upon. "-" is standard input.
    def test_a_file_is_no_query(self):
        done = self.run_here("predict", "model", "train.jsonl", "boots")
        self.assertEqual((done.status, len(done.json_lines())), (0, 2))
        self.assertIn("there is a file of this name", done.err)
        self.assertIn("gossamer predict DIR < train.jsonl", done.err)
        self.assertIn("'train.jsonl'", self.run_here("predict", "model", stdin="train.jsonl\n").err)
        self.assertEqual(self.run_here("predict", "model", "boots").err, "")
        dash = self.run_here("predict", "model", "-", stdin="boots\n\n")
        self.assertEqual(dash.out, self.run_here("predict", "model", stdin="boots\n\n").out)

    # Answers say how likely a label is right. A threshold leaves out what is less likely, and is checked.
    def test_probability(self):
        labels = self.run_here("predict", "model", "boots").json()["labels"]
        chances = [label["probability"] for label in labels]
        self.assertEqual(chances, sorted(chances, reverse=True))
        self.assertTrue(all(0 <= chance <= 1 for chance in chances), chances)
        few = self.run_here("predict", "model", "boots", "--threshold", str(chances[0])).json()["labels"]
        self.assertEqual(few, [label for label in labels if label["probability"] >= chances[0]])
        alone = self.run_here("predict", "model", "boots", "--net-alone").json()["labels"]
        self.assertIn("probability", alone[0])
        self.refused(["predict", "model", "boots", "--threshold", "2"], "between 0 and 1", status=2)
        done = self.run_here("train", "xmc", "data.train=train.jsonl", "train.steps=5", "predict.instances=false", "--out", "bare")
        self.assertEqual(done.status, 0, done.err)
        self.assertNotIn("probability", self.run_here("predict", "bare", "boots").json()["labels"][0])
        self.refused(["predict", "bare", "boots", "--threshold", "0.5"], "no probabilities", status=2)

    # A model without training records has probabilities too, also where the nodes of a fleet hold it in parts, with and
    # without records to measure it by.
    def test_probability_of_the_net(self):
        chances = []
        for more in ([], ["--nodes", "2"], ["--nodes", "2", "data.test=train.jsonl"]):
            out = f"net-{len(chances)}"
            done = self.run_here("train", "xmc", "data.train=train.jsonl", "train.steps=20", "predict.instances=false",
                                 "predict.held_out=16", *more, "--out", out)  # fmt: skip
            self.assertEqual(done.status, 0, done.err)
            labels = self.run_here("predict", out, "boots").json()["labels"]
            chances.append(labels[0]["probability"])
            self.assertGreater(len(self.run_here("predict", out, "boots", "--threshold", "0.001").json()["labels"]), 0)
        self.assertTrue(max(chances) - min(chances) < 0.02, chances)

    # A query in brackets is one query, as on standard input.
    def test_brackets(self):
        done = self.run_here("predict", "model", "[boots, tent]", "kettle")
        self.assertEqual((done.status, len(done.json_lines())), (0, 2), done.err)
        self.assertEqual(done.out, self.run_here("predict", "model", stdin="[boots, tent]\nkettle\n").out)
        self.refused(["predict", "model", "[1]"], "JSON array")

    # UTF-16, which programs of another system write, is not taken for a text of unknown words.
    def test_utf16(self):
        for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
            for query in ("boots\ntent\n", '{"text": "boots"}\n'):
                with self.subTest(encoding=encoding, query=query):
                    done = subprocess.run([program.GOSSAMER, "predict", self.path("model")], input=query.encode(encoding),
                                          capture_output=True, check=False)  # fmt: skip
                    self.assertEqual((done.returncode, done.stdout), (3, b""), done.stderr)
                    self.assertIn(b"UTF-16", done.stderr)
                    self.assertIn(b"iconv -f utf-16", done.stderr)

    # One query is not several.
    def test_one_query(self):
        self.assertIn("1 query was blank", self.run_here("predict", "model", "--quiet", stdin="\n").err)

    # A JSON array is not taken for a text.
    def test_json_array(self):
        done = self.run_here("predict", "model", stdin='[{"text": "boots"}]\n')
        self.assertEqual((done.status, done.out), (3, ""))
        self.assertIn("jq -c '.[]'", done.err)


SHELLS = [shell for shell in ("sh", "bash", "dash", "zsh") if shutil.which(shell)]


class Formats(Answers):
    # The printed command, and the file that it writes.
    def printed(self, message):
        found = re.search(r"convert it: (\(set -C; .* > (\S+)\))(?: \(check|;|\n|$)", message)
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
            through = re.search(r"pipe it through: (.*?) \(check", done.stderr)[1]
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
            ("spaces.csv", 'text, label\nx, "a, b"\n', [("x", ["a", "b"])]),
        ):
            with self.subTest(name=name):
                with open(self.path(name), "w", encoding="utf-8", newline="") as file:
                    file.write(content)
                records = self.converted(self.message(name))
                self.assertEqual([(r["text"], r["labels"]) for r in records], wanted)
                self.assertIn(f"0 of {len(wanted)} rows", self.said)

    # A row with too many cells is left out and counted. A file that is no UTF-8 ends with an error, and without records.
    def test_rows_that_do_not_fit(self):
        self.write("more.csv", "text,label", "x,a", "y, z,b", "w,c,")
        self.assertEqual([r["text"] for r in self.converted(self.message("more.csv"))], ["x", "w"])
        self.assertIn("1 of 3 rows have more than 2 cells", self.said)
        with open(self.path("latin.csv"), "wb") as file:
            file.write(b"text,label\nx,a\n\xe9,b\n")
        command, new = self.printed(self.message("latin.csv"))
        done = subprocess.run(command, shell=True, check=False, cwd=self.home.name, capture_output=True)
        self.assertEqual((done.returncode, os.path.getsize(new)), (1, 0))

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


class Resume(Answers):
    # A run that stops says the whole command that goes on with it. That command needs neither CONFIG nor keys, and ends
    # with the model of a run that was never stopped.
    def test_the_printed_command(self):
        keys = ["data.train=train.jsonl", "train.batch=16", "train.steps=3000", "seed=5"]
        wanted = self.run_here("train", "xmc", *keys, "--out", "whole", "--threads", "1")
        self.assertEqual(wanted.status, 0, wanted.err)
        running = program.Running("train", "xmc", *keys, "--out", "a run", "--threads", "1", directory=self.home.name)
        running.wait_for_line("memory")
        running.signal(signal.SIGINT)
        done = running.finish()
        self.assertEqual(done.status, 130, done.err)
        printed = re.search(r"continue with: (gossamer train .*)", done.err)
        self.assertIsNotNone(printed, done.err)
        words = shlex.split(printed[1])
        self.assertEqual(words, ["gossamer", "train", "--resume", "--out", "a run", "--threads", "1"])
        again = self.run_here(*words[1:])
        self.assertEqual(again.status, 0, again.err)
        models = []
        for run in ("whole", "a run"):
            model = self.path(os.path.join(run, "model"))
            models.append({name: open(os.path.join(model, name), "rb").read() for name in sorted(os.listdir(model))})
        self.assertEqual(models[0], models[1])
        # A finished run says so. A key that differs is refused, one that does not is not.
        self.assertEqual(self.run_here(*words[1:], "--json").json()["steps"], 3000)
        self.assertEqual(self.run_here("train", "--resume", "seed=5", "--out", "a run").status, 0)
        self.refused(["train", "--resume", "seed=6", "--out", "a run"], "has another seed", status=2)

    # A run that machines have joined may have newer steps there: one process that goes on alone warns of it, also when
    # quiet. How it goes on after a stop is a result, and said when quiet, too.
    def test_a_run_of_machines(self):
        keys = ["data.train=train.jsonl", "train.batch=16", "train.steps=3000", "checkpoint.every_steps=50"]
        running = program.Running("train", "xmc", *keys, "--out", "joined", "--quiet", directory=self.home.name)
        for _ in program.looks(program.TIMEOUT):
            if glob.glob(self.path("joined/checkpoints/*.ckpt")):
                break
        running.signal(signal.SIGINT)
        done = running.finish()
        self.assertEqual(done.status, 130, done.err)
        self.assertRegex(done.err, r"^stopped after step \d+; continue with: gossamer train --resume --out joined\n$")
        lead = self.path("joined/nodes/coordinator")
        os.makedirs(lead)
        with open(os.path.join(lead, "lead.toml"), "w", encoding="utf-8") as file:
            file.write('engine = "sparse"\n')
        done = self.run_here("train", "--resume", "--out", "joined", "--quiet")
        self.assertEqual(done.status, 0, done.err)
        self.assertIn("warning: machines have joined this run", done.err)
        self.assertIn("gossamer coordinator --resume --out joined", done.err)
        self.assertNotIn("machines", self.run_here("train", "--resume", "--out", "joined").err)

    # Without a run there is nothing to resume.
    def test_no_run(self):
        self.refused(["train", "--resume", "--out", "nowhere"], "no run to resume", "CONFIG", status=2)
        self.refused(["coordinator", "--resume", "--out", "nowhere"], "no run to resume", "CONFIG", status=2)
        self.refused(["coordinator", "--out", "nowhere"], "CONFIG is missing", status=2)
        self.refused(["train", "--resume"], "--out is missing", status=2)
        self.assertFalse(os.path.exists(self.path("nowhere")))


if __name__ == "__main__":
    unittest.main()
