# SPDX-License-Identifier: Apache-2.0
"""Preset word2vec against gensim on 100 MB of English: the centre word of held-out windows, all words ranked.

word2vec.py [--data DIR] [--rounds N] [--mode cbow] [--write]
DIR holds wiki8/wiki8-100m.txt.zst (default $GOSSAMER_DATA or ../shared/data). Its last 100,000 words are the test. The
100,000 before them are left out, because settings were chosen on them. Both tools have the same width, window, epochs
and least count, and two threads each. The files are lines of 1,000 words, which gensim's fastest way of reading needs.
Needs gensim from PyPI.
"""

import argparse
import os
import pathlib
import subprocess
import sys

import measure

HELD_OUT = 100_000
LINE = 1_000
SETTINGS = {"width": 128, "window": 5, "epochs": 5, "min_count": 5}


def split(source, out):
    """train.txt, validation.txt and test.txt of the text, in lines of LINE words."""
    paths = [out / name for name in ("train.txt", "validation.txt", "test.txt")]
    if not all(path.exists() for path in paths):
        text = subprocess.run(["zstd", "-dcq", str(source)], check=True, capture_output=True).stdout.decode("ascii")
        words = text.split()
        cuts = [0, len(words) - 2 * HELD_OUT, len(words) - HELD_OUT, len(words)]
        for path, begin, end in zip(paths, cuts, cuts[1:]):
            lines = (" ".join(words[at:min(at + LINE, end)]) for at in range(begin, end, LINE))
            path.write_text("\n".join(lines) + "\n", encoding="ascii")
    return paths


def ours(train, test, mode, seed, out):
    directory = out / f"run-{mode}"
    subprocess.run(["rm", "-rf", str(directory)], check=True)
    text, cost = measure.run([measure.binary(), "train", "word2vec", f"data.train={train}", f"data.test={test}",
                              f"word2vec.mode={mode}", f"model.hidden={SETTINGS['width']}",
                              f"word2vec.window={SETTINGS['window']}", f"train.epochs={SETTINGS['epochs']}",
                              f"word2vec.min_count={SETTINGS['min_count']}", f"seed={seed}", "--threads", "2",
                              "--out", str(directory), "--json", "--quiet"])
    summary = measure.last_json(text)
    return {"metrics": summary["metrics"], "train_cpu_s": summary["cpu_seconds"],
            "predict_cpu_s": summary["eval_cpu_seconds"], "peak_rss_bytes": cost["peak_rss_bytes"]}


def gensim(train, test, mode):
    command = [sys.executable, str(measure.ROOT / "bench/gensim_peer.py"), str(train), str(test), mode,
               *map(str, SETTINGS.values()), "2"]
    text, cost = measure.run(command)
    result = measure.last_json(text)
    common = {"train_cpu_s": result["train_cpu_s"], "peak_rss_bytes": cost["peak_rss_bytes"]}
    return [{**common, "metrics": result[name], "predict_cpu_s": result[name]["predict_cpu_s"]}
            for name in ("plain", "prior")]


def table(mode, runs):
    lines = [f"| wiki8, {mode} | P@1 | P@10 | median rank | train CPU s | predict CPU s | peak MB |", "|---|---|---|---|---|---|---|"]
    for tool, rows in runs.items():
        def middle(pick, rows=rows):
            return measure.median([pick(row) for row in rows])
        lines.append(f"| {tool} ({len(rows)}) | {middle(lambda r: r['metrics']['P@1']):.2f} | "
                     f"{middle(lambda r: r['metrics']['hit@10']):.2f} | "
                     f"{middle(lambda r: r['metrics']['median_rank']):.0f} | "
                     f"{middle(lambda r: r['train_cpu_s']):.0f} | {middle(lambda r: r['predict_cpu_s']):.0f} | "
                     f"{middle(lambda r: r['peak_rss_bytes']) / 1e6:.0f} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("GOSSAMER_DATA", str(measure.ROOT / "../shared/data")))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mode", default="cbow", choices=["cbow", "skip-gram"])
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()

    source = pathlib.Path(arguments.data) / "wiki8/wiki8-100m.txt.zst"
    if not source.exists():
        sys.exit(f"{source}: not there; give the data's folder with --data or $GOSSAMER_DATA")
    out = measure.ROOT / "build/bench/wiki8"
    out.mkdir(parents=True, exist_ok=True)
    train, _, test = split(source, out)
    runs = {"gossamer word2vec": [], "gensim": [], "gensim, its prior added": []}
    for seed in range(1, arguments.rounds + 1):
        runs["gossamer word2vec"].append(ours(train, test, arguments.mode, seed, out))
        plain, prior = gensim(train, test, arguments.mode)
        runs["gensim"].append(plain)
        runs["gensim, its prior added"].append(prior)
    lines = table(arguments.mode, runs)
    print("\n".join(lines), flush=True)
    if arguments.write:
        measure.write_table(f"word2vec-{arguments.mode}", lines)
    result = {"machine": measure.machine(), "commit": measure.commit(), "settings": SETTINGS, "runs": runs}
    print(measure.save(f"word2vec_{arguments.mode}", result))


if __name__ == "__main__":
    main()
