import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, ShuffleSplit, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from prevalens.classifiers.per_label import PerLabel
from prevalens.classifiers.stacked import Stacked
from prevalens.response import offers
from prevalens.splits import IterativeStratification
from prevalens.validation import InputError, PrevalensWarning

LR = OneVsRestClassifier(LogisticRegression(tol=1e-8, max_iter=5000))


def data(n=100, n_labels=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) * [1, 3, 0.5, 1, 1] + 1
    latent = rng.normal(size=(n, 1)) + X @ rng.normal(size=(5, n_labels)) / 5
    return X, (latent + rng.normal(size=(n, n_labels)) > np.median(latent)).astype(np.int8)


def by_hand(X, Y, X_new, *, cv, normalize=False, passthrough=True):
    """The second layer's input, with scikit-learn's tools: for training and for new items."""
    first = LR.fit(X, Y)
    train = cross_val_predict(LR, X, Y, cv=cv, method="predict_proba")
    new = first.fit(X, Y).predict_proba(X_new)
    if passthrough:
        train, new = np.hstack([X, train]), np.hstack([X_new, new])
    if normalize:
        scaler = StandardScaler().fit(train)
        train, new = scaler.transform(train), scaler.transform(new)
    return train, new


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("passthrough", [False, True])
@pytest.mark.parametrize("cv", [KFold(5), 3])
def test_it_is_stacked_generalisation_by_hand(normalize, passthrough, cv):
    X, Y = data()
    X_new, _ = data(seed=1)
    options = {"normalize": normalize, "passthrough": passthrough}
    splitter = IterativeStratification(3) if cv == 3 else cv
    train, new = by_hand(X, Y, X_new, cv=splitter, **options)
    expected = OneVsRestClassifier(LogisticRegression(tol=1e-8, max_iter=5000)).fit(train, Y)
    ours = Stacked(LR, LR, cv=cv, **options).fit(X, Y)
    np.testing.assert_allclose(ours.predict_proba(X_new), expected.predict_proba(new), atol=1e-6)
    np.testing.assert_array_equal(ours.predict(X_new), expected.predict(new))


def wide(seed=0, n_more=40):
    """Items with many features that are mostly zero."""
    X, Y = data(seed=seed)
    rng = np.random.default_rng(seed)
    more = rng.normal(size=(len(X), n_more)) * (rng.random((len(X), n_more)) < 0.05)
    return np.hstack([X, more]), Y


def test_scaling_a_sparse_matrix_without_centring_is_exact():
    # The free intercept of logistic regression takes up any shift of the features.
    X, Y = wide()
    X_new = wide(seed=1)[0]
    dense = Stacked(LR, LR, normalize=True).fit(X, Y)
    sparse = Stacked(LR, LR, normalize=True).fit(sp.csr_matrix(X), Y)
    assert dense.scaler_.with_mean
    assert not sparse.scaler_.with_mean
    np.testing.assert_allclose(
        sparse.predict_proba(sp.csr_matrix(X_new)), dense.predict_proba(X_new), atol=1e-5
    )


@pytest.mark.parametrize("sparse_type", [sp.csr_matrix, sp.csr_array])
def test_sparse_items_among_many_posteriors_give_what_dense_ones_do(sparse_type):
    X, Y = data()
    X_new = data(seed=1)[0]
    seen = Stacked(LR, LR, normalize=True).fit(sparse_type(X), Y)
    expected = Stacked(LR, LR, normalize=True).fit(X, Y)
    for items in (sparse_type(X_new), X_new):
        np.testing.assert_allclose(
            seen.predict_proba(items), expected.predict_proba(X_new), atol=1e-6
        )


def test_dense_items_may_follow_sparse_ones():
    X, Y = wide()
    X_new = wide(seed=1)[0]
    seen = Stacked(LR, LR).fit(sp.csr_matrix(X), Y)
    np.testing.assert_allclose(
        seen.predict_proba(X_new), seen.predict_proba(sp.csr_matrix(X_new)), atol=1e-9
    )


