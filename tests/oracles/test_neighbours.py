"""ML-kNN and label space clustering against slow references, written from the papers' formulas."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from skmultilearn.adapt import MLkNN as TheirMLkNN

from prevalens.classifiers.knn import MLkNN
from prevalens.classifiers.powerset import LabelSpaceClusters


def data(n=70, n_labels=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = (X @ rng.normal(size=(3, n_labels)) + rng.normal(size=(n, n_labels)) > 0.4).astype(int)
    return X, Y


def textbook_ml_knn(X, Y, X_new, k, s):
    """Zhang and Zhou 2007, figure 1, one item and one label at a time: P(label | count)."""
    n_items, n_labels = Y.shape
    posteriors = np.zeros((len(X_new), n_labels))
    distances = cdist(X, X)
    new_distances = cdist(X_new, X)
    for label in range(n_labels):
        prior_1 = (s + sum(Y[:, label])) / (2 * s + n_items)
        prior_0 = 1 - prior_1
        with_label, without_label = [0] * (k + 1), [0] * (k + 1)
        for i in range(n_items):
            others = sorted((distances[i, j], j) for j in range(n_items) if j != i)
            count = sum(Y[j, label] for _, j in others[:k])
            if Y[i, label] == 1:
                with_label[count] += 1
            else:
                without_label[count] += 1
        for t in range(len(X_new)):
            nearest = sorted((new_distances[t, j], j) for j in range(n_items))[:k]
            count = sum(Y[j, label] for _, j in nearest)
            like_1 = (s + with_label[count]) / (s * (k + 1) + sum(with_label))
            like_0 = (s + without_label[count]) / (s * (k + 1) + sum(without_label))
            posteriors[t, label] = prior_1 * like_1 / (prior_1 * like_1 + prior_0 * like_0)
    return posteriors


@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("s", [0.5, 1.0])
def test_ml_knn_is_the_textbook(k, s):
    X, Y = data()
    X_new, _ = data(n=25, seed=1)
    ours = MLkNN(k, s).fit(X, Y)
    expected = textbook_ml_knn(X, Y, X_new, k, s)
    np.testing.assert_allclose(ours.predict_proba(X_new), expected, rtol=1e-12)
    np.testing.assert_array_equal(ours.predict(X_new), expected >= 0.5)


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("s", [0.5, 1.0])
def test_ml_knn_with_its_own_items_among_the_neighbours_is_scikit_multilearn(k, s):
    X, Y = data()
    X_new, _ = data(n=25, seed=1)
    theirs = TheirMLkNN(k=k, s=s).fit(X, Y)
    ours = MLkNN(k, s, exclude_self=False).fit(X, Y)
    np.testing.assert_allclose(ours.predict_proba(X_new), theirs.predict_proba(X_new).toarray())
    np.testing.assert_array_equal(ours.predict(X_new), theirs.predict(X_new).toarray())


def test_likelihoods_are_those_of_scikit_multilearn_when_it_skips_the_item_itself():
    X, Y = data()
    theirs = TheirMLkNN(k=4, s=0.7, ignore_first_neighbours=1).fit(X, Y)
    ours = MLkNN(4, 0.7).fit(X, Y)
    np.testing.assert_allclose(ours.likelihood_[1], theirs._cond_prob_true.toarray())
    np.testing.assert_allclose(ours.likelihood_[0], theirs._cond_prob_false.toarray())
    np.testing.assert_allclose(ours.prior_, theirs._prior_prob_true)


@pytest.mark.parametrize("n_clusters", [2, 3])
def test_label_space_clusters_are_the_textbook(n_clusters):
    X, Y = data(n_labels=6)
    X_new, _ = data(n=25, seed=1)
    cluster_of = KMeans(n_clusters, n_init=10, random_state=0).fit_predict(Y.T.astype(float))
    expected = np.zeros((25, 6))
    for cluster in range(n_clusters):
        labels = np.flatnonzero(cluster_of == cluster)
        expected[:, labels] = textbook_ml_knn(X, Y[:, labels], X_new, 5, 1.0)
    ours = LabelSpaceClusters(n_clusters, MLkNN(5), random_state=0).fit(X, Y)
    np.testing.assert_allclose(ours.predict_proba(X_new), expected, rtol=1e-12)
    found = sorted(labels.tolist() for labels in ours.clusters_)
    assert found == sorted(np.flatnonzero(cluster_of == c).tolist() for c in range(n_clusters))
