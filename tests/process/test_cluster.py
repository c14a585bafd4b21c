# SPDX-License-Identifier: Apache-2.0
"""A fleet as processes on this machine: a coordinator and members that are killed, stopped, refused and flooded.

None of this may cost the others more than a step: each test ends by checking that steps go on.
"""

import base64
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import unittest

import program
from fleet import Fleet, by_name, incarnations
from ports import address_of_its_own


def field_places(message):
    """By tag, where the content of each bytes field of a serialized message begins. No field is longer than 127."""
    places, at = {}, 0
    while at < len(message):
        tag, at = message[at], at + 1
        if tag & 7 == 2:
            places[tag] = at + 1
            at += 1 + message[at]
        else:
            while message[at] >= 0x80:
                at += 1
            at += 1
    return places


class Life(unittest.TestCase):
    # A run of four members survives kills. A killed member is fenced and the others go on. A member that was stopped
    # for too long comes back as a new one. No member begins anew because the coordinator was killed. stop ends all with
    # status 0.
    def test_of_a_run(self):
        fleet = Fleet(self)
        leader = fleet.lead("--listen", address_of_its_own(), "--first", "4")
        for name in "abcd":
            fleet.join(name)
        before = fleet.wait_for_members(4)
        self.assertEqual(sum(one["things"] for one in before["members"]), 12)
        self.assertEqual(sorted(by_name(before)), list("abcd"))
        fleet.wait_for_steps(before["step"])

        fleet.members["d"].signal(signal.SIGKILL)
        three = fleet.wait_for_members(3)
        self.assertEqual(sum(one["things"] for one in three["members"]), 12)
        self.assertGreater(three["epoch"], before["epoch"])
        fleet.wait_for_steps(three["step"])

        fleet.members["c"].signal(signal.SIGSTOP)
        two = fleet.wait_for_members(2)
        fleet.members["c"].signal(signal.SIGCONT)
        again = fleet.wait_for_members(3)
        self.assertGreater(incarnations(again)["c"], incarnations(three)["c"])
        for name in "ab":
            self.assertEqual(incarnations(again)[name], incarnations(three)[name])
        self.assertGreaterEqual(again["step"], two["step"])

        leader.signal(signal.SIGKILL)
        leader.finish()
        leader = fleet.lead("--resume")
        resumed = fleet.wait_for_members(3)
        self.assertEqual(incarnations(resumed), incarnations(again))
        self.assertGreater(resumed["generation"], again["generation"])
        fleet.wait_for_steps(max(again["step"], resumed["step"]))

        stopped = fleet.ask("stop", fleet.address)
        self.assertEqual(stopped.status, 0, stopped.err)
        for name, process in [("leader", leader)] + [(name, fleet.members[name]) for name in "abc"]:
            done = process.finish()
            self.assertEqual(done.status, 0, f"{name}: {done.err}")
        self.check_events(fleet)

    # Each line of events.jsonl has a time, a run, an epoch and a node.
    def check_events(self, fleet):
        for directory in ("run", "a"):
            events = fleet.events(directory)
            self.assertEqual(len({event["run"] for event in events}), 1)
            for event in events:
                self.assertLessEqual({"time", "event", "run", "epoch", "node", "incarnation"}, event.keys())
                self.assertLess(abs(event["time"] - time.time()), 600)
        kinds = {event["event"] for event in events}
        self.assertLessEqual({"begun", "installed", "ended"}, kinds)

    # Ctrl-C at a member gives its part away first. Ctrl-C at the coordinator ends it alone. A second join needs no
    # token, and a second node of one machine takes a directory of its own.
    def test_of_a_node(self):
        fleet = Fleet(self)
        leader = fleet.lead("--listen", address_of_its_own())
        nodes = [fleet.start("join", fleet.address, "--token", fleet.token, "--name", name) for name in "ab"]
        both = fleet.wait_for_members(2)
        nodes[0].signal(signal.SIGINT)
        done = nodes[0].finish()
        self.assertEqual(done.status, 130, done.err)
        self.assertIn("left the run", done.err)
        alone = fleet.wait_for_members(1)
        fleet.wait_for_steps(alone["step"])
        nodes.append(fleet.start("join", fleet.address, "--name", "a"))
        again = fleet.wait_for_members(2)
        self.assertEqual(by_name(again)["a"]["node"], by_name(both)["a"]["node"])
        lost = [event for event in fleet.events() if event["event"] == "lost"]
        self.assertEqual([event["text"] for event in lost], ["it left"])

        leader.signal(signal.SIGINT)
        self.assertEqual(leader.finish().status, 130)
        away = fleet.ask("status", fleet.address)
        self.assertEqual(away.status, 1)
        self.assertIn("cannot connect", away.err)
        for question in ("status", "stop"):
            away = fleet.ask(question, fleet.run)
            self.assertEqual(away.status, 1)
            self.assertIn("no coordinator runs for this run", away.err)
            self.assertIn(f"continue with: gossamer coordinator --resume --out {fleet.run}\n", away.err)
        fleet.lead("--resume")
        resumed = fleet.wait_for_members(2)
        self.assertEqual(incarnations(resumed), incarnations(again))
        nodes[1].signal(signal.SIGTERM)
        self.assertEqual(nodes[1].finish().status, 143)


