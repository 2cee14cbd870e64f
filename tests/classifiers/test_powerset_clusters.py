import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.svm import LinearSVC

from prevalens.classifiers.knn import MLkNN
from prevalens.classifiers.powerset import LabelSpaceClusters
from prevalens.classifiers.trees import Tree
from prevalens.response import offers
from prevalens.validation import InputError


def data(n=80, n_labels=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X @ rng.normal(size=(4, n_labels)) + rng.normal(size=(n, n_labels)) > 0).astype(
        np.int8
    )


@pytest.mark.parametrize("n_clusters", [1, 2, 5])
def test_labels_of_a_cluster_share_a_classifier_of_their_own(n_clusters):
    X, Y = data()
    tree = Tree(max_depth=3, random_state=0)
    model = LabelSpaceClusters(n_clusters, tree, random_state=0).fit(X, Y)
    assert len(model.clusters_) == n_clusters
    np.testing.assert_array_equal(np.sort(np.concatenate(model.clusters_)), np.arange(6))
    for labels in model.clusters_:
        alone = Tree(max_depth=3, random_state=0).fit(X, Y[:, labels])
        np.testing.assert_array_equal(model.predict_proba(X)[:, labels], alone.predict_proba(X))
        np.testing.assert_array_equal(model.predict(X)[:, labels], alone.predict(X))


@pytest.mark.parametrize("n_clusters", [1, 3, 6])
def test_clusters_cannot_change_ml_knn_so_it_is_trained_once(n_clusters):
    X, Y = data()
    model = LabelSpaceClusters(n_clusters, MLkNN(4), random_state=0).fit(X, Y)
    assert len(model.clusters_) == n_clusters
    assert len(model.classifiers_) == 1
    np.testing.assert_array_equal(model.predict_proba(X), MLkNN(4).fit(X, Y).predict_proba(X))


def test_a_classifier_per_label_is_trained_once_too():
    X, Y = data()
    each = MultiOutputClassifier(LogisticRegression())
    model = LabelSpaceClusters(3, each, random_state=0).fit(X, Y)
    assert len(model.classifiers_) == 1
    np.testing.assert_array_equal(model.predict(X), each.fit(X, Y).predict(X))


def test_labels_that_always_agree_share_a_cluster():
    X, Y = data(n_labels=2)
    model = LabelSpaceClusters(2, random_state=0).fit(X, Y[:, [0, 1, 0, 1, 0]])
    clusters = sorted(labels.tolist() for labels in model.clusters_)
    assert clusters == [[0, 2, 4], [1, 3]]


def test_more_clusters_than_different_labels_are_as_many_as_there_are():
    X, Y = data(n_labels=2)
    model = LabelSpaceClusters(50, random_state=0).fit(X, Y[:, [0, 1, 0]])
    assert sorted(labels.tolist() for labels in model.clusters_) == [[0, 2], [1]]


def test_the_classifier_decides_what_is_offered():
    assert offers(LabelSpaceClusters(2, MultiOutputClassifier(LinearSVC()))) == {"votes"}
    assert offers(LabelSpaceClusters()) == {"votes", "posteriors"}


def test_wrong_parameters_are_refused():
    X, Y = data()
    with pytest.raises(InputError, match="n_clusters must be at least 1"):
        LabelSpaceClusters(0).fit(X, Y)
