# SPDX-License-Identifier: Apache-2.0
"""predict, serve and eval by several nodes: the bytes of one process, whatever happens to the nodes."""

import os
import re
import signal
import threading
import time

import program
import test_serve
import test_train_nodes
import test_training

TEXT = {"Content-Type": "text/plain"}


class WithServed(test_training.WithData):
    end = test_train_nodes.WithNodes.end
    wait_for = test_train_nodes.WithNodes.wait_for
    instances = "false"  # the model keeps its training records

    def setUp(self):
        super().setUp()
        done = program.run(*self.arguments(f"predict.instances={self.instances}", "predict.held_out=60"))
        self.assertEqual(done.status, 0, done.err)
        self.environment = {"XDG_STATE_HOME": self.path("state")}
        self.queries = [line.split(" ", 1)[1].strip() for line in self.test_lines]

    def run_nodes(self, *arguments, **more):
        return program.run(*arguments, environment=self.environment, **more)

    def expected(self, *more):
        done = program.run("predict", self.out, *more, stdin="\n".join(self.queries))
        self.assertEqual(done.status, 0, done.err)
        return done.out

    def left_over(self):
        folder = self.path("state/gossamer/serving")
        return os.listdir(folder) if os.path.isdir(folder) else []

    def node_pids(self):
        """Process ids, by directory of the node."""
        return {words[words.index("--dir") + 1]: pid for pid, words in test_train_nodes.processes(self.root)
                if "join" in words}  # fmt: skip

    def serve(self, *more):
        server = test_serve.Server(self.out, *more, environment=self.environment)
        self.addCleanup(lambda: server.running.process.poll() is None and server.stop(signal.SIGKILL))
        return server

    # All requests get the same answers as before while so many nodes are killed.
    def kill_nodes(self, server, victims, body, want):
        before = self.node_pids()
        answers = []
        asking = threading.Thread(
            target=lambda: answers.extend(server.ask("POST", "/predict", body, TEXT) for _ in range(20)))
        asking.start()
        for pid in list(before.values())[:victims]:
            os.kill(pid, signal.SIGKILL)
        for _ in range(victims):
            server.running.wait_for_line("was killed and is started again")
        asking.join()
        self.assertEqual(len(answers), 20)  # an exception in the thread that asks ends it, and nothing else
        self.assertEqual({answer[::2] for answer in answers}, {(200, want)})