class Admission(unittest.TestCase):
    # Tokens that are malformed, expired, revoked or of another run, and certificates of another run, give status 4.
    # Each refusal has words of its own, and the run does not notice.
    def test_refusals(self):
        fleet = Fleet(self)
        fleet.lead("--listen", "127.0.0.1:0")
        good = fleet.join("a")
        before = fleet.wait_for_members(1)

        def refused(words, *arguments):
            done = fleet.ask("join", fleet.address, *arguments)
            self.assertEqual(done.status, 4, f"{arguments}: {done.err}")
            self.assertIn(words, done.err)
            self.assertNotIn(fleet.token, done.err)

        refused("token", "--token", "nonsense")
        refused("token", "--token", fleet.token[:-3])
        made = fleet.ask("token", "create", fleet.run, "--note", "to be revoked")
        self.assertEqual(made.status, 0, made.err)
        tokens = fleet.ask("token", "list", fleet.run, "--json").json_lines()
        self.assertEqual([token["state"] for token in tokens], ["good", "good"])
        ids = {token["note"]: token["id"] for token in tokens}
        done = fleet.ask("token", "revoke", fleet.run, ids["to be revoked"])
        self.assertEqual(done.status, 0, done.err)
        refused("was revoked", "--token", made.out.split()[-1], "--dir", fleet.path("new"))
        path = fleet.path("run", "tokens", ids["printed at the start"] + ".json")
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**record, "created": record["created"] - 20, "expires": record["created"] - 10}, file)
        refused("has expired", "--token", fleet.token, "--dir", fleet.path("new"))
        old = fleet.ask("status", fleet.address, "--token", fleet.token)
        self.assertEqual(old.status, 4, old.err)

        first = (fleet.address, fleet.token)
        fleet.lead("--listen", "127.0.0.1:0", out=fleet.path("other"))
        refused("of another run", "--token", first[1], "--dir", fleet.path("new"))
        refused("of another run", "--dir", fleet.path("a2"), "--token", first[1])
        shutil.copytree(fleet.path("a", "credentials"), fleet.path("copy", "credentials"))
        refused("of another run", "--dir", fleet.path("copy"))
        fleet.address = first[0]
        refused("of another run than the token", "--dir", fleet.path("copy"), "--token", fleet.token)

        after = fleet.wait_for_steps(before["step"])
        self.assertEqual(after["epoch"], before["epoch"])
        self.assertIsNone(good.process.poll())

    # A token of another version, a mistyped one, and one with another id or secret give status 4. The last two have the
    # same words, so that nobody learns which ids there are.
    def test_forged(self):
        fleet = Fleet(self)
        fleet.lead("--listen", "127.0.0.1:0")
        prefix, text = fleet.token.split(".")
        body = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))[:-4]

        def refusal(token):
            done = fleet.ask("join", fleet.address, "--token", token, "--dir", fleet.path("new"))
            self.assertEqual(done.status, 4, done.err)
            self.assertNotIn(text[-40:], done.err)
            return re.sub("token [0-9a-f]{16}", "token ID", done.err)

        def sealed(changed):
            whole = changed + hashlib.sha256(changed).digest()[:4]
            return f"{prefix}.{base64.urlsafe_b64encode(whole).decode().rstrip('=')}"

        def flipped(tag):
            place = places[tag]
            return sealed(body[:place] + bytes((body[place] ^ 1,)) + body[place + 1 :])

        self.assertEqual(sealed(body), fleet.token)
        places = field_places(body)
        self.assertIn("version", refusal(f"gossamer2.{text}"))
        at = len(text) // 2
        refusal(f"{prefix}.{text[:at]}{'B' if text[at] == 'A' else 'A'}{text[at + 1 :]}")
        other_id, other_secret = refusal(flipped(0x1A)), refusal(flipped(0x22))
        self.assertEqual(other_id, other_secret)
        self.assertIn("of another run", refusal(flipped(0x2A)))
        self.assertFalse(os.path.exists(fleet.path("new", "credentials")))


