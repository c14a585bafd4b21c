# SPDX-License-Identifier: Apache-2.0
"""Runs other programs, and reports what goes wrong outside our own code."""

import os
import shutil
import subprocess

# Where ip, tc and iptables lie on systems whose users' PATH leaves them out.
SYSTEM_PATH = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"


class LabError(Exception):
    """One line for the user; the lab's exit status is 1."""


def find_program(name):
    """The path of a program, or None."""
    return shutil.which(name, path=SYSTEM_PATH)


def run(*command, stdin=""):
    """Runs a program to its end and returns its standard output. LabError with its words when it fails.

    The program does not share the terminal's signals, because Ctrl-C must not leave half a step.
    """
    words = [str(word) for word in command]
    program = find_program(words[0])
    if program is None:
        raise LabError(f"{words[0]} is not installed")
    done = subprocess.run(
        [program, *words[1:]],
        input=stdin,
        text=True,
        capture_output=True,
        start_new_session=True,
        check=False,
    )
    if done.returncode != 0:
        said = " ".join(done.stderr.split()) or f"status {done.returncode}"
        raise LabError(f"'{' '.join(words)}' failed: {said}")
    return done.stdout
