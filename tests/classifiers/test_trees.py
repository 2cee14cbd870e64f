import gc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from skops.io import dumps

from prevalens.classifiers import trees
from prevalens.classifiers.trees import ExtraTrees, Forest, Tree
from prevalens.errors import FormatError, InputError

PAIRS = [
    (
        Tree("entropy", 4, min_samples_leaf=3, random_state=1),
        DecisionTreeClassifier(
            criterion="entropy", max_depth=4, min_samples_leaf=3, random_state=1
        ),
    ),
    (
        Forest(7, "entropy", max_features=1.0, class_weight="balanced", random_state=2),
        RandomForestClassifier(
            7, criterion="entropy", max_features=1.0, class_weight="balanced", random_state=2
        ),
    ),
    (Forest(9, min_samples_leaf=4), RandomForestClassifier(9, min_samples_leaf=4, random_state=0)),
    (ExtraTrees(8), ExtraTreesClassifier(8, random_state=0)),
]


def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5))
    return X, (X[:, :3] + rng.normal(size=(80, 3)) > 0).astype(np.int8)


def texts_like(n_items=600, n_labels=28):
    """Sparse counts and about one label per item."""
    rng = np.random.default_rng(1)
    X = sp.csr_matrix(rng.poisson(0.02, size=(n_items, 400)) * rng.uniform(size=(n_items, 400)))
    return X, (rng.uniform(size=(n_items, n_labels)) < 1.2 / n_labels).astype(np.int8)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("group_bytes", [0, 10**9])
@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_answers_are_those_of_scikit_learn_in_one_table(
    ours, theirs, group_bytes, sparse, monkeypatch
):
    monkeypatch.setattr(trees, "_GROUP_BYTES", group_bytes)
    monkeypatch.setattr(trees, "_BLOCK", 33)
    X, Y = data()
    X = sp.csr_matrix(X * (np.abs(X) > 1)) if sparse else X
    expected = np.column_stack([label[:, 1] for label in theirs.fit(X, Y).predict_proba(X)])
    np.testing.assert_array_equal(ours.fit(X, Y).predict_proba(X), expected)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Forest(40, random_state=3), RandomForestRegressor),
        (ExtraTrees(40, bootstrap=True, random_state=3), ExtraTreesRegressor),
    ],
)
def test_posteriors_out_of_bag_are_those_of_scikit_learn(ours, theirs, sparse, monkeypatch):
    monkeypatch.setattr(trees, "_GROUP_BYTES", 7 * 32 * 240)
    X, Y = data()
    X = sp.csr_matrix(X * (np.abs(X) > 1)) if sparse else X
    forest = theirs(40, max_features="sqrt", bootstrap=True, oob_score=True, random_state=3)
    expected = forest.fit(X, Y.astype(float)).oob_prediction_
    whole = type(ours)(**ours.get_params()).fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(ours.fit_out_of_bag(X, Y).posteriors, expected, rtol=1e-12)
    np.testing.assert_array_equal(ours.predict_proba(X), whole)
    # The same in two steps.
    ours.set_params(n_estimators=15)
    first = ours.fit_out_of_bag(X, Y)
    later = ours.set_params(n_estimators=40).fit_out_of_bag(X, Y, after=first)
    np.testing.assert_allclose(later.posteriors, expected, rtol=1e-12)
    np.testing.assert_array_equal(ours.predict_proba(X), whole)
    assert ours.fit_out_of_bag(X, Y, after=later) is later


def test_trees_that_see_all_items_have_no_posteriors_out_of_bag():
    with pytest.raises(InputError, match="give bootstrap=True"):
        ExtraTrees(5).fit_out_of_bag(*data())


@pytest.mark.parametrize("model", [Tree(), Forest(5), ExtraTrees(5)])
def test_a_label_that_is_constant_in_training_is_answered_as_it_was(model):
    X, Y = data()
    Y[:, 2], Y[:, 0] = 0, 1
    posteriors = model.fit(X, Y).predict_proba(X)
    assert not posteriors[:, 2].any()
    assert (posteriors[:, 0] == 1).all()
    assert 0 < posteriors[:, 1].mean() < 1
    np.testing.assert_array_equal(model.fit(X, Y[:, :1]).predict_proba(X), np.ones((80, 1)))


def test_one_tree_sees_all_labels_together():
    X, Y = data()
    assert Tree.joint
    fitted = Tree().fit(X, Y).trees_
    assert (len(fitted.n_splits), fitted.n_labels) == (1, 3)


def test_a_stored_forest_takes_a_fortieth_of_scikit_learns():
    X, Y = texts_like()
    ours = len(dumps(Forest(20).fit(X, Y)))
    theirs = len(dumps(RandomForestClassifier(20, random_state=0).fit(X, Y)))
    assert 40 * ours < theirs


@pytest.mark.parametrize("forest", [Forest(30), ExtraTrees(30), Forest(30, min_samples_leaf=5)])
def test_the_size_of_a_forest_is_known_before_it_is_grown(forest):
    X, Y = texts_like()
    expected = forest.expected_bytes(*Y.shape, labels_per_item=Y.sum() / len(Y))
    assert expected / 5 < forest.fit(X, Y).trees_.nbytes < expected


def test_only_one_group_of_trees_is_in_memory_while_a_forest_grows(monkeypatch):
    X, Y = texts_like(200, 5)
    monkeypatch.setattr(trees, "_GROUP_BYTES", 3 * 32 * Y.size)
    alive = []

    def count() -> int:
        # By type: isinstance would look into dead proxies that other tests left behind.
        return sum(issubclass(type(each), DecisionTreeRegressor) for each in gc.get_objects())

    def reduce(tree, Y, reduce=trees._reduce):
        alive.append(count())
        return reduce(tree, Y)

    monkeypatch.setattr(trees, "_reduce", reduce)
    before = count()
    Forest(20).fit(X, Y)
    assert len(alive) == 20
    # Three trees of the group, scikit-learn's unfitted one, and the one with the forest's
    # settings that they are copies of.
    assert max(alive) - before <= 5


@pytest.mark.parametrize(
    "damage",
    [
        lambda forest: {"left": np.zeros_like(forest.left)},
        lambda forest: {"right": forest.right + np.int64(10**6)},
        lambda forest: {"feature": forest.feature + np.int64(10**6)},
        lambda forest: {"feature": forest.feature.astype(np.int64) - 10**6},
        lambda forest: {"label": forest.label + np.int64(3)},
        lambda forest: {"share_code": forest.share_code + np.int64(10**6)},
        lambda forest: {"n_entries": forest.n_entries[:-1]},
        lambda forest: {"n_splits": forest.n_splits[:-1]},
        lambda forest: {"n_splits": forest.n_splits + 1},
        lambda forest: {"n_leaves": forest.n_leaves * 0},
        lambda forest: {"threshold": forest.threshold[:-1]},
        lambda forest: {"shares": forest.shares + 1},
    ],
)
def test_a_forest_that_leads_out_of_its_arrays_is_not_sound(damage):
    forest = Forest(4).fit(*data()).trees_
    assert forest.is_sound()
    assert not replace(forest, **damage(forest)).is_sound()


def test_trees_of_another_number_of_features_are_refused():
    X, Y = data()
    model = Forest(4).fit(X, Y)
    model.trees_ = replace(model.trees_, n_features=6)
    with pytest.raises(FormatError, match="have 6 features, the items 5; the model is damaged"):
        model.predict_proba(X)
