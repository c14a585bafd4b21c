# SPDX-License-Identifier: Apache-2.0
"""Omikuji: trees of linear classifiers. Kinds: default, and bonsai ("Bonsai-like" of its own documentation). See peer.py."""

import omikuji
import peer


def train(arguments, folder):
    parameters = omikuji.Model.default_hyper_param()
    if arguments["kind"] == "bonsai":
        parameters.cluster_balanced = False
        parameters.cluster_k = 100
        parameters.max_depth = 3
    model = omikuji.Model.train_on_data(arguments["train"], parameters, arguments["threads"])
    model.save(str(folder))
    return model


def rank(model, test, arguments):
    index, value = test.index.tolist(), test.value.tolist()
    rows = []
    for begin, end in zip(test.begin[:-1], test.begin[1:]):
        row = list(zip(index[begin:end], value[begin:end]))
        rows.append([label for label, _ in model.predict(row, top_k=peer.TOP, beam_size=10)])
    return rows


if __name__ == "__main__":
    peer.main(train, rank)
