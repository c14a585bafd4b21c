# SPDX-License-Identifier: Apache-2.0
"""Nodes come into a run and go: tokens of some uses, nodes that are expelled, certificates that are renewed."""

import os
import signal
import ssl
import time
import unittest

import program
from fleet import Fleet, by_name, incarnations
from ports import address_of_its_own


class Uses(unittest.TestCase):
    # A token of two uses lets two machines in. The third one is told why not, also after the coordinator was killed.
    # The two need no token to come back.
    def test_a_token_of_two_uses(self):
        fleet = Fleet(self)
        leader = fleet.lead("--listen", address_of_its_own())
        made = fleet.ask("token", "create", fleet.run, "--uses", 2, "--note", "two")
        self.assertEqual(made.status, 0, made.err)
        fleet.token = made.out.split()[-1]
        for name in "ab":
            fleet.join(name)
        fleet.wait_for_members(2)

        def expect_no_use():
            third = fleet.join("c").finish()
            self.assertEqual(third.status, 4, third.err)
            self.assertIn("no uses left", third.err)
            self.assertIn("it has let in 2 nodes", third.err)
            self.assertIn("gossamer token create", third.err)

        expect_no_use()
        (listed,) = (one for one in fleet.ask("token", "list", fleet.run, "--json").json_lines() if one["note"] == "two")
        self.assertEqual((listed["uses"], listed["let_in"]), (2, 2))
        lines = fleet.ask("token", "list", fleet.run).out.splitlines()
        self.assertEqual(len([line for line in lines if "2 of 2 nodes" in line and line.endswith("two")]), 1, lines)
        members = fleet.wait_for_members(2)["members"]
        self.assertEqual({one["token"] for one in members}, {listed["id"]})
        leader.signal(signal.SIGKILL)
        leader.finish()
        fleet.lead("--resume")
        expect_no_use()
        fleet.members["a"].signal(signal.SIGKILL)
        fleet.members["a"].finish()
        fleet.join("a")
        fleet.wait_for_members(2)

    # Without --uses a token lets in as many machines as the run waits for. Wrong numbers are named.
    def test_default(self):
        fleet = Fleet(self)
        fleet.lead("--listen", "127.0.0.1:0", "--first", 3)
        made = fleet.ask("token", "create", fleet.run, "--note", "some")
        self.assertEqual(made.status, 0, made.err)
        self.assertIn("3 nodes", made.err)
        listed = fleet.ask("token", "list", fleet.run, "--json").json_lines()
        self.assertEqual({one["note"]: one["uses"] for one in listed}, {"printed at the start": None, "some": 3})
        self.assertEqual({one["let_in"] for one in listed}, {0})
        for wrong in (0, "x", -1):
            done = fleet.ask("token", "create", fleet.run, "--uses", wrong)
            self.assertEqual(done.status, 2, done.err)
            self.assertIn("--uses", done.err)


