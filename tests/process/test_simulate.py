# SPDX-License-Identifier: Apache-2.0
"""gossamer simulate: output for scripts, wrong words, the command that replays a seed, Ctrl-C."""

import os
import shlex
import signal
import tempfile
import unittest

import program

# Nearly every seed shows this defect, and early, so it is cheap.
BROKEN = ["cluster-chaos", "break=stale-lease"]
FIELDS = ["scenario", "seeds", "violations", "first_bad_seed", "virtual_seconds", "wall_seconds", "figures"]
FIGURES = ["state_hash", "events", "faults_injected", "steps_committed"]


def simulate(*arguments):
    return program.run("simulate", *arguments)


class GoodUse(unittest.TestCase):
    # Standard output has one JSON object with the fields of the contract, and standard error is empty.
    def test_json(self):
        done = simulate("cluster-chaos", "faults=2", "calm_s=15", "--seeds", "3", "--json", "--quiet")
        self.assertEqual((done.status, done.err), (0, ""))
        result = done.json()
        self.assertEqual(list(result), FIELDS)
        self.assertEqual((result["scenario"], result["seeds"]), ("cluster-chaos", 3))
        self.assertEqual((result["violations"], result["first_bad_seed"]), (0, None))
        self.assertGreater(result["virtual_seconds"], 0)
        for name in FIGURES:
            self.assertIn(name, result["figures"])
        self.assertRegex(result["figures"]["state_hash"], "^[0-9a-f]{16}$")
        self.assertEqual(result["figures"]["faults_injected"], 6)

    # The same seeds give the same figures, with any number of threads and in every run.
    def test_one_hash(self):
        words = ["cluster-chaos", "faults=2", "calm_s=15", "--seed", "5", "--seeds", "4", "--json", "--quiet"]
        one, many, checked = (
            simulate(*words, *more).json() for more in (["--threads", "1"], ["--threads", "3"], ["--check"])
        )
        self.assertEqual(one["figures"], many["figures"])
        self.assertEqual(one["figures"], checked["figures"])

    # Output without --json is a page for people. --seed alone means one seed.
    def test_text(self):
        done = simulate("cluster-chaos", "faults=0", "calm_s=15", "--seed", "9", "--quiet")
        self.assertEqual((done.status, done.err), (0, ""))
        self.assertIn("cluster-chaos: 1 seeds, 0 broke", done.out)
        self.assertIn("state hash", done.out)

    # break=list prints a name and a sentence each, one a line. Each name is accepted.
    def test_defects_are_listed(self):
        done = simulate("cluster-chaos", "break=list")
        self.assertEqual((done.status, done.err), (0, ""))
        names = [line.split()[0] for line in done.out.splitlines()]
        for name in ["no-fencing", "reply-before-persist", "accept-duplicate", "stale-lease", "lost-ledger-write",
                     "old-generation"]:
            self.assertIn(name, names)
        for line in done.out.splitlines():
            self.assertGreater(len(line.split()), 3, line)

    # The sparse engine adds to the common figures how far its weights are from those of one learner.
    def test_sparse(self):
        done = simulate("sparse-chaos", "faults=2", "--seeds", "3", "--json", "--quiet")
        self.assertEqual((done.status, done.err), (0, ""))
        figures = done.json()["figures"]
        for name in [*FIGURES, "recoveries", "steps_replayed", "evaluations", "runs_lost"]:
            self.assertIn(name, figures)
        self.assertGreater(figures["max_relative_weight_error"], 0)
        self.assertLess(figures["max_relative_weight_error"], 1e-4)
        rounded = simulate("sparse-chaos", "faults=2", "codec=bf16", "--seeds", "3", "--json", "--quiet")
        figures = rounded.json()["figures"]
        self.assertGreater(figures["max_rounded_weight_error"], 0)
        self.assertEqual(figures["max_relative_weight_error"], 0)
        trace = simulate("sparse-chaos", "faults=2", "--seed", "1", "--trace")
        self.assertIn("takes up epoch", trace.out)
        broken = simulate("sparse-chaos", "break=skip-replay-step", "--seeds", "30", "--json", "--quiet")
        self.assertEqual(broken.status, 1)
        self.assertGreater(broken.json()["violations"], 0)

    # The cost of steps on given lines stands beside the least cost: one run, near the bound. Nothing can go wrong in
    # it.
    def test_sparse_steps(self):
        done = simulate("sparse-steps", "members=4", "labels=512", "features=512", "steps=8", "compute_ms=5", "--json",
                        "--quiet")
        self.assertEqual((done.status, done.err), (0, ""))
        result = done.json()
        self.assertEqual((result["seeds"], result["violations"]), (1, 0))
        figures = result["figures"]
        self.assertAlmostEqual(figures["least_seconds_per_step"], 0.030 + 0.005 * 4 / 7 + 8e-9 * figures["least_bytes_per_step"])
        self.assertAlmostEqual(figures["seconds_per_step"], figures["least_seconds_per_step"], delta=0.001)
        self.assertGreater(figures["bytes_per_step"], figures["least_bytes_per_step"])
        self.assertLess(figures["delays_per_exchange"], 1.05)

    # A scenario file works. Keys on the command line overrule it.
    def test_file(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "two words.toml")
            with open(path, "w", encoding="utf-8") as file:
                file.write('preset = "cluster-chaos"\nmembers = 3\ncalm_s = 15\n'
                           '[[fault]]\nkind = "join"\nat_s = 6\n[expect]\nmax_lives = 4\n')
            done = simulate(path, "--seeds", "2", "--json", "--quiet")
            self.assertEqual(done.status, 0, done.err)
            self.assertEqual(done.json()["figures"]["member_lives"], 8)
            broken = simulate(path, "members=4", "--seeds", "2", "--json", "--quiet")
            self.assertEqual(broken.status, 1)
            self.assertEqual(broken.json()["violations"], 2)
            self.assertIn("expected were at most 4", broken.err)
            self.assertIn(f"gossamer simulate '{path}' members=4 --seed 1 --trace", broken.err)


