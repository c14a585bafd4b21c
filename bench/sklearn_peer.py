# SPDX-License-Identifier: Apache-2.0
"""scikit-learn. Kinds: knn (labels of the nearest records by cosine), sgd (a linear classifier a label). See peer.py.

knn: each of the NEIGHBOURS nearest training records votes for its labels with its cosine.
sgd: one-vs-rest with logistic loss, feasible where there are few labels.
"""

import joblib
import numpy
import peer
import records
import scipy.sparse
from sklearn.linear_model import SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import NearestNeighbors

NEIGHBOURS = 20
ALPHA = 1e-4
BLOCK = 512


def features_of(source):
    return scipy.sparse.csr_matrix((source.value, source.index, source.begin), shape=(len(source), source.features))


def labels_of(source):
    ones = numpy.ones(len(source.label), dtype=numpy.float32)
    return scipy.sparse.csr_matrix((ones, source.label, source.label_begin), shape=(len(source), source.labels))


def train(arguments, folder):
    source = records.read(arguments["train"])
    features, labels = features_of(source), labels_of(source)
    if arguments["kind"] == "knn":
        index = NearestNeighbors(n_neighbors=NEIGHBOURS, metric="cosine", algorithm="brute").fit(features)
        model = index, labels
    else:
        one = SGDClassifier(loss="log_loss", alpha=ALPHA, random_state=arguments["seed"])
        model = OneVsRestClassifier(one, n_jobs=1).fit(features, labels)
    joblib.dump(model, folder / "model.joblib")
    return model


def top(scores):
    """Columns of the best entries of each row of a dense matrix, best first."""
    best = numpy.argpartition(-scores, peer.TOP, axis=1)[:, :peer.TOP]
    order = numpy.argsort(-numpy.take_along_axis(scores, best, 1), axis=1, kind="stable")
    return numpy.take_along_axis(best, order, 1)


def votes(index, labels, features):
    """Rows of the best labels by the sum of the neighbours' cosines."""
    distance, neighbour = index.kneighbors(features)
    rows = features.shape[0]
    weight = scipy.sparse.csr_matrix(((1 - distance).ravel(), neighbour.ravel(), numpy.arange(rows + 1) * NEIGHBOURS),
                                     shape=(rows, labels.shape[0]))
    votes = (weight @ labels).tocsr()
    for row in range(rows):
        label, vote = (part[votes.indptr[row]:votes.indptr[row + 1]] for part in (votes.indices, votes.data))
        yield label[numpy.argsort(-vote, kind="stable")[:peer.TOP]]


def rank(model, test, arguments):
    features = features_of(test)
    rows = []
    for first in range(0, len(test), BLOCK):
        block = features[first:first + BLOCK]
        rows.extend(votes(*model, block) if arguments["kind"] == "knn" else top(model.decision_function(block)))
    return rows


if __name__ == "__main__":
    peer.main(train, rank)