class Expelled(unittest.TestCase):
    def expect_expelled(self, fleet, name, *, again=True):
        """The member has ended with a status and a sentence, and does not come back."""
        for _ in range(2 if again else 1):
            done = fleet.members[name].finish()
            self.assertEqual(done.status, 4, done.err)
            self.assertIn("this node was expelled from the run", done.err)
            if again:
                fleet.join(name)
                again = False

    # A node is expelled while all work. The others go on. It ends with status 4, and comes back neither with its
    # certificate nor with its token, also before a coordinator that was started again.
    def test_a_node_that_works(self):
        fleet = Fleet(self)
        leader = fleet.lead("--listen", address_of_its_own())
        for name in "abc":
            fleet.join(name)
        before = by_name(fleet.wait_for_members(3))
        node = before["b"]["node"]
        token = fleet.token
        done = fleet.ask("node", "expel", fleet.run, node)
        self.assertEqual(done.status, 0, done.err)
        self.assertIn(f"node {node} is expelled", done.out)
        self.assertIn(f"token {before['b']['token']} joins nobody any more", done.out)
        self.expect_expelled(fleet, "b")
        status = fleet.wait_for_members(2)
        self.assertEqual(status["expelled"], [node])
        self.assertEqual({name: one["incarnation"] for name, one in by_name(status).items()},
                         {name: before[name]["incarnation"] for name in "ac"})  # fmt: skip
        fleet.wait_for_steps(status["step"])
        self.assertIn(f"expelled: node {node}\n", fleet.ask("status", fleet.run).out)
        self.assertIn(("expelled", node), {(one["event"], one["node"]) for one in fleet.events()})
        other = fleet.ask("join", fleet.address, "--token", token, "--dir", fleet.path("b2"))
        self.assertEqual(other.status, 4, other.err)
        self.assertIn("was revoked", other.err)
        seen = fleet.ask("status", fleet.address, "--dir", fleet.path("b"))
        self.assertEqual(seen.status, 4, seen.err)
        self.assertIn("expelled", seen.err)

        leader.signal(signal.SIGKILL)
        leader.finish()
        fleet.lead("--resume")
        fleet.join("b")
        self.expect_expelled(fleet, "b", again=False)
        self.assertEqual(fleet.wait_for_members(2)["expelled"], [node])

    # All nodes that a token let in are expelled together. Those of another token go on.
    def test_all_nodes_of_a_token(self):
        fleet = Fleet(self)
        fleet.lead("--listen", address_of_its_own())
        fleet.join("a")
        made = fleet.ask("token", "create", fleet.run, "--uses", 9)
        fleet.token = made.out.split()[-1]
        for name in "bc":
            fleet.join(name)
        members = by_name(fleet.wait_for_members(3))
        token = members["b"]["token"]
        self.assertNotEqual(members["a"]["token"], token)
        done = fleet.ask("node", "expel", fleet.run, "--token", token)
        self.assertEqual(done.status, 0, done.err)
        for name in "bc":
            self.expect_expelled(fleet, name)
        status = fleet.wait_for_members(1)
        self.assertEqual(status["expelled"], sorted(members[name]["node"] for name in "bc"))
        fleet.wait_for_steps(status["step"])
        self.assertIsNone(fleet.members["a"].process.poll())
        states = {one["id"]: one["state"] for one in fleet.ask("token", "list", fleet.run, "--json").json_lines()}
        self.assertEqual(sorted(states.values()), ["good", "revoked"])
        self.assertEqual(states[token], "revoked")

    # Words that mean no node are refused, and expel nobody.
    def test_wrong_words(self):
        fleet = Fleet(self)
        leader = fleet.lead("--listen", address_of_its_own())
        fleet.join("a")
        fleet.wait_for_members(1)
        for words, part in (
            (["77"], "no node has this number"),
            (["1"], "N"),
            (["x"], "N"),
            (["--token", "0123456789abcdef"], "no token of this id"),
            (["2", "--token", "0123456789abcdef"], "a node and a token"),
            ([], "no node is named"),
        ):
            done = fleet.ask("node", "expel", fleet.run, *words)
            self.assertEqual(done.status, 2, f"{words}: {done.err}")
            self.assertIn(part, done.err)
        of_node = fleet.ask("node", "expel", fleet.path("a"), "2")
        self.assertEqual(of_node.status, 2, of_node.err)
        self.assertEqual(fleet.wait_for_members(1)["expelled"], [])
        leader.signal(signal.SIGINT)
        leader.finish()
        away = fleet.ask("node", "expel", fleet.run, "2")
        self.assertEqual(away.status, 1, away.err)