class BrokenSeeds(unittest.TestCase):
    # A violation gives exit status 1. All seeds are run, the first bad one is named, and the named command replays it.
    def test_replay(self):
        done = simulate(*BROKEN, "members=5", "--seeds", "4", "--json", "--quiet")
        self.assertEqual(done.status, 1)
        result = done.json()
        self.assertEqual(result["seeds"], 4)
        self.assertGreater(result["violations"], 0)
        command = shlex.split(done.err.split("to do")[1])
        self.assertEqual(command[:2], ["gossamer", "simulate"])
        self.assertIn("members=5", command)
        self.assertIn(str(result["first_bad_seed"]), command)
        what = done.err.split("got")[1].splitlines()[0].strip()
        again = program.run(*command[1:])
        self.assertEqual(again.status, 1)
        self.assertIn(what, again.err)
        self.assertIn("has the view of epoch", again.out)
        self.assertRegex(again.out, r"(?m)^ +\d+\.\d{3} m1 +begins as node")

    # The trace goes to standard error if standard output is for JSON.
    def test_trace_beside_json(self):
        done = simulate(*BROKEN, "--seed", "1", "--trace", "--json")
        self.assertEqual(done.json()["seeds"], 1)
        self.assertIn("begins as node", done.err)


class WrongWords(unittest.TestCase):
    def refused(self, arguments, status, *parts):
        done = simulate(*arguments)
        self.assertEqual(done.status, status, f"{arguments}: {done.err}")
        self.assertEqual(done.out, "")
        for part in parts:
            self.assertIn(part, done.err, f"{arguments}")

    # Typos name the nearest right word.
    def test_nearest(self):
        self.refused(["cluster-choas"], 2, "'cluster-chaos'")
        self.refused(["cluster-chaos", "membres=3"], 2, "'members'")
        self.refused(["cluster-chaos", "kinds=kll"], 2, "'kill'")
        self.refused(["cluster-chaos", "break=no-fence"], 2, "'no-fencing'")
        self.refused(["cluster-chaos", "--sed", "3"], 2, "--seed")
        self.refused(["sparse-chaos", "kinds=stop"], 2, "all: kill, join")
        self.refused(["sparse-chaos", "break=apply-once"], 2, "'apply-twice'")
        self.refused(["sparse-chaos", "driver=slow"], 2, "prompt, batches")
        self.refused(["sparse-chaos", "dense=9"], 2, "drawn")
        self.refused(["sparse-steps", "member=4"], 2, "members")
        self.refused(["sparse-steps", "codec=f16"], 2, "f32, bf16")
        self.refused(["sparse-steps", "rate_mbps=0"], 2, "rate_mbps")
        self.refused(["sparse-chaos", "lsh=yes"], 2, "none, shared, own")
        self.refused(["sparse-chaos", "microbatches=1"], 2, "leave microbatches out")
        self.refused(["sparse-chaos", "evaluation=maybe"], 2, "yes, no")
        self.refused(["sparse-chaos", "codec=f16"], 2, "f32, bf16")
        self.refused(["sparse-chaos", "exchange=dslide", "lsh=shared"], 2, "lsh=shared", "lsh=own")

    # Values out of range name the range. Missing and contradictory keys are reported.
    def test_values(self):
        self.refused([], 2, "SCENARIO")
        self.refused(["cluster-chaos", "members=0"], 2, "1..64")
        self.refused(["cluster-chaos", "members"], 2, "key=value")
        self.refused(["cluster-chaos", "--seeds", "0"], 2, "--seeds", "1..")
        self.refused(["cluster-chaos", "--seed", "-1"], 2, "--seed")
        self.refused(["cluster-chaos", "first_members=9"], 2, "at most 4")
        self.refused(["cluster-chaos", "--trace", "--seeds", "2"], 2, "one seed")

    # A missing file, a file that is not TOML, and one with a wrong key are named, with line and column.
    def test_files(self):
        self.refused(["no-such.toml"], 1, "no-such.toml")
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "x.toml")
            for text, where, part in [
                ("preset = \n", ":1:", "as TOML"),
                ('preset = "cluster-chaos"\nmembrs = 3\n', ":2:10", "'members'"),
                ('preset = "cluster-chaos"\n[[fault]]\nkind = "kill"\nat_s = -1\n', ":4:8", "0..3600"),
                ('preset = "sparse-chaos"\n[[fault]]\nkind = "lie"\nat_s = 1\n', "", "'lie'"),
            ]:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                self.refused([path], 2, path + where if where else "sparse-chaos", part)


