import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from prevalens.classifiers.trees import Forest, Tree

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
]


def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5))
    return X, (X[:, :3] + rng.normal(size=(80, 3)) > 0).astype(np.int8)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_answers_are_those_of_scikit_learn_in_one_table(ours, theirs):
    X, Y = data()
    expected = np.column_stack([one[:, 1] for one in theirs.fit(X, Y).predict_proba(X)])
    np.testing.assert_array_equal(ours.fit(X, Y).predict_proba(X), expected)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("model", [Tree(random_state=0), Forest(5, random_state=0)])
def test_a_label_never_seen_has_posterior_zero(model):
    X, Y = data()
    Y[:, 2] = 0
    posteriors = model.fit(X, Y).predict_proba(X)
    assert posteriors.shape == (80, 3)
    assert not posteriors[:, 2].any()


def test_one_tree_sees_all_labels_together():
    X, Y = data()
    assert Tree.joint
    assert Tree(random_state=0).fit(X, Y).estimator_.n_outputs_ == 3