class ServeNodes(WithServed):
    # Claim: any number of nodes prints what one process prints, and measures what it measures. A threshold leaves out
    # the same answers. Nothing is left behind.
    def test_same_bytes(self):
        for nodes in (1, 2, 3, 8):
            done = self.run_nodes("predict", self.out, "--nodes", nodes, stdin="\n".join(self.queries))
            self.assertEqual((done.status, done.out, done.err), (0, self.expected(), ""))
        done = self.run_nodes("predict", self.out, self.queries[0], "--top", 25, "--nodes", 2)
        self.assertEqual(done.out, program.run("predict", self.out, self.queries[0], "--top", 25).out)
        likely = self.expected("--threshold", "0.5")
        self.assertLess(likely.count("probability"), self.expected().count("probability"))
        done = self.run_nodes("predict", self.out, "--nodes", 2, "--threshold", "0.5", stdin="\n".join(self.queries))
        self.assertEqual((done.status, done.out), (0, likely))
        want = program.run("eval", self.out, "--data", self.test_path, "--json").json()
        got = self.run_nodes("eval", self.out, "--data", self.test_path, "--json", "--nodes", 3).json()
        self.assertEqual(got["metrics"], want["metrics"])
        self.assertEqual(self.left_over(), [])

    # Plain text and dense layers are served, too.
    def test_dense_layers(self):
        deep = self.path("deep")
        done = program.run(*self.arguments("predict.instances=false", "model.dense=64,32", out=deep))
        self.assertEqual(done.status, 0, done.err)
        want = program.run("predict", deep, stdin="\n".join(self.queries)).out
        done = self.run_nodes("predict", deep, "--nodes", 3, stdin="\n".join(self.queries))
        self.assertEqual((done.status, done.out), (0, want))

    # Nodes that are killed, even all of them, come back, and every request is answered as before.
    def test_killed_nodes_come_back(self):
        server = self.serve("--nodes", "3")
        want = self.expected()
        body = "\n".join(self.queries)
        self.assertEqual(server.ask("POST", "/predict", body, TEXT)[::2], (200, want))
        for victims in (1, 3):
            self.assertEqual(len(self.node_pids()), 3)
            self.kill_nodes(server, victims, body, want)
        done = server.stop()
        self.assertEqual(done.status, 143, done.err)
        self.assertEqual(self.left_over(), [])

    # Nodes that fail, or are told to leave, come back once they can. The front end answers again. A file of the model
    # is away when a killed node starts again, which ends with an error then.
    def test_failed_nodes_come_back(self):
        server = self.serve("--nodes", "2")
        want = self.expected()
        body = "\n".join(self.queries)
        self.assertEqual(server.ask("POST", "/predict", body, TEXT)[::2], (200, want))
        model = os.path.join(self.out, "model")
        os.rename(model, model + ".away")
        os.kill(next(iter(self.node_pids().values())), signal.SIGKILL)
        server.running.wait_for_line("has ended, and is started again in 2 s")
        os.rename(model + ".away", model)
        self.assertEqual(server.ask("POST", "/predict", body, TEXT)[::2], (200, want))
        # One node can answer alone, so the other may not have been started again yet. A node that has just begun may
        # not know yet what SIGTERM asks, and dies of it.
        self.wait_for("both nodes run", lambda: len(self.node_pids()) == 2)
        for pid in self.node_pids().values():
            os.kill(pid, signal.SIGTERM)
        for _ in range(2):
            server.running.wait_for_line("is started again")
        self.assertEqual(server.ask("POST", "/predict", body, TEXT)[::2], (200, want))
        self.assertEqual(server.stop().status, 143)
        self.assertEqual(self.left_over(), [])

    # Claim: a front end that is told to end while its nodes are away answers the request that waits, and ends. The
    # request alone would have waited for two minutes.
    def test_ends_while_nodes_are_away(self):
        server = self.serve("--nodes", "2")
        model = os.path.join(self.out, "model")
        os.rename(model, model + ".away")
        for pid in self.node_pids().values():
            os.kill(pid, signal.SIGKILL)
        for _ in range(2):
            server.running.wait_for_line("is started again")
        answers = []
        asking = threading.Thread(target=lambda: answers.append(server.ask("POST", "/predict", self.queries[0], TEXT)))
        asking.start()
        server.running.wait_for_line("is started again in 2 s")
        begin = time.monotonic()
        done = server.stop()
        asking.join()
        self.assertEqual(done.status, 143, done.err)
        self.assertLess(time.monotonic() - begin, 60)
        self.assertEqual([answer[0] for answer in answers], [503])
        self.assertEqual(self.left_over(), [])

    # Claim: a front end that cannot lead its nodes any more says why, and ends, so that a service manager starts it
    # again. Its own files are damaged while it runs. The end of a member has to be written into them.
    def test_ends_when_it_cannot_lead(self):
        server = self.serve("--nodes", "2")
        self.assertEqual(server.ask("POST", "/predict", self.queries[0], TEXT)[0], 200)
        (own,) = self.left_over()
        for end in ("", "-wal", "-shm"):
            file = self.path(f"state/gossamer/serving/{own}/nodes/coordinator/coordinator.sqlite{end}")
            with open(file, "r+b") as damaged:
                damaged.write(b"damaged" * 5000)
        os.kill(next(iter(self.node_pids().values())), signal.SIGKILL)
        server.running.process.wait(timeout=program.TIMEOUT)
        done = server.running.finish()
        self.assertEqual(done.status, 3, done.err)
        self.assertIn("coordinator.sqlite", done.err)
        self.assertIn("start it again", done.err)  # its files go with it, so no copy could be put back
        self.assertEqual(self.left_over(), [])

    # The remains of a killed front end are removed by the next one. Nodes end with it.
    def test_killed_front_end(self):
        server = self.serve("--nodes", "2")
        pids = self.node_pids().values()
        server.stop(signal.SIGKILL)
        self.wait_for("nodes end with their front end", lambda: not self.node_pids())
        self.assertEqual(len(pids), 2)
        self.assertEqual(len(self.left_over()), 1)
        self.assertEqual(self.run_nodes("predict", self.out, self.queries[0], "--nodes", 2).status, 0)
        self.assertEqual(self.left_over(), [])

    # Members come with a token, from any machine that has the model under the same path, if its user says so.
    def test_members_join(self):
        running = program.Running("serve", self.out, "--listen", "127.0.0.1:0", "--nodes", 2, "--join-at",
                                  "127.0.0.1:0", environment=self.environment)  # fmt: skip
        self.addCleanup(self.end, running)
        found = re.fullmatch(r"gossamer join (\S+) --token (\S+) --in-place\n", running.wait_for_line("gossamer join"))
        timid = program.run("join", found[1], "--token", found[2], "--dir", self.path("timid"),
                            environment=self.environment)  # fmt: skip
        self.assertEqual(timid.status, 4, timid.err)
        self.assertIn("join with --in-place", timid.err)
        members = []
        for name in ("one", "two"):
            members.append(program.Running("join", found[1], "--token", found[2], "--name", name, "--in-place", "--dir",
                                           self.path(name), environment=self.environment))  # fmt: skip
            self.addCleanup(self.end, members[-1])
        line = running.process.stdout.readline()
        port = re.fullmatch(r"serving .* on http://127\.0\.0\.1:(\d+)/predict\n", line)
        server = test_serve.Server.__new__(test_serve.Server)
        server.running, server.port = running, int(port[1])
        body = "\n".join(self.queries)
        self.assertEqual(server.ask("POST", "/predict", body, TEXT)[::2], (200, self.expected()))
        # One gives its part to the other and goes.
        members[0].signal(signal.SIGTERM)
        self.assertEqual(members[0].finish().status, 143)
        self.assertEqual(server.ask("POST", "/predict", body, TEXT)[::2], (200, self.expected()))
        # The other one is away when the end comes. It is told some seconds later, and does not wait for another lead.
        members[1].signal(signal.SIGSTOP)
        running.signal(signal.SIGTERM)
        time.sleep(6)
        self.assertIsNone(running.process.poll())
        members[1].signal(signal.SIGCONT)
        self.assertEqual(members[1].process.wait(timeout=program.TIMEOUT), 0)
        self.assertEqual(running.finish().status, 143)

    # A damaged model is named. Wishes that nodes cannot fulfil are refused.
    def test_what_cannot_be(self):
        shard = f"{self.out}/model/model-00001-of-00001.safetensors"
        with open(shard, "r+b") as file:
            file.seek(5000)
            file.write(b"\xff\xff")
        done = self.run_nodes("predict", self.out, self.queries[0], "--nodes", 2)
        self.assertEqual(done.status, 3, done.err)
        self.assertIn("model-00001-of-00001.safetensors", done.err)
        for wrong in (["--nodes", "0"], ["--nodes", "65"], ["--nodes", "x"], ["--join-at", "127.0.0.1:0"],
                      ["--nodes", "2", "--join-at", "nowhere"], ["--nodes", "2", "--join-at", "0.0.0.0:0"],
                      ["--nodes", "2", "--retrieval", "lsh"]):  # fmt: skip
            self.assertEqual(self.run_nodes("predict", self.out, "1:1", *wrong).status, 2, wrong)

    # Ctrl-C while members are awaited ends it.
    def test_stopped_while_it_waits(self):
        running = program.Running("serve", self.out, "--listen", "127.0.0.1:0", "--nodes", 2, "--join-at",
                                  "127.0.0.1:0", environment=self.environment)  # fmt: skip
        self.addCleanup(self.end, running)
        running.wait_for_line("gossamer join")
        running.signal(signal.SIGINT)
        done = running.finish()
        self.assertEqual(done.status, 130, done.err)
        self.assertEqual(self.left_over(), [])


