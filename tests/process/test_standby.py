# SPDX-License-Identifier: Apache-2.0
"""Two coordinators on this machine that share a store in etcd: which one leads, what both know, how nodes find them."""

import base64
import json
import shutil
import signal
import sys
import time
import unittest
import urllib.request

import etcd
from fleet import DEADLINE, Fleet, incarnations
from ports import free_ports


class Standby(unittest.TestCase):
    # A standby follows a leader that is killed. Members keep their incarnations and steps go on. The old leader,
    # started again, stands by. They reach etcd over TLS, with a password.
    def test_takes_over(self):
        fleet = Fleet(self)
        store = "etcd:" + etcd.start_secure(fleet, "127.0.0.1", free_ports(2))
        ports = free_ports(4)
        first, second = (f"127.0.0.1:{port}" for port in (ports[0], ports[2]))
        leader = fleet.lead("--listen", first, "--standby", second, "--store", store)
        leader.wait_for_line("event=leads")
        fleet.join("a")
        fleet.join("b")
        before = fleet.wait_for_members(2)
        second_run = fleet.copy_run()
        standby = fleet.lead("--listen", second, "--standby", first, "--store", store, "--resume", out=second_run)
        standby.wait_for_line("event=stands_by")
        asked = fleet.ask("status", second)
        self.assertEqual(asked.status, 1)
        self.assertIn(f"ask {first}", asked.err)

        killed = time.monotonic()
        leader.signal(signal.SIGKILL)
        standby.wait_for_line("event=leads")
        print(f"the standby leads {time.monotonic() - killed:.1f} s after kill -9", file=sys.stderr)
        after = fleet.wait_for("members stay", lambda status: all(one["connected"] for one in status["members"]), second)
        self.assertEqual(incarnations(after), incarnations(before))
        self.assertGreater(after["generation"], before["generation"])
        fleet.wait_for("steps", lambda status: status["step"] > before["step"] + 10, second)
        again = fleet.lead("--resume", "--standby", second, "--store", store)
        again.wait_for_line("event=stands_by")
        # An orderly end leaves the lead at once.
        standby.signal(signal.SIGTERM)
        again.wait_for_line("event=leads")
        last = fleet.wait_for("members stay", lambda status: all(one["connected"] for one in status["members"]), first)
        self.assertEqual(incarnations(last), incarnations(before))


    # Tokens lie in the store that two coordinators share. The standby that takes over knows all tokens that were made
    # and revoked at either. No secret of them is in the store.
    def test_tokens(self):
        fleet = Fleet(self)
        at_store = etcd.start(fleet, "127.0.0.1", free_ports(2))
        ports = free_ports(4)
        first, second = (f"127.0.0.1:{port}" for port in (ports[0], ports[2]))
        leader = fleet.lead("--listen", first, "--standby", second, "--store", "etcd:" + at_store)
        leader.wait_for_line("event=leads")
        second_run = fleet.copy_run()
        standby = fleet.lead("--listen", second, "--standby", first, "--store", "etcd:" + at_store, "--resume",
                             out=second_run)  # fmt: skip
        standby.wait_for_line("event=stands_by")

        def create(run, note):
            made = fleet.ask("token", "create", run, "--uses", "9", "--note", note)
            self.assertEqual(made.status, 0, made.err)
            return made.out.split()[-1]

        # Which nodes a token has let in is known to the one that leads.
        def listed(run):
            lines = fleet.ask("token", "list", run, "--json").out.splitlines()
            return {one["note"]: {**one, "let_in": None} for one in map(json.loads, lines)}

        def join(at, name, token):
            return fleet.start("join", at, "--token", token, "--name", name, "--dir", fleet.path(name))

        here, there, bad = create(fleet.run, "here"), create(second_run, "there"), create(fleet.run, "bad")
        self.assertEqual(listed(fleet.run), listed(second_run))
        self.assertEqual(sorted(listed(fleet.run)), ["bad", "here", "printed at the start", "there"])
        done = fleet.ask("token", "revoke", second_run, listed(fleet.run)["bad"]["id"])
        self.assertEqual(done.status, 0, done.err)
        self.assertEqual(fleet.ask("join", first, "--token", bad, "--dir", fleet.path("none")).status, 4)
        join(first, "a", there).wait_for_line("event=begun")
        leader.signal(signal.SIGKILL)
        leader.finish()
        shutil.rmtree(fleet.path("run2", "tokens"))  # as if its disk had been lost: the store has them
        standby.wait_for_line("event=leads")
        for name, token in (("b", here), ("c", there), ("d", fleet.token)):
            join(second, name, token).wait_for_line("event=begun")
        refused = fleet.ask("join", second, "--token", bad, "--dir", fleet.path("none"))
        self.assertEqual(refused.status, 4, refused.err)
        self.assertIn("was revoked", refused.err)
        create(fleet.run, "by the dead one's directory")
        self.assertIn("by the dead one's directory", listed(second_run))

        standby.signal(signal.SIGKILL)
        standby.finish()
        alone = fleet.ask("token", "revoke", second_run, listed(second_run)["here"]["id"])
        self.assertEqual(alone.status, 1, alone.out)
        self.assertIn("no coordinator that leads", alone.err)
        request = json.dumps({"key": base64.b64encode(b"\0").decode(), "range_end": base64.b64encode(b"\0").decode()})
        with urllib.request.urlopen(f"{at_store}/v3/kv/range", request.encode(), timeout=DEADLINE) as answer:
            pairs = json.load(answer)["kvs"]
        values = [base64.b64decode(one["value"]) for one in pairs if b"/state/tokens/" in base64.b64decode(one["key"])]
        self.assertEqual(len(values), 5)
        for token in (here, there, bad, fleet.token):
            secret = self.secret_of(token)
            for value in values:
                for form in (secret, secret.hex().encode(), base64.b64encode(secret), base64.urlsafe_b64encode(secret)):
                    self.assertNotIn(form, value)

    def secret_of(self, token):
        text = token.split(".")[1]
        body = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        at = body.index(bytes((0x22, 32))) + 2  # field 4 of proto/gossamer/admission.proto
        return body[at : at + 32]

    # A node whose coordinator's old address is another run's by now finds the one that leads. A new address of another
    # run is a mistake, and refused.
    def test_old_address(self):
        fleet = Fleet(self)
        store = "etcd:" + etcd.start(fleet, "127.0.0.1", free_ports(2))
        ports = free_ports(6)
        first, second, third = (f"127.0.0.1:{port}" for port in ports[::2])
        leader = fleet.lead("--listen", first, "--standby", second, "--store", store)
        fleet.join("a").wait_for_line("event=installed")
        standby = fleet.lead("--listen", second, "--standby", first, "--store", store, "--resume", out=fleet.copy_run())
        for one in (leader, fleet.members["a"]):
            one.signal(signal.SIGKILL)
            one.finish()
        standby.wait_for_line("event=leads")
        for at in (first, third):
            other = Fleet(self)
            other.lead("--listen", at)
        again = fleet.start("join", first, "--dir", fleet.path("a"), "--name", "a")
        again.wait_for_line("event=begun")
        again.signal(signal.SIGKILL)
        self.assertIn("of another run", again.finish().err)
        wrong = fleet.ask("join", third, "--dir", fleet.path("a"))
        self.assertEqual(wrong.status, 4, wrong.err)


if __name__ == "__main__":
    unittest.main()