class Certificates(unittest.TestCase):
    def certificate(self, fleet, directory):
        with open(fleet.path(directory, "credentials", "certificate.pem"), encoding="utf-8") as file:
            return file.read()

    def come_back(self, fleet, name):
        """A machine of before joins with what it has, and no token."""
        fleet.members[name] = fleet.start("join", fleet.address, "--name", name, "--cores", "1", "--memory", "1G",
                                          "--dir", fleet.path(name))  # fmt: skip
        return fleet.members[name]

    # Claim: certificates of ten seconds are renewed by themselves, the coordinator's too, again and again. The run goes
    # on, and nobody loses its life. A member that was away for longer is the same node again, without a token. Its ended
    # certificate is good for nothing else.
    def test_renewed_by_themselves(self):
        fleet = Fleet(self)
        fleet.lead("--listen", address_of_its_own(), "--certificates", "10s")
        for name in "abc":
            fleet.join(name)
        before = fleet.wait_for_members(3)
        fleet.members["c"].signal(signal.SIGKILL)
        fleet.members["c"].finish()
        alone = fleet.wait_for_members(2)
        seen = {directory: {self.certificate(fleet, directory)} for directory in ("run", "a", "b")}
        for _ in program.looks(90):
            for directory, certificates in seen.items():
                certificates.add(self.certificate(fleet, directory))
            if all(len(certificates) > 5 for certificates in seen.values()):
                break
        self.assertEqual([name for name, all_of_it in seen.items() if len(all_of_it) <= 5], [])
        after = fleet.wait_for_members(2)
        self.assertEqual(incarnations(after), incarnations(alone))
        self.assertGreater(after["step"], alone["step"])

        seen = fleet.ask("status", fleet.address, "--dir", fleet.path("c"))
        self.assertEqual(seen.status, 4, seen.err)
        self.assertIn("gossamer join", seen.err)
        ended = self.certificate(fleet, "c")
        self.come_back(fleet, "c")
        back = by_name(fleet.wait_for_members(3))
        self.assertEqual(back["c"]["node"], by_name(before)["c"]["node"])
        self.assertGreater(back["c"]["incarnation"], by_name(before)["c"]["incarnation"])
        self.assertNotEqual(self.certificate(fleet, "c"), ended)
        texts = [one["text"] for one in fleet.events() if one["event"] == "renewed" and one["node"] == back["c"]["node"]]
        self.assertEqual([text for text in texts if "had ended" in text], ["its certificate, which had ended"])

    # Claim: certificates that end while nobody leads cost nothing. Members that go on get new ones from the coordinator
    # that comes back, and keep their lives. A machine that is switched on before the coordinator waits for it, and is
    # the same node again.
    def test_nobody_led_for_longer(self):
        fleet = Fleet(self)
        leader = fleet.lead("--listen", address_of_its_own(), "--certificates", "6s")
        for name in "abc":
            fleet.join(name)
        before = by_name(fleet.wait_for_members(3))
        fleet.members["c"].signal(signal.SIGKILL)
        fleet.members["c"].finish()
        alone = by_name(fleet.wait_for_members(2))
        leader.signal(signal.SIGKILL)
        leader.finish()
        ended = {name: self.certificate(fleet, name) for name in "abc"}
        for _ in program.looks(8):
            pass
        self.assertEqual({name: self.certificate(fleet, name) for name in "abc"}, ended)
        early = self.come_back(fleet, "c")
        early.wait_for_line("is not renewed yet")
        fleet.lead("--resume")
        status = fleet.wait_for_members(3)
        after = by_name(status)
        self.assertEqual({name: after[name]["node"] for name in "abc"}, {name: before[name]["node"] for name in "abc"})
        self.assertEqual({name: after[name]["incarnation"] for name in "ab"},
                         {name: alone[name]["incarnation"] for name in "ab"})  # fmt: skip
        for name, certificate in ended.items():
            self.assertNotEqual(self.certificate(fleet, name), certificate, name)
        fleet.wait_for_steps(status["step"])

    # Claim: a node that was expelled while it was away stays out, also after its certificate has ended. With a new token
    # its machine joins as another node. What it has saved as the one before is set aside: the run would fence it for that.
    def test_expelled_while_away(self):
        fleet = Fleet(self)
        fleet.lead("--listen", address_of_its_own(), "--certificates", "3s")
        for name in "ab":
            fleet.join(name)
        node = by_name(fleet.wait_for_members(2))["b"]["node"]
        fleet.members["b"].signal(signal.SIGKILL)
        fleet.members["b"].finish()
        done = fleet.ask("node", "expel", fleet.run, node)
        self.assertEqual(done.status, 0, done.err)
        for _ in program.looks(4):
            pass
        for _ in range(2):
            again = self.come_back(fleet, "b").finish()
            self.assertEqual(again.status, 4, again.err)
            self.assertIn("this node was expelled from the run", again.err)
        self.assertIn("enrol_refused", {one["event"] for one in fleet.events()})
        made = fleet.ask("token", "create", fleet.run)
        self.assertEqual(made.status, 0, made.err)
        fleet.token = made.out.split()[-1]
        saved = f"step-000000000009.{node}.part"
        os.makedirs(fleet.path("b", "deliver"), exist_ok=True)
        with open(fleet.path("b", "deliver", saved), "w", encoding="utf-8") as file:
            file.write("of the node before")
        fleet.join("b")
        self.assertGreater(by_name(fleet.wait_for_members(2))["b"]["node"], node)
        self.assertEqual(os.listdir(fleet.path("b", "deliver.1")), [saved])

    # A coordinator that was away for longer than its certificate held renews it when it starts. Tokens can be made
    # meanwhile.
    def test_a_coordinator_that_was_away(self):
        fleet = Fleet(self)
        leader = fleet.lead("--listen", address_of_its_own(), "--certificates", "2s")
        leader.signal(signal.SIGKILL)
        leader.finish()
        before = self.certificate(fleet, "run")
        for _ in program.looks(4):
            pass
        made = fleet.ask("token", "create", fleet.run, "--uses", 2)
        self.assertEqual(made.status, 0, made.err)
        fleet.token = made.out.split()[-1]
        leader = fleet.lead("--resume", "--certificates", "3h")
        self.assertNotEqual(self.certificate(fleet, "run"), before)
        fleet.join("a")
        fleet.wait_for_members(1)

        # The next one keeps to that, although nobody says it again.
        leader.signal(signal.SIGKILL)
        leader.finish()
        fleet.lead("--resume")
        fleet.join("b")
        fleet.wait_for_members(2)
        for name in "ab":
            times = ssl._ssl._test_decode_cert(fleet.path(name, "credentials", "certificate.pem"))
            self.assertLess(abs(ssl.cert_time_to_seconds(times["notAfter"]) - time.time() - 3 * 3600), 3600, name)


if __name__ == "__main__":
    unittest.main()
