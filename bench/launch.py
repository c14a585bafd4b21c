# SPDX-License-Identifier: Apache-2.0
"""launch.py COST COMMAND...: runs COMMAND; writes its exit status, CPU seconds and peak memory to the file COST as JSON.

It is a small process between the measuring program and the measured one. Linux lets a child's peak begin at the peak of
the process that starts it, and the measuring program has large libraries in memory. SIGTERM kills COMMAND.
"""

import json
import os
import signal
import sys


def main():
    cost, *command = sys.argv[1:]
    child = os.fork()
    if child == 0:
        try:
            os.execvp(command[0], command)
        except OSError as error:
            print(f"{command[0]}: {error.strerror}", file=sys.stderr)
            os._exit(127)
    signal.signal(signal.SIGTERM, lambda number, frame: os.kill(child, signal.SIGKILL))
    _, status, usage = os.wait4(child, 0)
    with open(cost, "w", encoding="ascii") as file:
        json.dump({"status": os.waitstatus_to_exitcode(status), "cpu_s": usage.ru_utime + usage.ru_stime,
                   "peak_rss_bytes": usage.ru_maxrss * 1024}, file)  # fmt: skip


if __name__ == "__main__":
    main()
