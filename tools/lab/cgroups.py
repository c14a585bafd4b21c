# SPDX-License-Identifier: Apache-2.0
"""Control groups: one for each node, `gossamer.LAB.K`, below the top of the hierarchy that limits CPU time.

Version 1 (controller `cpu`) where it is mounted, else version 2; the folders come from /proc/mounts.
"""

import os
import re
import time

from commands import LabError

PATIENCE = 10  # seconds for a group to let go of processes that have ended
# The period is short, so that a weak node is slow rather than now fast, now still. A step of 6 ms must meet some pauses.
_PERIOD_US = 10_000
_SMALLEST_QUOTA_US = 1_000  # the kernel's


def quota_of(cores):
    """(quota, period) in microseconds of a CPU limit."""
    period = max(_PERIOD_US, round(_SMALLEST_QUOTA_US / cores))
    return round(cores * period), period


def _write(path, text):
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    except OSError as error:
        raise LabError(f"cannot write '{text}' to {path}: {error.strerror}") from error


def _read(path):
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


class Hierarchy:
    """Where groups are made: `folder` is its top, `version` 1 or 2."""

    def __init__(self, folder, version):
        self.folder = folder
        self.version = version

    @classmethod
    def find(cls, mounts="/proc/mounts"):
        """The hierarchy that can limit CPU time, or None."""
        rows = [line.split() for line in _read(mounts).splitlines()]
        for _, folder, kind, options, *_ in rows:
            if kind == "cgroup" and "cpu" in options.split(","):
                return cls(folder, 1)
        for _, folder, kind, *_ in rows:
            if kind == "cgroup2" and "cpu" in _read(os.path.join(folder, "cgroup.controllers")).split():
                return cls(folder, 2)
        return None

    def _path(self, group, *names):
        return os.path.join(self.folder, group, *names)

    def create(self, group):
        try:
            os.mkdir(self._path(group))
        except OSError as error:
            raise LabError(f"cannot make control group {self._path(group)}: {error.strerror}") from error

    def limit(self, group, cores):
        """Gives the group so many cores from now on; None: no limit."""
        quota, period = quota_of(cores) if cores else (-1 if self.version == 1 else "max", _PERIOD_US)
        if self.version == 1:
            _write(self._path(group, "cpu.cfs_period_us"), str(period))
            _write(self._path(group, "cpu.cfs_quota_us"), str(quota))
        else:
            _write(os.path.join(self.folder, "cgroup.subtree_control"), "+cpu")
            _write(self._path(group, "cpu.max"), f"{quota} {period}")

    def enter(self, group):
        """Moves this process into the group, where there is one."""
        if os.path.isdir(self._path(group)):
            _write(self._path(group, "cgroup.procs"), str(os.getpid()))

    def processes(self, groups):
        """Ids of the processes in these groups; never this one."""
        found = {int(word) for group in groups for word in _read(self._path(group, "cgroup.procs")).split()}
        return found - {os.getpid()}

    def of_lab(self, lab):
        """The lab's groups that exist."""
        pattern = re.compile(rf"gossamer\.{re.escape(lab)}\.\d+")
        return sorted(name for name in os.listdir(self.folder) if pattern.fullmatch(name))

    def remove(self, group):
        """Removes a group after its processes have ended. The kernel may take a moment to notice."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return os.rmdir(self._path(group))
            except OSError as error:
                if time.monotonic() > deadline:
                    raise LabError(
                        f"cannot remove control group {self._path(group)}: {error.strerror}"
                    ) from error
                time.sleep(0.001)
