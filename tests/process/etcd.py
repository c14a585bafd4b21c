# SPDX-License-Identifier: Apache-2.0
"""An etcd of a test's own: one process that ends with the test."""

import json
import pathlib
import shutil
import ssl
import subprocess
import threading
import unittest
import urllib.request

NAME, PASSWORD = "coordinator", "only:for this test"


def start(fleet, host, ports, machine=1):
    """Starts one on a machine of the fleet, at two ports there, without encryption. Returns its URL for clients."""
    client, peer = (f"http://{host}:{port}" for port in ports)
    _run(fleet, client, peer, machine)
    return client


def start_secure(fleet, host, ports, machine=1):
    """The same over TLS, for a user with a password. Returns what --store takes behind `etcd:`."""
    client, peer = f"https://{host}:{ports[0]}", f"http://{host}:{ports[1]}"
    files = {name: fleet.path("etcd-" + name) for name in ("cert", "key", "login")}
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", files["key"], "-out", files["cert"], "-days", "1", "-subj", "/CN=etcd",
                    "-addext", f"subjectAltName=IP:{host}"], check=True, capture_output=True)  # fmt: skip
    _run(fleet, client, peer, machine, "--cert-file", files["cert"], "--key-file", files["key"])
    with fleet.on(machine):
        _require_passwords(client, files["cert"])
    pathlib.Path(files["login"]).write_text(f"{NAME}:{PASSWORD}\n")
    return f"{client},ca={files['cert']},login={files['login']}"


def _run(fleet, client, peer, machine, *more):
    if shutil.which("etcd") is None:
        raise unittest.SkipTest("etcd is not installed (Debian: etcd-server)")
    with fleet.on(machine):
        server = subprocess.Popen(
            ["etcd", "--data-dir", fleet.path("etcd"), "--listen-client-urls", client, "--advertise-client-urls", client,
             "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"test={peer}",
             "--name", "test", *more],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # fmt: skip
    reader = threading.Thread(target=_wait_for_end, args=(server.stderr,), daemon=True)
    for cleanup in (server.stderr.close, reader.join, server.wait, server.kill):
        fleet.case.addCleanup(cleanup)
    for line in server.stderr:
        if "ready to serve client requests" in line or "serving client requests on" in line:
            break
    reader.start()


def _require_passwords(client, cert):
    """Two users: root, whom etcd wants, and one that may use the keys below gossamer/."""
    context = ssl.create_default_context(cafile=cert)

    def ask(path, **request):
        body = json.dumps(request).encode()
        with urllib.request.urlopen(urllib.request.Request(client + path, body), context=context) as answer:
            answer.read()

    begin, end = "Z29zc2FtZXIv", "Z29zc2FtZXIw"  # gossamer/ and gossamer0
    ask("/v3/auth/user/add", name="root", password="root of this test")
    ask("/v3/auth/user/grant", user="root", role="root")
    ask("/v3/auth/role/add", name="runs")
    ask("/v3/auth/role/grant", name="runs", perm={"permType": "READWRITE", "key": begin, "range_end": end})
    ask("/v3/auth/user/add", name=NAME, password=PASSWORD)
    ask("/v3/auth/user/grant", user=NAME, role="runs")
    ask("/v3/auth/enable")


def _wait_for_end(stream):
    while stream.read(1 << 16):
        pass
