# SPDX-License-Identifier: Apache-2.0
"""An etcd of a test's own: one process that ends with the test."""

import shutil
import subprocess
import threading
import unittest


def start(fleet, host, ports, machine=1):
    """Starts one on a machine of the fleet, at two ports there. Returns its URL for clients."""
    if shutil.which("etcd") is None:
        raise unittest.SkipTest("etcd is not installed (Debian: etcd-server)")
    client, peer = (f"http://{host}:{port}" for port in ports)
    with fleet.on(machine):
        server = subprocess.Popen(
            ["etcd", "--data-dir", fleet.path("etcd"), "--listen-client-urls", client, "--advertise-client-urls", client,
             "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"test={peer}",
             "--name", "test"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # fmt: skip
    reader = threading.Thread(target=_wait_for_end, args=(server.stderr,), daemon=True)
    for cleanup in (server.stderr.close, reader.join, server.wait, server.kill):
        fleet.case.addCleanup(cleanup)
    for line in server.stderr:
        if "ready to serve client requests" in line:
            break
    reader.start()
    return client


def _wait_for_end(stream):
    while stream.read(1 << 16):
        pass
