#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/docs/check_commands.py [--build DIR] [--root DIR]

Runs the commands that *.md, docs/**/*.md and examples/**/*.md show (README.md here says which). So a document cannot
promise what the program does not do. All `console run` blocks of one document share a directory, in order.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_S = 300
_FENCE = re.compile(r"^```(\w*)[ \t]*([^\n]*)\n(.*?)^```", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    line: int        # of the opening fence
    info: str        # what stands behind `console`
    commands: tuple  # of str


def console_blocks(text):
    for match in _FENCE.finditer(text):
        if match.group(1) == "console":
            line = text.count("\n", 0, match.start()) + 1
            yield Block(line, match.group(2).strip(), tuple(commands_of(match.group(3))))


def commands_of(body):
    continued = None
    for line in body.splitlines():
        if continued is not None:
            continued += "\n" + line
        elif line.startswith("$ "):
            continued = line[2:]
        else:
            continue
        if not continued.endswith("\\"):
            yield continued
            continued = None


def complaint(block, targets):
    """What is wrong with how a block is marked, or None."""
    word, _, reason = block.info.partition(" ")
    if not block.commands:
        return "a console block without a line that begins with '$ '"
    if word == "run":
        return None
    if word == "norun":
        return None if reason.strip() else "`console norun` needs a reason behind it"
    if word:
        return f"unknown word '{word}'; write `console run` or `console norun REASON`"
    for command in block.commands:
        parts = command.split()
        if parts[0] == "make":
            wrong = [p for p in parts[1:] if "=" not in p and not p.startswith("-") and p not in targets]
            if wrong:
                return f"the Makefile has no target '{wrong[0]}'"
        elif parts[:2] != ["git", "clone"]:
            return f"'{command}' is not run; mark the block `console run` or `console norun REASON`"
    return None


def make_targets(makefile):
    return set(re.findall(r"^([\w-]+):(?!=)", makefile, re.MULTILINE))


def run_blocks(blocks, build, directory):
    """Runs the commands in one shell that stops at the first failure. Returns (status, output)."""
    lines = ["set -eu"]
    for block in blocks:
        for command in block.commands:
            shown = command.replace("'", "'\\''")
            lines += [f"printf '%s\\n' '$ {shown}'", command]
    environment = dict(os.environ, PATH=f"{build}{os.pathsep}{os.environ['PATH']}")
    try:
        done = subprocess.run(["bash", "-c", "\n".join(lines)], cwd=directory, env=environment, timeout=TIMEOUT_S,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", check=False)
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        return 124, f"{(late.stdout or b'').decode(errors='replace')}\nran longer than {TIMEOUT_S} s"


def check_document(path, build, targets, files=None):
    """(complaints, commands run) of one document. Its commands find a copy of the folder `files`."""
    blocks = list(console_blocks(path.read_text(encoding="utf-8")))
    complaints = [f"{path}:{b.line}: {c}" for b in blocks if (c := complaint(b, targets))]
    runnable = [block for block in blocks if block.info == "run" and block.commands]
    if not runnable:
        return complaints, 0
    with tempfile.TemporaryDirectory() as directory:
        if files is not None:
            shutil.copytree(files, directory, dirs_exist_ok=True)
        status, output = run_blocks(runnable, build, directory)
    if status:
        complaints.append(f"{path}:{runnable[0].line}: a command ended with status {status}:\n{output}")
    return complaints, sum(len(block.commands) for block in runnable)


def documents(root):
    return sorted(root.glob("*.md")) + sorted((root / "docs").rglob("*.md")) + sorted((root / "examples").rglob("*.md"))


def main(arguments):
    here = Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=here)
    parser.add_argument("--build", type=Path, default=here / "build/release", help="where the program `gossamer` is")
    options = parser.parse_args(arguments)
    makefile = options.root / "Makefile"
    targets = make_targets(makefile.read_text(encoding="utf-8")) if makefile.is_file() else set()
    complaints, ran, checked = [], 0, documents(options.root)
    for path in checked:
        files = path.parent if options.root / "examples" in path.parents else None
        found, commands = check_document(path, options.build.resolve(), targets, files)
        complaints += found
        ran += commands
    print("\n".join(complaints + [f"docs: {len(checked)} documents, {ran} commands run, {len(complaints)} complaints"]))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
