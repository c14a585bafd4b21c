# SPDX-License-Identifier: Apache-2.0
"""Trains gensim's word2vec in a process of its own and ranks the centre words of held-out windows.

gensim_peer.py TRAIN TEST cbow|skip-gram WIDTH WINDOW EPOCHS MIN_COUNT WORKERS    (lines of words; prints one JSON line)

A window's score of word w is its output row times the mean of the context's input rows, over all words. Negative
sampling trains that score towards ln P(w | context) - ln Pn(w), where Pn = noise ~ count^0.75 (Levy and Goldberg,
NIPS 2014). Frequent words of the text are thinned out. "prior" adds ln Pn(w) - ln keep(w) back.
"""

import json
import math
import resource
import sys

import numpy as np
from gensim.models import Word2Vec

SAMPLE = 1e-3
BLOCK = 500


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def windows(path, index, window):
    """(centre, context) of every known word with a known neighbour; unknown words are left out before."""
    for line in open(path, encoding="utf-8"):
        words = [index[word] for word in line.split() if word in index]
        for at, centre in enumerate(words):
            context = words[max(0, at - window):at] + words[at + 1:at + 1 + window]
            if context:
                yield centre, context


def ranks(model, path, window, prior):
    centres, hidden = [], []
    vectors = model.wv.vectors
    for centre, context in windows(path, model.wv.key_to_index, window):
        centres.append(centre)
        hidden.append(vectors[context].mean(axis=0))
    output = model.syn1neg.T.copy()
    above = []
    for first in range(0, len(centres), BLOCK):
        scores = np.asarray(hidden[first:first + BLOCK], dtype=np.float32) @ output + prior
        own = scores[np.arange(len(scores)), centres[first:first + BLOCK]]
        above.extend((scores > own[:, None]).sum(axis=1).tolist())
    return np.asarray(above)


def main():
    train, test, mode, width, window, epochs, min_count, workers = sys.argv[1:9]
    start = cpu_seconds()
    model = Word2Vec(corpus_file=train, sg=int(mode == "skip-gram"), vector_size=int(width), window=int(window),
                     epochs=int(epochs), min_count=int(min_count), workers=int(workers), sample=SAMPLE, negative=5)
    train_cpu = cpu_seconds() - start
    counts = np.asarray([model.wv.get_vecattr(word, "count") for word in model.wv.index_to_key], dtype=np.float64)
    share = counts / counts.sum()
    keep = np.minimum(1, np.sqrt(SAMPLE / share) + SAMPLE / share)  # as its program thins out
    priors = {"plain": np.zeros(len(counts)), "prior": 0.75 * np.log(share) - np.log(keep)}
    result = {"train_cpu_s": train_cpu, "words": len(counts)}
    for name, prior in priors.items():
        start = cpu_seconds()
        above = ranks(model, test, int(window), prior.astype(np.float32))
        result[name] = {"P@1": 100 * float((above < 1).mean()), "hit@10": 100 * float((above < 10).mean()),
                        "median_rank": float(np.median(above)) + 1, "predict_cpu_s": cpu_seconds() - start}
        result["windows"] = len(above)
    assert math.isfinite(float(model.syn1neg.sum()))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