def test_both_layers_default_to_a_logistic_regression_per_label():
    X, Y = data()
    np.testing.assert_allclose(
        Stacked().fit(X, Y).predict_proba(X),
        Stacked(LR, LR).fit(X, Y).predict_proba(X),
        atol=2e-3,
    )


def test_folds_may_be_trained_at_the_same_time():
    X, Y = data()
    np.testing.assert_array_equal(
        Stacked(n_jobs=2).fit(X, Y).predict_proba(X), Stacked().fit(X, Y).predict_proba(X)
    )


class Counting(OneVsRestClassifier):
    """Counts how often it is trained."""

    trainings = 0

    def fit(self, X, Y):
        type(self).trainings += 1
        return super().fit(X, Y)


def test_many_settings_share_the_first_layer():
    X, Y = data()
    base = Counting(LogisticRegression())
    settings = [
        {"meta__estimator__C": 10.0, "normalize": True},
        {"meta__estimator__C": 0.1},
        {"meta__estimator__C": 10.0},
        {"passthrough": False},
    ]
    Counting.trainings = 0
    template = Stacked(base, OneVsRestClassifier(LogisticRegression(max_iter=1000)), cv=3)
    together = list(template.fit_settings(settings, X, Y))
    assert Counting.trainings == 4
    for setting, model in zip(settings, together, strict=True):
        alone = clone(template).set_params(**setting).fit(X, Y)
        assert repr(model) == repr(alone)
        np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))


def test_settings_of_the_first_layer_are_trained_apart():
    X, Y = data()
    settings = [{"base__C": 0.01, "meta__C": 1.0}, {"meta__C": 0.1}, {"cv": 4}]
    template = Stacked(PerLabel(), PerLabel(), cv=3)
    for setting, model in zip(settings, template.fit_settings(settings, X, Y), strict=True):
        alone = clone(template).set_params(**setting).fit(X, Y)
        np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=1e-3)


def test_settings_of_the_default_second_layer_can_be_named():
    X, Y = data()
    weak, strong = Stacked(cv=3).fit_settings([{"meta__C": 1e-4}, {"meta__C": 10.0}], X, Y)
    spread = [model.predict_proba(X).std(axis=0).mean() for model in (weak, strong)]
    assert spread[0] < spread[1] / 5


def test_labels_inform_each_other():
    # Label 1 is label 0 five times out of six, but X says nothing of it directly.
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=400), rng.normal(size=400)]).T
    first = X[:, 0] > 0
    Y = np.column_stack([first, first ^ (rng.random(400) < 0.16)]).astype(np.int8)
    meta = Stacked(PerLabel(), PerLabel(), passthrough=False).fit(X, Y).meta_
    low, high = meta.predict_proba([[0.1, 0.5], [0.9, 0.5]])[:, 1]
    assert high - low > 0.2


def test_a_label_missing_from_a_fold_is_reported():
    X, Y = data()
    Y[:, 2] = 0
    Y[5, 2] = 1
    with pytest.warns(PrevalensWarning, match=r"2 \(in 1 of 5\)"):
        model = Stacked().fit(X, Y)
    assert model.predict_proba(X)[:, 2].max() < 0.5


def test_the_second_layer_decides_what_is_offered():
    X, Y = data()
    model = Stacked(meta=OneVsRestClassifier(LinearSVC()))
    assert offers(model) == {"votes"}
    assert model.fit(X, Y).predict(X).shape == (100, 4)


def test_a_first_layer_without_posteriors_is_refused():
    X, Y = data()
    with pytest.raises(InputError, match="Stacked needs posteriors; OneVsRestClassifier offers"):
        Stacked(OneVsRestClassifier(LinearSVC())).fit(X, Y)


def test_folds_must_cover_every_item_once():
    X, Y = data()
    with pytest.raises(InputError, match="must cover every item once"):
        Stacked(cv=ShuffleSplit(3, random_state=0)).fit(X, Y)
    with pytest.raises(InputError, match="cv must be at least 2"):
        Stacked(cv=1).fit(X, Y)
