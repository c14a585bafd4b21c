# SPDX-License-Identifier: Apache-2.0
"""P@k and PSP@k of a peer's ranked labels, in one place for all peers and as `gossamer eval` defines them.

P@k is the mean over test records of |top k and true| / k. PSP@k sums the inverse propensities of the hits in the top k
over all records. It divides by the same sum for the best possible ranking. Test records without labels are left out.

The inverse propensity (Jain, Prabhu and Varma, KDD 2016) of a label seen n times in N training records is

    1 + C (n + B)^-A,  C = (ln N - 1)(B + 1)^A,  A = 0.55,  B = 1.5
"""

import math

import numpy

CUTS = (1, 3, 5)
A, B = 0.55, 1.5


def inverse_propensities(train):
    """One for each label of `train` (Records)."""
    scale = max(0.0, math.log(len(train)) - 1) * (B + 1) ** A
    return 1 + scale * (numpy.bincount(train.label, minlength=train.labels) + B) ** -A


def metrics(ranking, train, test):
    """{"P@1": percent, ...}. `ranking`: test rows x 5 labels, best first; -1 where a tool gave fewer."""
    if ranking.shape != (len(test), max(CUTS)):
        raise ValueError(f"a ranking of shape {ranking.shape} for {len(test)} test records")
    weight = inverse_propensities(train)
    precision, gained, possible = (dict.fromkeys(CUTS, 0.0) for _ in range(3))
    samples = 0
    for row, ranked in enumerate(ranking.tolist()):
        truth = set(test.truth(row).tolist())
        if not truth:
            continue
        samples += 1
        if len({label for label in ranked if label >= 0}) != sum(label >= 0 for label in ranked):
            raise ValueError(f"test record {row}: a label stands twice in {ranked}")
        best = sorted((weight[label] for label in truth), reverse=True)
        for k in CUTS:
            hits = [label for label in ranked[:k] if label in truth]
            precision[k] += len(hits) / k
            gained[k] += sum(weight[label] for label in hits)
            possible[k] += sum(best[:k])
    return {**{f"P@{k}": 100 * precision[k] / samples for k in CUTS},
            **{f"PSP@{k}": 100 * gained[k] / possible[k] for k in CUTS}}