class Leaving(unittest.TestCase):
    # The last member that is told to end does not wait for another to take its part over. Nor does a member of a fleet
    # that has not begun.
    def test_of_the_last(self):
        for first in ("1", "2"):
            with self.subTest(first=first):
                fleet = Fleet(self)
                fleet.lead("--listen", "127.0.0.1:0", "--first", first)
                member = fleet.join("a")
                fleet.wait_for("it is there", lambda status: [one["state"] for one in status["members"]] == ["serving"])
                member.signal(signal.SIGINT)
                member.process.wait(timeout=60)
                done = member.finish()
                self.assertEqual(done.status, 130, done.err)
                self.assertIn("nobody can take its part over", done.err)

    # A run whose store is gone is not begun a second time under the same name. With its store it goes on, without being
    # told where that is.
    def test_store_is_the_runs(self):
        fleet = Fleet(self)
        store = fleet.path("stores", "run.sqlite")
        os.mkdir(fleet.path("stores"))
        leader = fleet.lead("--listen", address_of_its_own(), "--store", f"sqlite:{store}", "--first", "2")
        leader.wait_for_line("event=leads")
        leader.signal(signal.SIGKILL)
        leader.finish()
        other = fleet.ask("coordinator", "check", "--resume", "--out", fleet.run, "--store", "sqlite:" + fleet.path("new"))
        self.assertEqual(other.status, 2, other.err)
        self.assertIn("store holds nothing", other.err)
        os.rename(fleet.path("stores"), fleet.path("away"))
        os.mkdir(fleet.path("stores"))
        gone = fleet.ask("coordinator", "check", "--resume", "--out", fleet.run)
        self.assertEqual(gone.status, 2, gone.err)
        self.assertIn("store holds nothing", gone.err)
        shutil.rmtree(fleet.path("stores"))
        os.rename(fleet.path("away"), fleet.path("stores"))
        again = fleet.lead("--resume", "--store", f"sqlite:{store}")
        again.wait_for_line("event=leads")
        self.assertIsNone(again.token)
        with open(fleet.path("token"), "w", encoding="utf-8") as file:
            file.write(fleet.token + "\n")
        self.assertEqual(fleet.ask("join", fleet.address, "--token-file", fleet.path("none")).status, 1)
        fleet.start("join", fleet.address, "--token-file", fleet.path("token"), "--name", "a").wait_for_line("event=begun")

    # A member without answers says why, once for each reason.
    def test_waits_in_words(self):
        fleet = Fleet(self)
        leader = fleet.lead("--listen", address_of_its_own())
        fleet.join("a").wait_for_line("event=installed")
        leader.signal(signal.SIGKILL)
        leader.finish()
        fleet.members["a"].signal(signal.SIGKILL)
        fleet.members["a"].finish()
        alone = fleet.start("join", fleet.address, "--dir", fleet.path("a"))
        alone.wait_for_line("trying on")
        fleet.lead("--resume")
        alone.wait_for_line("event=begun")
        alone.signal(signal.SIGKILL)
        self.assertLessEqual(alone.finish().err.count("trying on"), 2)


