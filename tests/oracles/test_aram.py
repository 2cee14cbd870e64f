"""ML-ARAM against scikit-multilearn, and its relatives against a slow reference."""

import numpy as np
import pytest
from skmultilearn import adapt

from prevalens.classifiers.aram import MLARAM


def data(n=80, n_labels=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    X[0], X[1] = 0, 1
    Y = (X @ rng.normal(size=(3, n_labels)) + 0.3 * rng.normal(size=(n, n_labels)) > 0.2).astype(
        int
    )
    return X, Y[:, :n_labels]


def coded(x):
    return [*x, *(1 - value for value in x)]


def fuzzy_and(a, b):
    return [min(left, right) for left, right in zip(a, b, strict=True)]


def textbook_artmap(X, Y, vigilance, search):
    """Weights and labelsets by complement coding, one prototype at a time."""
    weights, labels = [], []
    for x, y in zip(X, Y, strict=True):
        item, needed, chosen = coded(x), vigilance, None
        ranked = sorted(
            range(len(weights)),
            key=lambda j: -sum(fuzzy_and(item, weights[j])) / sum(weights[j]),
        )
        for j in ranked:
            if search == "aram" and labels[j] != tuple(y):
                continue
            match = sum(fuzzy_and(item, weights[j])) / sum(item)
            if match <= needed:
                continue
            if labels[j] == tuple(y):
                chosen = j
                break
            needed = match
        if chosen is None:
            weights.append(item)
            labels.append(tuple(y))
        else:
            weights[chosen] = fuzzy_and(weights[chosen], item)
    return weights, labels


@pytest.mark.parametrize("search", ["aram", "fam"])
@pytest.mark.parametrize("vigilance", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("seed", [0, 1])
def test_boxes_are_the_textbook_weights(search, vigilance, seed):
    X, Y = data(seed=seed)
    weights, labels = textbook_artmap(X, Y, vigilance, search)
    model = MLARAM(vigilance, search=search).fit(X, Y)
    boxes = model.boxes_
    ours = np.hstack([boxes.lower, 1 - boxes.upper, model.states_[boxes.state]])
    expected = np.hstack([weights, labels])
    order = (np.lexsort(ours.round(9).T), np.lexsort(expected.round(9).T))
    np.testing.assert_allclose(ours[order[0]], expected[order[1]], atol=1e-12)


@pytest.mark.filterwarnings("ignore:numpy.core:DeprecationWarning")
@pytest.mark.parametrize("vigilance", [0.6, 0.9])
@pytest.mark.parametrize("threshold", [0.02, 0.5])
def test_it_ranks_and_votes_as_scikit_multilearn(vigilance, threshold):
    X, Y = data()
    X_new, _ = data(n=40, seed=1)
    theirs = adapt.MLARAM(vigilance, threshold)
    theirs.fit(X, Y.copy())
    ranks = theirs.predict_proba(X_new)
    model = MLARAM(vigilance, threshold, cut="gap").fit(X, Y)
    ours = model.predict_proba(X_new)
    # Theirs are not divided by the number of items, the same for all labels of an item.
    known = ranks.max(axis=1) > 0
    ratio = (ours.max(axis=1) / np.where(known, ranks.max(axis=1), 1))[:, np.newaxis]
    np.testing.assert_allclose(ours, ranks * ratio, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X_new)[known], theirs.predict(X_new)[known])
