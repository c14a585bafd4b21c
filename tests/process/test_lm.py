# SPDX-License-Identifier: Apache-2.0
"""Language models by the real program: what needs libtorch is skipped where the module is not beside the program."""

import array
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

import program

PLACE = os.path.dirname(os.path.abspath(program.GOSSAMER))
MODULE = os.path.join(PLACE, "gossamer_torch.so")
WITH_TORCH = unittest.skipUnless(os.path.exists(MODULE), f"there is no {MODULE}: make torch builds it")
PIECES = os.path.join(PLACE, "gossamer_sentencepiece.so")
WITH_PIECES = unittest.skipUnless(os.path.exists(PIECES), f"there is no {PIECES}: make torch builds it")

SMALL = ("model.context=32", "model.width=32", "model.heads=2", "model.hidden=64", "model.layers=2", "train.batch=8",
         "train.microbatch=4", "--threads", "2")
TEXT = "".join(f"{number} sheep jumped over the gate, and then {number + 1} sheep jumped.\n" for number in range(400))


class Folder(unittest.TestCase):
    """A test with a folder of its own, in which a text lies."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.text = self.folder / "sheep.txt"
        self.text.write_text(TEXT, encoding="utf-8")

    def train(self, name, *words):
        return program.run("train", "lm", f"data.train={self.text}", *SMALL, *words, "--out", self.folder / name)

    def failed(self, done, status, *parts):
        self.assertEqual(done.status, status, done.err)
        for part in parts:
            self.assertIn(part, done.err)

    # Trains, and sends Ctrl-C after 50 steps.
    def train_and_stop(self, name, *words):
        run = self.folder / name
        going = program.Running("train", "lm", f"data.train={self.text}", *SMALL, *words, "--out", run)
        for _ in program.looks(program.TIMEOUT):
            if (run / "metrics.jsonl").exists() and len((run / "metrics.jsonl").read_text().splitlines()) >= 50:
                break
        going.signal(signal.SIGINT)
        self.failed(going.finish(), 130, "continue with: gossamer train --resume")

    def model(self, name):
        return {path.name: path.read_bytes() for path in (self.folder / name / "model").iterdir()}


@WITH_TORCH
class Members(Folder):
    """Several processes train one model, in double: they end with the weights of one process."""

    EXACT = ("train.precision=f64", "model.biases=none", "model.layers=4", "train.steps=60", "train.lr=1e-3",
             "train.batch=16")

    def start(self, *words):
        return program.Running("train", "lm", f"data.train={self.text}", *SMALL, *self.EXACT, *words, "--nodes", "4",
                               "--out", self.folder / "several")

    def steps(self):
        metrics = self.folder / "several/metrics.jsonl"
        return metrics.read_text(encoding="ascii").splitlines() if metrics.exists() else []

    def wait_for_steps(self, count):
        for _ in program.looks(program.TIMEOUT):
            if len(self.steps()) >= count:
                return
        self.fail(f"{len(self.steps())} of {count} steps")

    def weights(self, name):
        path, = (self.folder / name / "model").glob("*.safetensors")
        data = path.read_bytes()
        begin = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:begin])
        header.pop("__metadata__", None)
        return {key: array.array("d", data[begin + one["data_offsets"][0] : begin + one["data_offsets"][1]])
                for key, one in header.items()}

    # Peers sum in another order than one process does, and nothing else differs.
    def equals_one_process(self):
        alone = self.train("alone", *self.EXACT)
        self.assertEqual(alone.status, 0, alone.err)
        wanted, got = self.weights("alone"), self.weights("several")
        self.assertEqual(wanted.keys(), got.keys())
        largest = max(abs(number) for numbers in wanted.values() for number in numbers)
        for key, numbers in wanted.items():
            difference = max(abs(a - b) for a, b in zip(numbers, got[key], strict=True))
            self.assertLess(difference, 1e-12 * largest, key)
        self.assertEqual(json.loads((self.folder / "several/summary.json").read_text())["steps"], 60)
        told = [json.loads(line)["step"] for line in self.steps()]
        # A step that all apply by the coordinator's decision, after a death, has no loss that anybody knows.
        self.assertGreaterEqual(len(told), 59)
        self.assertEqual(told, sorted(set(told)))

    def test_killed_member(self):
        going = self.start()
        self.wait_for_steps(15)
        members = {}
        for child in pathlib.Path(f"/proc/{going.process.pid}/task/{going.process.pid}/children").read_text().split():
            words = pathlib.Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            members[os.path.basename(words[words.index(b"--dir") + 1])] = int(child)
        os.kill(members[b"3"], signal.SIGKILL)
        done = going.finish()
        self.assertEqual(done.status, 0, done.err)
        self.equals_one_process()

    # Ctrl-C saves the state of all members before one step, and the run goes on from there.
    def test_stop_and_resume(self):
        going = self.start()
        self.wait_for_steps(15)
        going.signal(signal.SIGINT)
        self.failed(going.finish(), 130, "continue with: gossamer train --resume")
        done = program.run("train", "--resume", "--nodes", "4", "--out", self.folder / "several")
        self.assertEqual(done.status, 0, done.err)
        self.equals_one_process()


@WITH_TORCH
class Life(Folder):
    # A run with a test text ends with figures. `eval` gives the same ones, for the text and for its tokens.
    def test_figures(self):
        other = self.folder / "other.txt"
        other.write_text("7 sheep jumped over the gate, and then 8 sheep jumped.\n", encoding="utf-8")
        done = self.train("run", "train.steps=80", f"data.test={other}", "--json")
        self.assertEqual(done.status, 0, done.err)
        summary = done.json()
        self.assertEqual((summary["engine"], summary["steps"], summary["samples"]), ("lm", 80, 640))
        self.assertLess(summary["final_loss"], 4)  # of 5.5, which is that of all bytes alike
        self.assertEqual(set(summary["metrics"]), {"loss", "perplexity", "bits_per_byte", "tokens"})
        for data in (other, self.folder / "run/data/test.tokens"):
            measured = program.run("eval", self.folder / "run", "--data", data, "--threads", "2", "--json")
            self.assertEqual(measured.status, 0, measured.err)
            self.assertEqual(measured.json()["metrics"], summary["metrics"])
            self.assertEqual(measured.json()["bytes"], len(other.read_bytes()))
        self.assertIn("bits per byte", program.run("eval", self.folder / "run", "--data", other).out)

    # Texts go on with prompts. Equal seeds give equal answers, and another seed another one. Lines and JSON objects
    # are asked, a blank line too.
    def test_texts(self):
        self.assertEqual(self.train("run", "train.steps=30").status, 0)
        run = self.folder / "run"
        flags = ("--tokens", "40", "--temperature", "1.5", "--top-k", "50", "--threads", "2")
        first = program.run("predict", run, "7 sheep", *flags, "--seed", "3")
        self.assertEqual(first.status, 0, first.err)
        answer = first.json()
        self.assertTrue(answer["text"].startswith("7 sheep"))
        self.assertLessEqual(answer["tokens"], 40)
        self.assertEqual(program.run("predict", run, "7 sheep", *flags, "--seed", "3").out, first.out)
        self.assertNotEqual(program.run("predict", run, "7 sheep", *flags, "--seed", "4").out, first.out)
        lines = "7 sheep\n\n" + json.dumps({"text": "7 sheep", "seed": 3, "tokens": 5}) + "\n"
        answers = program.run("predict", run, *flags, "--seed", "3", stdin=lines)
        self.assertEqual(answers.status, 0, answers.err)
        same, blank, short = answers.json_lines()
        self.assertEqual(same, answer)
        self.assertEqual(set(blank), {"text", "tokens"})
        self.assertTrue(answer["text"].startswith(short["text"].rstrip("\ufffd")))
        self.assertLessEqual(short["tokens"], 5)
        self.failed(program.run("predict", run, stdin='{"text": "a", "tokens": 0}\n'), 3, "stdin:1", '"tokens"')
        self.failed(program.run("predict", run, "a", "--net-alone"), 2, "--net-alone", "sparse")
        self.failed(program.run("predict", run, "a", "--top", "3"), 2, "--top", "sparse")
        self.failed(program.run("predict", run, "a", "--temperature", "hot"), 2, "--temperature", "'hot'")
        self.failed(program.run("serve", run, "--listen", "127.0.0.1:0"), 2, "'lm'")

    # A run that Ctrl-C stops and --resume continues ends with the bytes of one that was never stopped.
    def test_a_stop_costs_nothing(self):
        steps = ("train.steps=250", "checkpoint.every_steps=40")
        self.assertEqual(self.train("whole", *steps).status, 0)
        self.train_and_stop("run", *steps)
        done = program.run("train", "--resume", "--out", self.folder / "run")
        self.assertEqual(done.status, 0, done.err)
        self.assertIn("goes on at step", done.err)
        self.assertEqual(self.model("run"), self.model("whole"))

    # What a text lacks is said with its place, and leaves no directory.
    def test_bad_texts(self):
        for text, where, part in ((b"", f"{self.text}:", "empty file"),
                                  (b"7 sheep\ncaf\xe9\n", f"{self.text}:2:4:", "UTF-8"),
                                  (b"7 sheep", f"{self.text}:", "model.context (at most 7)")):
            self.text.write_bytes(text)
            self.failed(self.train("run"), 3, where, part)
            self.assertFalse((self.folder / "run").exists())

    # The program says which libtorch it has. Its output arrives whole, though it ends without torch's destructors.
    def test_version_and_doctor(self):
        self.assertRegex(program.run("version", "--json").json()["parts"]["torch"], r"^\d+\.\d+")
        self.assertIn("torch         libtorch", program.run("version").out)
        checks = {check["name"]: check for check in program.run("doctor", "--json").json()["checks"]}
        self.assertEqual(checks["torch"]["health"], "good")

    # A stage is measured where it stands in its model. Every option has its line in the help, and a wrong one is named.
    def test_bench_stage(self):
        words = "bench stage preset=tiny vocabulary=300 context=16 windows=2 trials=2 --threads 1 --json".split()
        for more in ("position=middle", "position=whole", "products=late", "keep=input", "precision=bf16"):
            done = program.run(*words, more)
            self.assertEqual(done.status, 0, done.err)
            result = done.json()
            for name in ("forward_s", "backward_s", "products_s", "update_s", "tokens_per_second", "task_bytes"):
                self.assertGreater(result[name], 0, (more, name))
            self.assertEqual(result["tokens"], 32)
        shown = program.run("bench", "stage", "--help").out
        for name in result["options"]:
            self.assertIn(f"  {name}=", shown)
        self.failed(program.run("bench", "stage", "layer=3"), 2, "'layers'")

    # Standard output that cannot be written is an error, also where the module is open.
    def test_full_output(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([program.GOSSAMER, "version"], stdout=full, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"standard output", done.stderr)


@WITH_PIECES
class PiecesOfWords(Folder):
    # The program has no copy of std::cerr. The library would write its last words to the stream behind the copy,
    # which nobody has made.
    @unittest.skipUnless(shutil.which("readelf"), "there is no readelf")
    def test_no_copied_stream(self):
        done = subprocess.run(["readelf", "-rW", program.GOSSAMER], capture_output=True, text=True, check=True)
        self.assertIn("Relocation section", done.stdout)
        for line in done.stdout.splitlines():
            self.assertFalse("_COPY" in line and "_ZSt4cerr" in line, line)

    # Tokens of words are fewer than bytes, and the text comes back. The model of the tokenizer lies beside them.
    def test_import(self):
        tokens = self.folder / "tokens"
        done = program.run("data", "import", "lm", self.text, "--tokenizer", "sentencepiece", "--vocabulary", "400",
                           "--out", tokens, "--json")  # fmt: skip
        self.assertEqual(done.status, 0, done.err)
        self.assertLess(done.json()["tokens"], done.json()["bytes"] / 3)
        self.assertIn("a tokenizer of ", done.err)
        look = program.run("data", "inspect", tokens, "--json").json()
        self.assertEqual(look["tokenizer"], "sentencepiece")
        self.assertGreater(len(look["begins"]), 160)
        self.assertTrue(TEXT.startswith(look["begins"]))
        again = program.run("data", "import", "lm", self.text, "--tokenizer", tokens / "tokenizer.model", "--out",
                            self.folder / "again")  # fmt: skip
        self.assertEqual(again.status, 0, again.err)
        for name in ("train.tokens", "tokenizer.model"):
            self.assertEqual((self.folder / "again" / name).read_bytes(), (tokens / name).read_bytes())

    # What cannot be is refused before anything is written.
    def test_refusals(self):
        def refused(status, *words, parts):
            done = program.run("data", "import", "lm", *words, "--out", self.folder / "out", stdin=TEXT)
            self.failed(done, status, *parts)
            self.assertFalse((self.folder / "out").exists())

        refused(2, self.text, "--tokenizer", "sentencepeice", parts=["--tokenizer", "'sentencepeice'", "'bytes'"])
        refused(3, self.text, "--tokenizer", self.text, parts=[str(self.text), "SentencePiece"])
        refused(2, self.text, "--tokenizer", "sentencepiece", "--vocabulary", "100", parts=["--vocabulary", "261"])
        refused(2, self.text, "--tokenizer", "sentencepiece", "--vocabulary", "270", parts=["--vocabulary", "at least"])
        refused(2, self.text, "--vocabulary", "400", parts=["--vocabulary", "leave --vocabulary out"])
        refused(2, "-", "--tokenizer", "sentencepiece", parts=["read only once"])
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        refused(2, pipe, "--tokenizer", "sentencepiece", parts=[str(pipe), "read only once"])
        refused(2, self.text, "--tokenizer", self.folder, parts=["--tokenizer", "a folder without tokenizer.model"])
        self.text.write_bytes(b"\n\n")
        refused(4, self.text, "--tokenizer", "sentencepiece", parts=["no tokenizer can be trained", "give bytes as --tokenizer"])

    # A text without a space, with the line ends of Windows, a long line and the library's own characters is imported.
    def test_odd_texts(self):
        for number, text in enumerate(("ab\nab\n", "ab cd\r\nab cd\r\n", "x" * 100_000 + "\nab cd\n",
                                       "a\u2581b \u2585\tab\n<unk><0x41></s>\n")):  # fmt: skip
            self.text.write_bytes(text.encode())
            out = self.folder / f"odd-{number}"
            words = ("--tokenizer", "sentencepiece", "--out", out, "--json")
            done = program.run("data", "import", "lm", self.text, *words)
            self.assertEqual(done.status, 0, done.err)
            look = program.run("data", "inspect", out, "--json").json()
            self.assertEqual(look["bytes"], len(text.encode()))
            if len(text) < 160:
                self.assertEqual(look["begins"], text)
            else:
                self.assertGreater(len(look["begins"]), 160)
                self.assertTrue(text.startswith(look["begins"]), look)

    # A run with pieces of words that is stopped and goes on ends as one that was not. It is asked and measured: one
    # tokenizer through all of it.
    @WITH_TORCH
    def test_run(self):
        words = ("data.tokenizer=sentencepiece", "data.vocabulary=400", "train.steps=250", "checkpoint.every_steps=40")
        self.assertEqual(self.train("whole", *words).status, 0)
        self.train_and_stop("run", *words)
        done = program.run("train", "--resume", "--out", self.folder / "run")
        self.assertEqual(done.status, 0, done.err)
        self.assertEqual(self.model("run"), self.model("whole"))
        self.assertEqual((self.folder / "run/model/tokenizer.model").read_bytes(),
                         (self.folder / "run/data/tokenizer.model").read_bytes())  # fmt: skip
        answer = program.run("predict", self.folder / "run", "7 sheep", "--tokens", "5", "--json").json()
        self.assertTrue(answer["text"].startswith("7 sheep"))
        measured = program.run("eval", self.folder / "run", "--data", self.text, "--json")
        self.assertEqual(measured.status, 0, measured.err)
        self.assertEqual(measured.json()["bytes"], len(TEXT))


class WithoutTorch(Folder):
    def setUp(self):
        super().setUp()
        (self.folder / "bin").mkdir()
        self.program = self.folder / "bin/gossamer"
        shutil.copy(program.GOSSAMER, self.program)

    def run_copy(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, check=False,
                              timeout=program.TIMEOUT)
        return program.Finished(done.returncode, done.stdout, done.stderr)

    # A program without the module trains no language model, says what builds it, and does all else.
    def test_what_builds_the_module(self):
        refused = self.run_copy("train", "lm", f"data.train={self.text}", "--out", self.folder / "run")
        self.failed(refused, 4, str(self.folder / "bin/gossamer_torch.so"), "make torch")
        self.assertFalse((self.folder / "run").exists())
        self.assertEqual(self.run_copy("version", "--json").json()["parts"], {"torch": None, "sentencepiece": None})
        self.assertIn("make torch", self.run_copy("version").out)
        doctor = self.run_copy("doctor", "--json").json()
        self.assertIs(doctor["ok"], True)
        for check in doctor["checks"][-2:]:
            self.assertIn("make torch", check["advice"], check)
        refused = self.run_copy("bench", "stage", "preset=tiny")
        self.failed(refused, 4, str(self.folder / "bin/gossamer_torch.so"), "make torch")
        refused = self.run_copy("data", "import", "lm", self.text, "--tokenizer", "sentencepiece", "--out",
                                self.folder / "tokens")  # fmt: skip
        self.failed(refused, 4, str(self.folder / "bin/gossamer_sentencepiece.so"), "make torch")
        self.assertFalse((self.folder / "tokens").exists())

    # What is no module beside the program is named, and `doctor` says that it will not work.
    def test_a_broken_module(self):
        module = self.folder / "bin/gossamer_torch.so"
        module.write_text("no library", encoding="utf-8")
        refused = self.run_copy("train", "lm", f"data.train={self.text}", "--out", self.folder / "run")
        self.failed(refused, 4, str(module), "make torch")
        doctor = self.run_copy("doctor", "--json")
        self.assertEqual(doctor.status, 1)
        checks = {check["name"]: check for check in doctor.json()["checks"]}
        self.assertEqual((checks["torch"]["health"], checks["sentencepiece"]["health"]), ("bad", "advice"))


class Words(Folder):
    # Keys are listed; a misspelt one is refused with the nearest, and one that contradicts another by its name.
    def test_keys(self):
        keys = program.run("train", "--keys", "lm")
        self.assertEqual(keys.status, 0, keys.err)
        for key in ("data.train=", "model.preset=tiny", "train.lr=auto", "optimizer.beta2=0.95"):
            self.assertIn(key, keys.out)
        self.failed(self.train("run", "model.widht=8"), 2, "'model.width'")
        self.failed(self.train("run", "train.batch=2"), 2, "train.microbatch")
        self.failed(program.run("train", "lm", "--out", self.folder / "run"), 2, "data.train", "add data.train=FILE")
        self.assertFalse((self.folder / "run").exists())

    # Members from other machines, and boundaries that no message holds, are refused for what they are.
    def test_members(self):
        led = program.run("coordinator", "lm", f"data.train={self.text}", "--listen", "127.0.0.1:0", "--out",
                          self.folder / "run")
        self.failed(led, 2, "members from other machines")
        many = self.train("run", "pipeline.stages=3", "--nodes", "2")
        self.failed(many, 2, "pipeline.stages", "3 stages of 2 layers, with 2 nodes", "at most 2")
        large = self.train("run", "model.width=8192", "model.context=4096", "--nodes", "2")
        self.failed(large, 2, "too large for a message", "model.context")
        self.assertFalse((self.folder / "run").exists())

    # Texts are imported and looked at without libtorch. Flags of other kinds are refused by name.
    def test_import(self):
        out = self.folder / "tokens"
        done = program.run("data", "import", "lm", self.text, "--out", out, "--json")
        self.assertEqual(done.status, 0, done.err)
        counts = done.json()
        self.assertEqual((counts["documents"], counts["bytes"], counts["tokens"]), (1, len(TEXT), len(TEXT) + 1))
        look = program.run("data", "inspect", out, "--json").json()
        self.assertEqual((look["documents"], look["tokens"]), (1, len(TEXT) + 1))
        self.assertEqual(look["begins"], TEXT[:160])
        self.failed(program.run("data", "import", "lm", self.text, "--out", out), 2, str(out))
        self.failed(program.run("data", "import", "lm", self.text, "--plain", "--out", self.folder / "b"), 2, "--plain")

    # Flags for texts are refused for a model of labels.
    def test_flags_of_texts(self):
        data = self.folder / "train.txt"
        program.write_xmlc(data, 40, 1)
        run = self.folder / "sparse"
        trained = program.run("train", "xmc", f"data.train={data}", "train.steps=3", "--out", run)
        self.assertEqual(trained.status, 0, trained.err)
        self.failed(program.run("predict", run, "3:1", "--tokens", "3"), 2, "--tokens", "a model of: lm")


if __name__ == "__main__":
    unittest.main()