class ServeFused(WithServed):
    """A model that keeps its training records, of which each node has a share."""

    instances = "true"

    # Any number of nodes prints what one process prints, and measures what it measures, with and without the records.
    def test_same_bytes(self):
        want = self.expected()
        alone = self.expected("--net-alone")
        self.assertNotEqual(want, alone)
        for nodes in (1, 2, 3, 8):
            done = self.run_nodes("predict", self.out, "--nodes", nodes, stdin="\n".join(self.queries))
            self.assertEqual((done.status, done.out, done.err), (0, want, ""))
        done = self.run_nodes("predict", self.out, "--nodes", 2, "--net-alone", stdin="\n".join(self.queries))
        self.assertEqual((done.status, done.out), (0, alone))
        done = self.run_nodes("predict", self.out, self.queries[0], "--top", 25, "--nodes", 2)
        self.assertEqual(done.out, program.run("predict", self.out, self.queries[0], "--top", 25).out)
        want = program.run("eval", self.out, "--data", self.test_path, "--json").json()
        for nodes in (2, 3):
            got = self.run_nodes("eval", self.out, "--data", self.test_path, "--json", "--nodes", nodes).json()
            self.assertEqual(got["metrics"], want["metrics"])
        self.assertEqual(self.left_over(), [])

    # Dense layers are served, and views that the preset leaves out otherwise.
    def test_dense_layers(self):
        deep = self.path("deep")
        done = program.run(*self.arguments("model.dense=64,32", out=deep))
        self.assertEqual(done.status, 0, done.err)
        want = program.run("predict", deep, stdin="\n".join(self.queries)).out
        done = self.run_nodes("predict", deep, "--nodes", 3, stdin="\n".join(self.queries))
        self.assertEqual((done.status, done.out), (0, want))

    # Nodes that are killed come back, and every request is answered as before.
    def test_killed_nodes_come_back(self):
        server = self.serve("--nodes", "3")
        want = self.expected()
        body = "\n".join(self.queries)
        self.assertEqual(server.ask("POST", "/predict", body, TEXT)[::2], (200, want))
        for victims in (1, 3):
            self.kill_nodes(server, victims, body, want)
        done = server.stop()
        self.assertEqual(done.status, 143, done.err)
        self.assertEqual(self.left_over(), [])

    # Baselines do not use the net, and nodes no hash tables.
    def test_what_cannot_be(self):
        done = self.run_nodes("eval", self.out, "--data", self.test_path, "--nodes", 2, "--baseline", "nearest")
        self.assertEqual(done.status, 2, done.err)
        done = self.run_nodes("predict", self.out, "1:1", "--nodes", 2, "--retrieval", "lsh")
        self.assertEqual(done.status, 2, done.err)
