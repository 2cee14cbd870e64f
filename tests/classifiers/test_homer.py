"""The tree of HOMER against a recursive reference, and its limits."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from prevalens import parse
from prevalens.classifiers.homer import HOMER
from prevalens.classifiers.per_label import PerLabel
from prevalens.labelsets import (
    BalancedClusters,
    KMeansClusters,
    Labelsets,
    RandomClusters,
    RandomLabelsets,
)
from prevalens.validation import InputError


def data(n=150, n_labels=7, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    latent = X @ rng.normal(size=(5, n_labels)) + 0.5 * rng.normal(size=(n, n_labels))
    return X, (latent > 1.0).astype(np.int8)


class Halves(Labelsets):
    """The first half of the labels, and the second."""

    def groups(self, Y, rng):
        return np.array_split(np.arange(Y.shape[1]), 2)


def reference(X, Y, X_new, labels, kind):
    """The paper's recursion, one meta-label at a time; a dict of each label's column."""
    if len(labels) == 1:
        return {labels[0]: np.ones(len(X_new))}
    found = {}
    for half in np.array_split(np.array(labels), 2):
        target = Y[:, half].any(axis=1).astype(int)
        model = GaussianNB().fit(X, target)
        answer = model.predict(X_new) if kind == "votes" else model.predict_proba(X_new)[:, 1]
        rows = target == 1
        below = reference(X[rows], Y[rows], X_new, list(half), kind)
        found |= {label: answer * column for label, column in below.items()}
    return found


@pytest.mark.parametrize("kind", ["votes", "posteriors"])
def test_it_is_the_recursion_of_the_publication(kind):
    X, Y = data()
    X_new, _ = data(seed=1)
    model = HOMER(PerLabel(GaussianNB()), Halves()).fit(X, Y)
    expected = reference(X, Y, X_new, list(range(7)), kind)
    found = model.respond(X_new, kind)
    for label in range(7):
        np.testing.assert_allclose(found[:, label], expected[label], rtol=1e-9)


@pytest.mark.parametrize(
    "clusterer", [None, RandomClusters(2), KMeansClusters(3), BalancedClusters(2)]
)
def test_every_label_is_reached_by_one_path(clusterer):
    X, Y = data(n_labels=10)
    model = HOMER(clusterer=clusterer).fit(X, Y)
    held = [np.sort(np.concatenate(groups)).tolist() for groups in model.groups_]
    assert held[0] == list(range(10))
    children = [group.tolist() for groups in model.groups_ for group in groups]
    # Every inner node but the root is the child of one other; the other children are the labels.
    assert sorted(map(tuple, held[1:])) == sorted(tuple(c) for c in children if len(c) > 1)
    assert sorted(c[0] for c in children if len(c) == 1) == list(range(10))
    assert len(model.classifiers_) == len(model.groups_)


def test_one_level_is_the_classifier_itself():
    X, Y = data()
    flat = HOMER(clusterer=KMeansClusters(7)).fit(X, Y)
    assert len(flat.groups_) == 1
    order = np.concatenate(flat.groups_[0])
    alone = PerLabel().fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(flat.predict_proba(X)[:, order], alone[:, order], atol=1e-9)


def test_the_random_tree_depends_on_its_seed_and_the_balanced_one_on_the_labels():
    X, Y = data(n_labels=12)

    def tree(model):
        return sorted(group.tolist() for groups in model.fit(X, Y).groups_ for group in groups)

    assert tree(HOMER(clusterer=RandomClusters(3))) != tree(
        HOMER(clusterer=RandomClusters(3), random_state=1)
    )
    Y[:, 6:] = Y[:, :6]
    twins = tree(HOMER(clusterer=BalancedClusters(6)))
    assert [[label, label + 6] for label in range(6)] == [group for group in twins if group[1:]]


@pytest.mark.filterwarnings("ignore:Labels without both::prevalens")
def test_labels_that_no_item_has_share_the_answer_of_their_group():
    X, Y = data(n_labels=6)
    Y[:, 3:] = 0
    model = HOMER(clusterer=Halves()).fit(X, Y)
    assert [3, 4, 5] in [group.tolist() for group in model.groups_[0]]
    assert all(3 not in np.concatenate(groups) for groups in model.groups_[1:])
    np.testing.assert_array_equal(model.predict_proba(X)[:, 3:], 0)


def test_twins_are_divided_all_the_same():
    X, Y = data(n_labels=1)
    model = HOMER(clusterer=KMeansClusters(2)).fit(X, np.repeat(Y, 4, axis=1))
    assert [len(group) for group in model.groups_[0]] == [1, 1, 1, 1]


def test_wrong_clusterers_are_named():
    X, Y = data()
    with pytest.raises(InputError, match=r"clusterer=\[\[0, 1\]\]"):
        HOMER(clusterer=[[0, 1]]).fit(X, Y)
    with pytest.raises(InputError, match="exactly once"):
        HOMER(clusterer=RandomLabelsets(3)).fit(X, Y)


def test_names_lead_back():
    for name in ("homer", "homer(lr,random(n_clusters=3))", "homer(mlknn,kmeans(n_clusters=2))"):
        assert parse(f"{name}+pcc").name == f"{name}+pcc"
