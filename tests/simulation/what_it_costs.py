# SPDX-License-Identifier: Apache-2.0
"""Compares the tables of docs/threads-and-lives.md with what the simulator counts.

what_it_costs.py PROGRAM [--write]    PROGRAM is the built what_it_costs; --write puts its tables into the page
"""

import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/threads-and-lives.md"
TABLE = re.compile(r"<!-- ([\w-]+) -->\n.*?<!-- /\1 -->\n", re.DOTALL)


def main():
    program, *flags = sys.argv[1:]
    counted = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    text = PAGE.read_text(encoding="utf-8")
    stands = {table.group(1): table.group() for table in TABLE.finditer(text)}
    counted_tables = {table.group(1): table.group() for table in TABLE.finditer(counted)}
    if stands.keys() != counted_tables.keys():
        sys.exit(f"{PAGE} has places for {sorted(stands)}, and {sorted(counted_tables)} were counted")
    wrong = [name for name in stands if stands[name] != counted_tables[name]]
    for name in wrong:
        text = text.replace(stands[name], counted_tables[name])
    if flags == ["--write"]:
        PAGE.write_text(text, encoding="utf-8")
    elif wrong:
        sys.exit(f"{PAGE} says otherwise than the simulator in {', '.join(wrong)}; if that is right:\n"
                 f"  python3 {' '.join(sys.argv)} --write\n\n{counted}")


if __name__ == "__main__":
    main()
