# SPDX-License-Identifier: Apache-2.0
"""kill -9 at many moments of a run, chosen by a seed and by what can be seen of the run, never by the clock.

Whatever the moment, --resume ends with the model directory of an undisturbed run, byte by byte.
"""

import json
import os
import random
import shutil
import signal
import time
import unittest

import program
import test_training

EVERY = 50  # steps between two checkpoints
TRIES = 5   # a run may reach its end before the signal reaches it


def model_files(run):
    """Every file of the model directory by name."""
    files = {}
    for name in sorted(os.listdir(os.path.join(run, "model"))):
        with open(os.path.join(run, "model", name), "rb") as file:
            files[name] = file.read()
    return files


class Kill(test_training.WithData):
    def setUp(self):
        super().setUp()
        # Long enough that a signal sent when measuring begins arrives before it ends.
        program.write_xmlc(self.test_path, 6000, seed=3)
        self.reference = self.path("reference")
        done = self.train(self.reference)
        self.assertEqual(done.status, 0, done.err)
        self.summary = done.json()
        self.expected = model_files(self.reference)

    def command(self, out, *more):
        return self.arguments("train.epochs=40", f"checkpoint.every_steps={EVERY}", "checkpoint.every_minutes=0",
                              "--json", *more, out=out)  # fmt: skip

    def train(self, out, *more):
        return program.run(*self.command(out, *more))

    def steps_logged(self, out):
        try:
            with open(os.path.join(out, "metrics.jsonl"), "rb") as file:
                return file.read().count(b"\n")
        except FileNotFoundError:
            return 0

    def kill_when(self, out, moment):
        """Starts or continues the run in `out` and kills it once moment() is true. False: it had ended by then."""
        running = program.Running(*self.command(out, "--resume"))
        patience = time.monotonic() + program.TIMEOUT
        while running.process.poll() is None and not moment():
            self.assertLess(time.monotonic(), patience, "the moment never came")
            os.sched_yield()
        running.signal(signal.SIGKILL)
        done = running.finish()
        self.assertIn(done.status, (0, -signal.SIGKILL), done.err)
        return done.status != 0

    def finish(self, out):
        """Continues the run to its end. Returns its summary."""
        done = self.train(out, "--resume")
        self.assertEqual(done.status, 0, done.err)
        self.assertEqual(model_files(out), self.expected)
        summary = done.json()
        for key in ("steps", "samples", "final_loss", "metrics"):
            self.assertEqual(summary[key], self.summary[key], key)
        with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as file:
            steps = [json.loads(line)["step"] for line in file]
        self.assertEqual(steps, list(range(1, summary["steps"] + 1)))
        return summary

    # A run that is killed up to four times, after any steps, ends with the same bytes. It repeats no more steps than
    # those since the last checkpoint.
    def test_while_training(self):
        for seed in range(1, 5):
            random_numbers = random.Random(seed)
            moments = sorted(random_numbers.randrange(self.summary["steps"]) for _ in range(random_numbers.randint(1, 4)))
            out = self.path(f"killed{seed}")
            with self.subTest(seed=seed, moments=moments):
                for steps in moments:
                    self.kill_when(out, lambda: self.steps_logged(out) >= steps)
                reached = self.steps_logged(out)
                self.assertGreaterEqual(reached, moments[-1])
                part = self.finish(out)["since_resume"]
                self.assertGreaterEqual(part["step"] if part else 0, (moments[-1] - 1) // EVERY * EVERY)

    # A run is killed as soon as a name appears in its directory. The names are the imported data, a checkpoint before
    # it is whole, and the model before it is whole and after.
    def test_while_writing(self):
        def appears(out, folder, ending):
            try:
                return any(name.endswith(ending) for name in os.listdir(os.path.join(out, folder)))
            except (FileNotFoundError, NotADirectoryError):
                return False

        for folder, ending in (("", "run.toml"), ("", "cache"), ("cache", "train.cache"), ("checkpoints", ".tmp"),
                               ("checkpoints", f"{self.summary['steps']:012}.ckpt"), ("", "model.tmp"),
                               ("model.tmp", ".safetensors"), ("model", "model.json"), ("", "curve.svg")):  # fmt: skip
            with self.subTest(folder=folder, ending=ending):
                out = self.killed(lambda out: appears(out, folder, ending))
                self.finish(out)
                self.assertFalse(appears(out, "", ".tmp"))

    # A run that is killed while the model is measured repeats no step, and has the same figures.
    def test_while_evaluating(self):
        out = self.killed(lambda out: os.path.exists(os.path.join(out, "curve.svg")))
        self.assertFalse(os.path.exists(os.path.join(out, "summary.json")))
        part = self.finish(out)["since_resume"]
        self.assertEqual(part["step"], self.summary["steps"])
        self.assertEqual(part["samples_per_second"], 0)

    def killed(self, moment):
        """The directory of a new run that was killed at a moment."""
        out = self.path("killed")
        for _ in range(TRIES):
            shutil.rmtree(out, ignore_errors=True)
            if self.kill_when(out, lambda: moment(out)):
                return out
        return self.fail(f"the run ended before the signal, {TRIES} times")


if __name__ == "__main__":
    unittest.main()
