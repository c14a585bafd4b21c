# SPDX-License-Identifier: Apache-2.0
"""Reads the disassembly of the objects of src/exact: none holds a fused multiply-add.

usage: fused.py OBJECT...
"""
import re
import subprocess
import sys

FUSED = re.compile(r"\bvfn?m(?:add|sub)\w*")
VECTOR_PRODUCT = re.compile(r"\bvmulp[sd]\b")


def main(paths):
    bad, products = [], 0
    for path in paths:
        shown = subprocess.run(["objdump", "--disassemble", "--no-show-raw-insn", "--demangle", path],
                               check=True, capture_output=True, text=True).stdout
        function = "?"
        for line in shown.splitlines():
            if line.endswith(">:"):
                function = line
            products += bool(VECTOR_PRODUCT.search(line))
            if FUSED.search(line):
                bad.append(f"{path}: {FUSED.search(line).group()} in {function}")
    print("\n".join(bad[:20]))
    # Without a single product of vectors this reads something else than the optimizer.
    if products == 0:
        sys.exit(f"no product of vectors among {len(paths)} objects: is this src/exact?")
    if bad:
        sys.exit(f"{len(bad)} fused operations: src/exact must be compiled with -ffp-contract=off, also its headers")
    print(f"{products} products of vectors, none fused")


if __name__ == "__main__":
    main(sys.argv[1:])
