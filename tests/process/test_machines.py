# SPDX-License-Identifier: Apache-2.0
"""`coordinator CONFIG` and `join`: machines that share no file train what one process would.

A member sees nothing of the coordinator's directory: in a mount namespace of its own an empty file system lies over
it. If this user may not make one, these tests say so and are skipped.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import unittest

import program
import test_train_nodes
import test_training
from ports import address_of_its_own

# Rounding of others' bf16 adds up to 1e-3, in one process, too.
KEYS = [*test_train_nodes.KEYS, "optimizer.moments=element"]


def unshare():
    """The command that gives a process mounts of its own; None if that is not allowed."""
    for command in (["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"]):
        try:
            if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
                return command
        except OSError:
            pass
    return None


UNSHARE = unshare()


@unittest.skipIf(UNSHARE is None, "hiding directories needs mount namespaces: run as root")
class Machines(test_training.WithData):
    export = test_train_nodes.TrainNodes.export
    wait_for = test_train_nodes.TrainNodes.wait_for
    end = test_train_nodes.TrainNodes.end

    def setUp(self):
        super().setUp()
        self.lead_directory = self.path("lead")
        os.mkdir(self.lead_directory)
        self.run_directory = os.path.join(self.lead_directory, "run")
        self.members = {}

    def start(self, name, *arguments, hidden=(), sizes=""):
        """Starts a process that sees nothing in the hidden directories."""
        mounts = "".join(f'mount -t tmpfs{sizes} none "{one}" && ' for one in hidden)
        through = [*UNSHARE, "sh", "-c", mounts + 'exec "$@"', "sh"] if hidden else []
        process = program.Running(*arguments, through=through, environment={"XDG_STATE_HOME": self.path(f"state-{name}")})
        self.addCleanup(self.end, process)
        return process

    def lead(self, *more, steps, first=3):
        """Starts the coordinator, and notes where and with which token others join."""
        where = [] if "--resume" in more else ["--listen", address_of_its_own()]
        leader = self.start("lead", "coordinator", "xmc", f"data.train={self.train_path}", f"data.test={self.test_path}",
                            *KEYS, f"train.steps={steps}", *where, "--first", first, "--out", self.run_directory,
                            *more)  # fmt: skip
        return self.read_join_line(leader)

    def read_join_line(self, leader):
        line = leader.process.stdout.readline()
        if not line:
            self.fail(leader.finish().err)
        found = re.fullmatch(r"gossamer join (\S+)(?: --token (\S+))?\n", line)
        self.assertIsNotNone(found, line)
        self.address = found[1]
        self.token = found[2] or self.token
        return leader

    def join(self, name, hidden=None, sizes=""):
        member = self.start(name, "join", self.address, "--token", self.token, "--name", name, "--cores", "1",
                            "--dir", self.path(name), hidden=hidden or [self.lead_directory], sizes=sizes)  # fmt: skip
        self.members[name] = member
        return member

    def status(self):
        done = program.run("status", self.run_directory, "--json")
        return done.json() if done.status == 0 else {"step": None, "members": []}

    def wait_for_steps(self, beyond):
        self.wait_for(f"steps beyond {beyond}", lambda: (self.status()["step"] or 0) > beyond)

    def train_alone(self, steps):
        alone = self.path("alone")
        done = program.run("train", "xmc", f"data.train={self.train_path}", f"data.test={self.test_path}", *KEYS,
                           f"train.steps={steps}", "--out", alone, "--json")  # fmt: skip
        self.assertEqual(done.status, 0, done.err)
        return done.json(), self.export(alone)

    def expect_model(self, leader, want, want_weights):
        done = leader.finish()
        self.assertEqual(done.status, 0, done.err)
        with open(f"{self.run_directory}/summary.json", encoding="utf-8") as file:
            got = json.load(file)
        self.assertEqual(got["steps"], want["steps"])
        self.assertAlmostEqual(got["final_loss"], want["final_loss"], delta=1e-4)
        self.assertAlmostEqual(got["metrics"]["P@1"], want["metrics"]["P@1"], delta=1)
        self.assertLess(test_train_nodes.distance(self.export(self.run_directory), want_weights), 1e-4)
        with open(f"{self.run_directory}/metrics.jsonl", encoding="utf-8") as file:
            steps = [json.loads(line)["step"] for line in file]
        self.assertEqual(steps, sorted(set(steps)))
        self.assertEqual(steps[-1], want["steps"])
        self.assertFalse(os.path.exists(f"{self.run_directory}/nodes/parts"))
        return got

    # Three machines get the data and train. One is killed and its directory is gone, and one comes late. The imported
    # files are gone, too. The model equals the model of one process, and no machine keeps the data.
    def test_machines_train_what_one_process_trains(self):
        steps = 2000
        want, want_weights = self.train_alone(steps)
        leader = self.lead(steps=steps)
        os.remove(self.train_path)
        for name in ("one", "two", "three"):
            self.join(name)
        self.wait_for_steps(50)
        for name in ("one", "two", "three"):
            self.assertTrue(os.path.exists(self.path(name) + "/data/train.cache"), name)
        self.members["two"].signal(signal.SIGKILL)
        self.members["two"].process.wait()
        shutil.rmtree(self.path("two"))
        self.join("four").wait_for_line("data: all here")
        got = self.expect_model(leader, want, want_weights)
        # A machine that is busy with other tests may hold nothing in the end: work goes where it is done fastest.
        self.assertIn(got["nodes"], (1, 2, 3))
        for name in ("one", "three", "four"):
            done = self.members[name].finish()
            self.assertEqual(done.status, 0, done.err)
            self.assertFalse(os.path.exists(self.path(name) + "/data"), name)

    # Machines answer questions about a model without training records. They get no test records.
    def test_machines_measure_what_they_have_trained(self):
        leader = self.lead("predict.instances=false", steps=300)
        for name in ("one", "two", "three"):
            self.join(name)
        done = leader.finish()
        self.assertEqual(done.status, 0, done.err)
        with open(f"{self.run_directory}/summary.json", encoding="utf-8") as file:
            got = json.load(file)
        measured = program.run("eval", self.run_directory, "--data", self.test_path, "--json")
        self.assertEqual(measured.status, 0, measured.err)
        self.assertEqual(got["metrics"], measured.json()["metrics"])
        self.assertGreater(got["metrics"]["P@1"], 50)
        for name in ("one", "two", "three"):
            self.assertEqual(self.members[name].finish().status, 0, name)

    # A coordinator that is killed while it measures asks the same machines again with --resume.
    def test_the_coordinator_measures_on(self):
        self.test_path = test_train_nodes.TrainNodes.many_records(self)
        leader = self.lead("predict.instances=false", steps=200)
        for name in ("one", "two", "three"):
            self.join(name)
        leader.wait_for_line("the nodes measure what they have trained")
        leader.signal(signal.SIGKILL)
        leader.finish()
        leader = self.lead("--resume", "predict.instances=false", steps=200)
        done = leader.finish()
        self.assertEqual(done.status, 0, done.err)
        with open(f"{self.run_directory}/summary.json", encoding="utf-8") as file:
            got = json.load(file)
        measured = program.run("eval", self.run_directory, "--data", self.test_path, "--json")
        self.assertEqual(got["metrics"], measured.json()["metrics"])
        for name in ("one", "two", "three"):
            self.assertEqual(self.members[name].finish().status, 0, name)

    # A coordinator that is killed while members train leads on with --resume. Members have gone on meanwhile. What it
    # keeps of the run may have the name that older versions gave it.
    def test_the_coordinator_leads_on(self):
        steps = 3000
        want, want_weights = self.train_alone(steps)
        leader = self.lead(steps=steps, first=2)
        for name in ("one", "two"):
            self.join(name)
        self.wait_for_steps(50)
        leader.signal(signal.SIGKILL)
        leader.finish()
        own = f"{self.run_directory}/nodes/coordinator"
        os.rename(f"{own}/lead.toml", f"{own}/run.toml")
        self.expect_model(self.lead("--resume", steps=steps, first=2), want, want_weights)
        self.assertTrue(os.path.exists(f"{own}/lead.toml"))

    # A member whose disk has no room for the data says so and leaves. The others train.
    def test_a_disk_without_room(self):
        program.write_xmlc(self.train_path, 20_000, seed=1)
        steps = 300
        want, want_weights = self.train_alone(steps)
        leader = self.lead(steps=steps, first=1)
        small = self.path("small")
        os.mkdir(small)
        done = self.join("small", hidden=[self.lead_directory, small], sizes=" -o size=1m").finish()
        self.assertEqual(done.status, 1, done.err)
        self.assertIn("too little room", done.err)
        self.join("large")
        self.expect_model(leader, want, want_weights)

    def events(self):
        try:
            with open(f"{self.run_directory}/events.jsonl", encoding="utf-8") as file:
                return [json.loads(line) for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []

    def has_checkpoint(self):
        return any(event["event"] == "checkpoint_written" for event in self.events())

    # The run's directory names its coordinator for status, token and stop. stop ends all with status 0 once all
    # machines have delivered their parts. After --resume other machines, in another number, go on from there, and one
    # of before with what it has. They train what one process trains. The token is that of before.
    def test_stop_and_resume(self):
        steps = 1500
        want, want_weights = self.train_alone(steps)
        leader = self.lead(steps=steps, first=2)
        for name in ("one", "two"):
            self.join(name)
        self.wait_for_steps(50)
        token = program.run("token", "create", self.run_directory)
        self.assertEqual(token.status, 0, token.err)
        self.assertIn(f"gossamer join {self.address} --token ", token.out)
        done = program.run("stop", self.run_directory)
        self.assertEqual(done.status, 0, done.err)
        for name in ("one", "two"):
            self.assertEqual(self.members[name].finish().status, 0, name)
        ended = leader.finish()
        self.assertEqual(ended.status, 0, ended.err)
        self.assertIn("continue with: gossamer", ended.err)
        self.assertTrue(self.has_checkpoint())
        self.assertFalse(os.path.exists(f"{self.run_directory}/model"))
        away = program.run("status", f"{self.run_directory}/")
        self.assertEqual(away.status, 1)
        self.assertIn(f"continue with: gossamer coordinator --resume --out {self.run_directory}\n", away.err)
        before, address = self.token, self.address
        leader = self.lead("--resume", steps=steps, first=3)
        self.assertEqual(self.address, address)
        self.token = before
        for name in ("three", "four", "one"):
            self.join(name)
        self.expect_model(leader, want, want_weights)
        self.assertEqual([event["event"] for event in self.events()].count("resumed"), 1)
        again = program.run("coordinator", "xmc", f"data.train={self.train_path}", f"data.test={self.test_path}", *KEYS,
                            f"train.steps={steps}", "--resume", "--out", self.run_directory)  # fmt: skip
        self.assertEqual(again.status, 0, again.err)
        self.assertIn("is finished already", again.err)
        self.assertIn("the run is finished", program.run("status", self.run_directory).err)

    # A run that is stopped while the coordinator's disk is full says so and ends with status 1. Its nodes go on: they
    # keep their saved parts. Once there is room, the coordinator that comes back gets the parts, and ends the run.
    def test_stop_without_room(self):
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "gossamer-test", self.lead_directory],
                              capture_output=True, text=True, check=False)  # fmt: skip
        if made.returncode != 0:
            self.skipTest(f"cannot mount a small file system: {made.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", self.lead_directory], check=False)
        steps = 1_000_000
        leader = self.lead(steps=steps, first=2)
        for name in ("one", "two"):
            self.join(name)
        self.wait_for_steps(50)
        filler = f"{self.lead_directory}/filler"
        program.fill_disk(filler, room=128 << 10)
        done = program.run("stop", self.run_directory)
        self.assertEqual(done.status, 0, done.err)
        ended = leader.finish()
        self.assertEqual(ended.status, 1, ended.err)
        self.assertIn("cannot be stored", ended.err)
        self.assertIn("too little room", ended.err)
        self.assertIn("--resume within ten minutes", ended.err)
        self.assertFalse(self.has_checkpoint())
        for name in ("one", "two"):
            self.assertIsNone(self.members[name].process.poll(), name)
        os.remove(filler)
        leader = self.lead("--resume", steps=steps, first=2)
        ended = leader.finish()
        self.assertEqual(ended.status, 0, ended.err)
        for name in ("one", "two"):
            self.assertEqual(self.members[name].finish().status, 0, name)
        self.assertTrue(self.has_checkpoint())

    # All machines and the coordinator are killed. The steps since the last checkpoint are nowhere. Led on with the same
    # machines, the run finds that out and begins anew from there, in the same processes. It does so once more for each
    # newer checkpoint that machines bring one after another: those that the coordinator had not got when it was killed.
    def test_all_are_killed(self):
        steps = 1500
        want, want_weights = self.train_alone(steps)
        every = "checkpoint.every_steps=100"
        leader = self.lead(every, steps=steps, first=2)
        for name in ("one", "two"):
            self.join(name)
        self.wait_for("a checkpoint", self.has_checkpoint)
        for process in (leader, *self.members.values()):
            process.signal(signal.SIGKILL)
            process.process.wait()
        leader = self.lead("--resume", every, steps=steps, first=2)
        for name in ("one", "two"):
            self.join(name)
        self.expect_model(leader, want, want_weights)
        begun = [event["step"] for event in self.events() if event["event"] == "waits_for_members"]
        self.assertTrue(begun)
        self.assertEqual(begun, sorted(set(begun)), "each fleet begins with a newer checkpoint")
        for name in ("one", "two"):
            self.assertEqual(self.members[name].finish().status, 0, name)

    LOSS_STEPS = 1500

    # Two machines train without copies. One of them is killed after the first checkpoint. Returns the coordinator.
    def lose_a_part(self):
        leader = self.lead("checkpoint.every_steps=100", "cluster.copies=0", steps=self.LOSS_STEPS, first=2)
        for name in ("one", "two"):
            self.join(name)
        self.wait_for("a checkpoint", self.has_checkpoint)
        lost = self.members["two"]
        lost.signal(signal.SIGKILL)
        lost.process.wait()
        return leader

    # A machine is killed that has a part of which nobody has a copy. The run begins anew from its newest checkpoint, in
    # the same process of the coordinator and of the machine that lives, and ends with the model of one process.
    def test_a_part_is_lost(self):
        want, want_weights = self.train_alone(self.LOSS_STEPS)
        leader = self.lose_a_part()
        waits = "waits_for_members"
        self.wait_for(waits, lambda: any(one["event"] == waits for one in self.events()))
        self.join("two")
        self.expect_model(leader, want, want_weights)
        for name in ("one", "two"):
            self.assertEqual(self.members[name].finish().status, 0, name)

    # The coordinator is killed as soon as it says that a part is lost. Its store may say by then that the run has failed.
    # Led on, the run begins anew from its newest checkpoint all the same.
    def test_killed_as_a_part_is_lost(self):
        want, want_weights = self.train_alone(self.LOSS_STEPS)
        leader = self.lose_a_part()
        leader.wait_for_line("a part of what the run has learnt is lost")
        leader.signal(signal.SIGKILL)
        leader.finish()
        leader = self.lead("--resume", "checkpoint.every_steps=100", "cluster.copies=0", steps=self.LOSS_STEPS, first=1)
        self.join("two")
        self.expect_model(leader, want, want_weights)
        for name in ("one", "two"):
            self.assertEqual(self.members[name].finish().status, 0, name)

    # All machines leave in order, at once or not, and come back. The coordinator waits for them, and they train what one
    # process trains without a pause: no step is done anew, and each has its line.
    def test_all_leave_and_return(self):
        steps = 1500
        want, want_weights = self.train_alone(steps)
        leader = self.lead(steps=steps, first=2)
        for name in ("one", "two"):
            self.join(name)
        for times in (1, 2):
            self.wait_for_steps((self.status()["step"] or 0) + 50)
            for name in ("one", "two"):
                self.members[name].signal(signal.SIGTERM)
            for name in ("one", "two"):
                self.assertEqual(self.members[name].finish().status, 143, name)
            waits = "waits_for_members"
            self.wait_for(waits, lambda: len([one for one in self.events() if one["event"] == waits]) == times)
            self.assertEqual([one["steps_lost"] for one in self.events() if one["event"] == waits], [0] * times)
            for name in ("one", "two"):
                self.join(name)
        self.expect_model(leader, want, want_weights)

    # The only machine is told to leave while there is no coordinator. It saves its part in its own directory, and leaves.
    # When both are back, it brings the part before it works. The run goes on where it was, though nobody had it.
    def test_the_last_leaves_alone(self):
        leader = self.lead(steps=1_000_000, first=1)
        self.join("one")
        self.wait_for_steps(50)
        leader.signal(signal.SIGKILL)
        leader.finish()
        self.members["one"].signal(signal.SIGTERM)
        done = self.members["one"].finish()
        self.assertEqual(done.status, 143, done.err)
        self.assertIn("it saves its part here", done.err)
        saved = program.saved_step(self.path("one"))
        self.assertGreater(saved, 50)
        leader = self.lead("--resume", steps=1_000_000, first=1)
        self.join("one").wait_for_line("what was saved here before")
        self.wait_for_steps(saved)
        self.assertEqual([one["step"] for one in self.events() if one["event"] == "waits_for_members"][-1], saved)
        self.assertEqual(program.run("stop", self.run_directory).status, 0)
        self.assertEqual(leader.finish().status, 0)

    # A machine is expelled while all train. It ends with the reason, and the others make the model.
    def test_an_expelled_machine(self):
        steps = 2000
        want, want_weights = self.train_alone(steps)
        leader = self.lead(steps=steps, first=3)
        for name in ("one", "two", "three"):
            self.join(name)
        self.wait_for_steps(50)
        nodes = {member["name"]: member["node"] for member in self.status()["members"]}
        done = program.run("node", "expel", self.run_directory, nodes["two"])
        self.assertEqual(done.status, 0, done.err)
        done = self.members["two"].finish()
        self.assertEqual(done.status, 4, done.err)
        self.assertIn("this node was expelled from the run", done.err)
        self.expect_model(leader, want, want_weights)
        for name in ("one", "three"):
            self.assertEqual(self.members[name].finish().status, 0, name)

    # Nobody leads when two machines that train are told to leave, one after the other. Both have saved the same step, and
    # bring it when they are back. The run goes on there.
    def test_all_leave_while_nobody_leads(self):
        steps = 1_000_000
        leader = self.lead(steps=steps, first=2)
        for name in ("one", "two"):
            self.join(name)
        self.wait_for_steps(50)
        leader.signal(signal.SIGKILL)
        leader.finish()
        saved = set()
        for name in ("one", "two"):
            self.members[name].signal(signal.SIGTERM)
            done = self.members[name].finish()
            self.assertEqual(done.status, 143, done.err)
            self.assertIn("it saves its part here", done.err)
            saved.add(program.saved_step(self.path(name)))
        self.assertEqual(len(saved), 1, saved)
        leader = self.lead("--resume", steps=steps, first=2)
        for name in ("two", "one"):
            self.join(name)
        self.wait_for_steps(*saved)
        self.wait_for("both serve", lambda: [one["state"] for one in self.status()["members"]] == ["serving"] * 2)
        self.assertEqual([one["step"] for one in self.events() if one["event"] == "waits_for_members"][-1], *saved)
        self.assertEqual(program.run("stop", self.run_directory).status, 0)
        self.assertEqual(leader.finish().status, 0)

    # The coordinator is killed after the last step, while machines leave. What they have delivered is not lost: `--resume`
    # makes the model of it, without a step.
    def test_killed_after_the_last_step(self):
        steps = 300
        want, want_weights = self.train_alone(steps)
        for moment in ("the network is trained", "writing the model", "reading test records"):
            with self.subTest(moment=moment):
                leader = self.lead(steps=steps, first=2)
                for name in ("one", "two"):
                    self.join(name)
                leader.wait_for_line(moment)
                leader.signal(signal.SIGKILL)
                leader.finish()
                self.expect_model(self.resume_alone(steps), want, want_weights)
                for name in ("one", "two"):
                    self.assertEqual(self.members[name].finish().status, 0, name)
                    shutil.rmtree(self.path(name))
                shutil.rmtree(self.run_directory)
                os.remove(f"{self.run_directory}.safetensors")

    def resume_alone(self, steps):
        """Leads on; no other machine joins."""
        return self.start("lead", "coordinator", "xmc", f"data.train={self.train_path}", f"data.test={self.test_path}", *KEYS,
                          f"train.steps={steps}", "--resume", "--out", self.run_directory)  # fmt: skip

    # Impossible wishes are refused before anything is made.
    def test_refusals_of_coordinator(self):
        for more, words in (
            (["--standby", "b:7070"], "has one coordinator"),
            (["train.bacth=3"], "train.batch"),
        ):
            with self.subTest(more=more):
                done = program.run("coordinator", "xmc", f"data.train={self.train_path}", *more,
                                   "--listen", "127.0.0.1:0", "--out", self.run_directory)  # fmt: skip
                self.assertEqual(done.status, 2, done.err)
                self.assertIn(words, done.err)
                self.assertFalse(os.path.exists(self.run_directory))


if __name__ == "__main__":
    unittest.main()
