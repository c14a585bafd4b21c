# SPDX-License-Identifier: Apache-2.0
"""peer.py ROLE [ARGUMENT...]: the small programs that test_lab.py runs on the nodes of a lab.

Each says "ready" once others may talk to it, then what it found, one JSON value to a line.
"""

import json
import os
import select
import signal
import socket
import sys
import time

PORT = 7000
PATIENCE = 60


def say(value):
    print(json.dumps(value), flush=True)


def datagrams():
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    peer.settimeout(PATIENCE)
    return peer


def echo():
    """Sends every datagram back."""
    peer = datagrams()
    peer.settimeout(None)
    peer.bind(("", PORT))
    say("ready")
    while True:
        text, sender = peer.recvfrom(2048)
        peer.sendto(text, sender)


def ping(address, count):
    """Round-trip times of `count` datagrams, one after another, in seconds."""
    peer = datagrams()
    times = []
    for _ in range(int(count)):
        begin = time.monotonic()
        peer.sendto(b"?", (address, PORT))
        peer.recv(16)
        times.append(time.monotonic() - begin)
    say(times)


def messages():
    """Sends each line "ADDRESS TEXT" of standard input as a datagram; says what came as [address, text]."""
    peer = datagrams()
    peer.bind(("", PORT))
    say("ready")
    while True:
        ready, _, _ = select.select([peer, 0], [], [])
        if peer in ready:
            text, sender = peer.recvfrom(2048)
            say([sender[0], text.decode()])
        if 0 in ready:
            words = os.read(0, 65536).decode()
            if not words:
                return
            for line in words.splitlines():
                address, text = line.split(" ", 1)
                peer.sendto(text.encode(), (address, PORT))


def sink(connections):
    """Reads `connections` to their ends, one process for each, and answers each with one byte."""
    with socket.create_server(("", PORT)) as server:
        say("ready")
        children = []
        for _ in range(int(connections)):
            connection, _ = server.accept()
            child = os.fork()
            if child == 0:
                while connection.recv(1 << 20):
                    pass
                connection.sendall(b"!")
                os._exit(0)
            children.append(child)
            connection.close()
    for child in children:
        os.waitpid(child, 0)


def send(address, size):
    """Connects, and sends `size` bytes once standard input has a line. Says "done" when the other side has all."""
    with socket.create_connection((address, PORT), timeout=PATIENCE) as connection:
        say("ready")
        sys.stdin.readline()
        connection.sendall(bytes(int(size)))
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
    say("done")


def spin(processes, cpu_seconds):
    """Burns `cpu_seconds` of processor time in each of `processes`. Says how many seconds that took."""
    begin = time.monotonic()
    children = []
    for _ in range(int(processes)):
        child = os.fork()
        if child == 0:
            while time.process_time() < float(cpu_seconds):
                pass
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    say(time.monotonic() - begin)


def wait():
    """Does nothing until standard input ends."""
    say("ready")
    sys.stdin.read()


def clingy():
    """Leaves a process that hears no signal and has left its session, and one that no parent waits for."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (1, 2, 15):
                signal.signal(number, signal.SIG_IGN)
            os.write(write, str(os.getpid()).encode())
            while True:
                select.select([], [], [])
        os._exit(0)  # this process stays a zombie for as long as its parent lives
    say([os.getpid(), int(os.read(read, 32))])
    select.select([], [], [])


if __name__ == "__main__":
    roles = {f.__name__: f for f in (echo, ping, messages, sink, send, spin, wait, clingy)}
    roles[sys.argv[1]](*sys.argv[2:])
