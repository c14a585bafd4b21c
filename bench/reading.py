# SPDX-License-Identifier: Apache-2.0
"""Reading XMLC text end to end: `data import xmc` of a large file beside `wc -l` of it and a plain copy of its bytes.

reading.py [--data DIR] [--gigabytes N] [--rounds N] [--threads N] [--scratch DIR] [--write]
DIR holds acl-authors/train.txt.zst (default $GOSSAMER_DATA or ../shared/data). Its lines are repeated until the file is
large enough. An import writes the records and syncs them. "copy" reads the file, writes as many bytes as the import and
syncs them, which shows what the disk allows. The file is read once before, so all read from memory.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import measure

COPY = """
import os, sys
left = int(sys.argv[3])
with open(sys.argv[1], "rb") as source, open(sys.argv[2], "wb") as target:
    while piece := source.read(1 << 20):
        target.write(piece[:left])
        left -= min(left, len(piece))
    target.flush()
    os.fsync(target.fileno())
"""


def make_file(data, path, size):
    small = subprocess.run(["zstd", "-dqc", str(data / "acl-authors/train.txt.zst")], capture_output=True, check=True).stdout
    head, body = small.split(b"\n", 1)
    records, features, labels = map(int, head.split())
    times = size // len(body) + 1
    with open(path, "wb") as file:
        file.write(b"%d %d %d\n" % (records * times, features, labels))
        for _ in range(times):
            file.write(body)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("GOSSAMER_DATA", measure.ROOT.parent / "shared/data"))
    parser.add_argument("--gigabytes", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--scratch")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()

    runs = {"gossamer data import": [], "copy": [], "wc -l": []}
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as directory:
        work = pathlib.Path(directory)
        text = work / "text"
        make_file(pathlib.Path(arguments.data), text, int(arguments.gigabytes * (1 << 30)))
        size = text.stat().st_size
        subprocess.run(["cat", str(text)], stdout=subprocess.DEVNULL, check=True)
        for number in range(arguments.rounds):
            out = work / f"out{number}"
            _, cost = measure.run([measure.binary(), "data", "import", "xmc", str(text), "--out", str(out), "--threads",
                                   str(arguments.threads), "--quiet"])  # fmt: skip
            runs["gossamer data import"].append(cost)
            written = (out / "records.cache").stat().st_size
            subprocess.run(["rm", "-r", str(out)], check=True)
            _, cost = measure.run([sys.executable, "-c", COPY, str(text), str(work / "copy"), str(written)])
            runs["copy"].append(cost)
            (work / "copy").unlink()
            runs["wc -l"].append(measure.run(["wc", "-l", str(text)])[1])
    megabytes = size / 1e6
    result = {"machine": measure.machine(), "commit": measure.commit(), "bytes": size, "written": written, "runs": runs}
    print(measure.save("reading", result))
    lines = [f"| {megabytes:.0f} MB of text, {written / 1e6:.0f} MB written | MB/s | CPU s per GB | peak MB |", "|---|---|---|---|"]
    for name, costs in runs.items():
        wall, cpu, peak = (measure.median([cost[key] for cost in costs]) for key in ("wall_s", "cpu_s", "peak_rss_bytes"))
        lines.append(f"| {name} | {megabytes / wall:.0f} | {cpu / megabytes * 1e3:.2f} | {peak / 1e6:.0f} |")
    print("\n".join(lines))
    if arguments.write:
        measure.write_table("reading", lines)


if __name__ == "__main__":
    main()