class Hostile(unittest.TestCase):
    def ports(self, fleet):
        with open(fleet.path("run", "address.json"), encoding="utf-8") as file:
            address = json.load(file)
        return [int(address[lane].rsplit(":", 1)[1]) for lane in ("control", "bulk")]

    # Garbage, the first bytes of TLS and HTTP, and 300 silent connections to both ports do no harm. Members stay, new
    # ones come, and steps go on.
    def test_ports(self):
        fleet = Fleet(self)
        leader = fleet.lead("--listen", "127.0.0.1:0")
        fleet.join("a")
        fleet.join("b")
        before = fleet.wait_for_members(2)
        with contextlib.ExitStack() as open_ones:
            for port in self.ports(fleet):
                for first in (b"\0" * 4096, b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
                    with socket.create_connection(("127.0.0.1", port), timeout=10) as one:
                        with contextlib.suppress(OSError):
                            one.sendall(first)
                for _ in range(300):
                    open_ones.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            fleet.join("c")
            during = fleet.wait_for_members(3)
            fleet.wait_for_steps(during["step"])
        after = fleet.wait_for_members(3)
        for name in "ab":
            self.assertEqual(incarnations(after)[name], incarnations(before)[name])
        self.assertIsNone(leader.process.poll())


    # Members go on while the store fails, and `status` says why nothing new is agreed. A machine that wants to join
    # gets in as soon as the store works again.
    def test_store(self):
        fleet = Fleet(self)
        fleet.lead("--listen", "127.0.0.1:0")
        fleet.join("a")
        before = fleet.wait_for_members(1)
        self.assertEqual(before["alarms"], [])
        file = fleet.path("run", "coordinator.sqlite")
        os.rename(file, file + ".away")
        fleet.wait_for("an alarm", lambda status: any("store fails" in one for one in status["alarms"]))
        fleet.join("b")
        self.assertIsNone(fleet.members["a"].process.poll())
        os.rename(file + ".away", file)
        after = fleet.wait_for_members(2)
        self.assertEqual(after["alarms"], [])
        self.assertEqual(incarnations(after)["a"], incarnations(before)["a"])
        fleet.wait_for_steps(after["step"])


class Watching(unittest.TestCase):
    # `status --watch --json` writes an object a line. Ctrl-C ends it at once and in silence, also while it waits for an
    # answer that does not come.
    def test_ends_at_once(self):
        fleet = Fleet(self)
        leader = fleet.lead("--listen", "127.0.0.1:0")
        watch = fleet.start("status", fleet.run, "--watch", "--json")
        for _ in range(2):
            self.assertEqual(json.loads(watch.process.stdout.readline())["phase"], "settled")
        watch.signal(signal.SIGINT)
        self.assertEqual(watch.finish().status, -signal.SIGINT)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            at = f"127.0.0.1:{silent.getsockname()[1]}"
            watch = fleet.start("status", at, "--token", leader.token, "--watch")
            silent.settimeout(program.TIMEOUT)
            with silent.accept()[0]:
                watch.signal(signal.SIGINT)
                done = watch.finish()
        self.assertEqual((done.status, done.out, done.err), (-signal.SIGINT, "", ""))


class Words(unittest.TestCase):
    # The command that leads a run on has the flags that the directory of the run does not keep.
    def test_resume_command(self):
        fleet = Fleet(self)
        leader = fleet.lead("--listen", "127.0.0.1:0", "--log-format", "json", "--metrics", "127.0.0.1:0")
        leader.signal(signal.SIGINT)
        done = leader.finish()
        self.assertEqual(done.status, 130, done.err)
        self.assertIn(f"gossamer coordinator --resume --out {fleet.run} --log-format json --metrics 127.0.0.1:0\n", done.err)

    # Wrong words give status 2, with the nearest right word or the existing ones. Nothing is made.
    def test_usage(self):
        fleet = Fleet(self)
        for arguments, words in (
            (["coordinater"], "'coordinator'"),
            (["coordinator", "chekc", "--out", fleet.run], "check"),
            (["coordinator", "check", "thing=3", "--out", fleet.run, "--listen", "127.0.0.1:0"], "'things'"),
            (["coordinator", "check", "things=0", "--out", fleet.run, "--listen", "127.0.0.1:0"], "1..4000"),
            (["coordinator", "check", "--out", fleet.run], "--listen"),
            (["coordinator", "check", "--out", fleet.run, "--listen", "0.0.0.0:0"], "--advertise"),
            (["coordinator", "check", "--out", fleet.run, "--listen", "nowhere"], "HOST:PORT"),
            (["coordinator", "check", "--out", fleet.run, "--listen", "127.0.0.1:65535"], "65534"),
            (["coordinator", "check", "--out", fleet.run, "--listen", "127.0.0.1:0", "--store", "mysql:x"], "sqlite:FILE"),
            (["coordinator", "check", "--out", fleet.run, "--listen", "127.0.0.1:0", "--store", "etcd:http://192.0.2.1:2379"],
             "over TLS alone"),
            (["coordinator", "check", "--out", fleet.run, "--listen", "127.0.0.1:0", "--store", "etcd:https://192.0.2.1:2379"],
             "login=FILE"),
            (["coordinator", "check", "--listen", "127.0.0.1:0"], "--out"),
            (["join", "127.0.0.1:7"], "--token"),
            (["join"], "COORDINATOR"),
            (["join", "127.0.0.1:7", "--tokn", "x"], "--token"),
            (["join", "127.0.0.1:7", "--memory", "much"], "800M"),
            (["join", "127.0.0.1:7", "--memory", "0"], "800M"),
            (["join", "127.0.0.1:7", "--memory", "8"], "at least 16.0 MB"),
            (["join", "127.0.0.1:7", "--memory", "15.9M"], "at least 16.0 MB"),
            (["join", "127.0.0.1:7", "--cores", "0"], "--cores"),
            (["join", "127.0.0.1:7", "--token", "x", "--token-file", "y"], "--token-file"),
            (["join", "127.0.0.1:7", "--advertise", "10.0.0.1:7070"], "--advertise"),
            (["coordinator", "check", "--listen", "127.0.0.1:0", "--out", fleet.run, "--advertise", "my host"], "--advertise"),
            (["join", "127.0.0.1:7", "--nat", "--listen", "127.0.0.1:0"], "--nat"),
            (["token", "crate", "x"], "'token create'"),
            (["token", "create", "x", "--valid", "tomorrow"], "24h"),
            (["status", "nowhere"], "HOST:PORT"),
        ):  # fmt: skip
            with self.subTest(arguments=arguments):
                done = fleet.ask(*arguments)
                self.assertEqual(done.status, 2, f"{done.out}{done.err}")
                self.assertIn(words, done.err)
        self.assertFalse(os.path.exists(fleet.path("run", "credentials")))

    # A token that cannot be read is refused before anything is made for it, in words that name its source. A note of a
    # token, which may hold anything, stays on its line.
    def test_of_tokens(self):
        fleet = Fleet(self)
        path = fleet.path("token")
        with open(path, "w", encoding="utf-8") as file:
            file.write("gossamer join 127.0.0.1:7070 --token gossamer1.xyz")
        for flags, where in ((("--token-file", path), path), (("--token", "gossamer1.xyz"), "--token")):
            done = fleet.ask("join", "127.0.0.1:7", *flags, "--dir", fleet.path("node"))
            self.assertEqual(done.status, 4, done.err)
            self.assertIn(f"gossamer join: {where}: ", done.err)
            self.assertFalse(os.path.exists(fleet.path("node")))
        fleet.lead("--listen", "127.0.0.1:0")
        self.assertEqual(fleet.ask("token", "create", fleet.run, "--note", "M\u00fcnchen\x1b[31m\nx").status, 0)
        notes = sorted(line.split("UTC  ")[1] for line in fleet.ask("token", "list", fleet.run).out.splitlines())
        self.assertEqual(notes, ["M\u00fcnchen\\x1b[31m\\x0ax", "printed at the start"])

    # A directory without a run, a taken port, and an unknown host name give status 1 and the name of the thing.
    def test_world(self):
        fleet = Fleet(self)
        done = fleet.ask("token", "create", fleet.path("none"))
        self.assertEqual(done.status, 1)
        self.assertIn(fleet.path("none"), done.err)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            at = f"127.0.0.1:{taken.getsockname()[1]}"
            done = fleet.ask("coordinator", "check", "--out", fleet.run, "--listen", at)
            self.assertEqual(done.status, 1, done.err)
            self.assertIn(at, done.err)
        leader = fleet.lead("--listen", "127.0.0.1:0")  # the same directory serves for the next attempt
        again = fleet.ask("coordinator", "check", "--out", fleet.run, "--listen", "127.0.0.1:0")
        self.assertEqual(again.status, 2)
        self.assertIn("--resume", again.err)
        held = fleet.ask("coordinator", "check", "--out", fleet.run, "--resume")
        self.assertEqual(held.status, 4)
        other = fleet.ask("coordinator", "check", "things=13", "--out", fleet.run, "--resume")
        self.assertEqual(other.status, 2)
        self.assertIn("things=12", other.err)
        for question in ("status", "stop"):  # nothing listens there, and nothing is known of it
            nobody = fleet.ask(question, "127.0.0.1:7")
            self.assertEqual(nobody.status, 1)
            self.assertIn("127.0.0.1:7: cannot connect", nobody.err)
        name = fleet.ask("join", "no.such.name.invalid:7070", "--token", fleet.token)
        self.assertEqual(name.status, 1)
        self.assertIn("cannot find the name", name.err)
        leader.signal(signal.SIGTERM)
        self.assertEqual(leader.finish().status, 143)

    # doctor names each thing that fails, one after the other: name, port, TLS, token. It says that all is well when it
    # is.
    def test_doctor(self):
        fleet = Fleet(self)

        def findings(*arguments):
            done = fleet.ask("doctor", *arguments, "--json")
            result = done.json()
            self.assertEqual(done.status, 0 if result["ok"] else 1)
            return {check["name"]: check["health"] for check in result["checks"]}

        self.assertEqual(findings("no.such.name.invalid:7070"), {"name": "bad", "token": "advice"})
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            at = f"127.0.0.1:{nobody.getsockname()[1]}"
            self.assertEqual(findings(at)["port"], "bad")
            nobody.listen()
            nobody.settimeout(10)
            with subprocess.Popen(
                [program.GOSSAMER, "doctor", at, "--json"], stdout=subprocess.PIPE, text=True
            ) as process:
                nobody.accept()[0].close()
                checks = {one["name"]: one["health"] for one in json.loads(process.stdout.read())["checks"]}
            self.assertEqual(checks["tls"], "bad")
        fleet.lead("--listen", "127.0.0.1:0")
        good = dict.fromkeys(("name", "port", "tls", "run", "token", "version", "clocks"), "good")
        fleet.wait_for("an answer", lambda status: True)
        self.assertEqual(findings(fleet.address, "--token", fleet.token), good)
        self.assertEqual(findings(fleet.address)["credentials"], "good")
        address = fleet.address
        fleet.ask("token", "revoke", fleet.run, fleet.ask("token", "list", fleet.run).out.split()[0])
        self.assertEqual(findings(address, "--token", fleet.token)["token"], "bad")
        other = Fleet(self)
        other.lead("--listen", "127.0.0.1:0")
        self.assertEqual(findings(address, "--token", other.token)["run"], "bad")


if __name__ == "__main__":
    unittest.main()
