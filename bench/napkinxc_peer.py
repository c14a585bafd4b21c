# SPDX-License-Identifier: Apache-2.0
"""napkinXC's probabilistic label tree with its own defaults. Kind: plt. See peer.py."""

import napkinxc.datasets
import peer
import scipy.sparse
from napkinxc.models import PLT


def train(arguments, folder):
    features, labels = napkinxc.datasets.load_libsvm_file(arguments["train"])
    model = PLT(str(folder), seed=arguments["seed"], threads=arguments["threads"])
    model.fit(features, labels)
    return model


def rank(model, test, arguments):
    shape = len(test), test.features
    return model.predict(scipy.sparse.csr_matrix((test.value, test.index, test.begin), shape=shape), top_k=peer.TOP)


if __name__ == "__main__":
    peer.main(train, rank, PLT.load)