class Signals(unittest.TestCase):
    # Ctrl-C ends between two seeds, says how far the program was, and prints no result.
    def test_interrupt(self):
        for number, status in [(signal.SIGINT, 130), (signal.SIGTERM, 143)]:
            running = program.Running("simulate", "cluster-chaos", "--seeds", "1000000", "--threads", "2", "--json")
            running.wait_for_line("seed ")
            running.signal(number)
            done = running.finish()
            self.assertEqual(done.status, status, done.err)
            self.assertEqual(done.out, "")
            self.assertRegex(done.err, r"stopped after \d+ of 1000000 seeds, 0 broke")

    # A seed that broke before counts more than the place of the stop.
    # A seed of this defect breaks after some virtual seconds. Others run for minutes under a sanitizer.
    def test_interrupt_after_a_broken_seed(self):
        running = program.Running("simulate", "cluster-chaos", "break=lost-ledger-write", "--seeds", "1000000", "--threads", "2")
        running.wait_for_line("broke")
        running.signal(signal.SIGINT)
        done = running.finish()
        self.assertEqual((done.status, done.out), (1, ""), done.err)
        self.assertRegex(done.err, r"cluster-chaos, seed \d+: \d+ of \d+ seeds broke")


if __name__ == "__main__":
    unittest.main()
