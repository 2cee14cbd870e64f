import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cross_decomposition import PLSRegression
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsClassifier

from prevalens.classifiers.clems import CLEMS
from prevalens.classifiers.knn import MLkNN
from prevalens.validation import InputError


def data(n=120, n_labels=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    return X, (X[:, :n_labels] + 0.3 * rng.normal(size=(n, n_labels)) > 0).astype(np.int8)


class Oracle(LinearRegression):
    """A regressor that knows the places of the items it was trained on."""

    def fit(self, X, places):
        self.places_ = places
        return self

    def predict(self, X):
        return self.places_


@pytest.mark.parametrize("cost", ["hamming", "f1", "jaccard", "rank"])
def test_right_places_give_right_labels(cost):
    X, Y = data()
    model = CLEMS(KNeighborsClassifier(1), Oracle(), cost=cost, passthrough=False).fit(X, Y)
    wrong = np.any(model.predict(X) != Y, axis=1).mean()
    assert wrong <= (0 if cost != "rank" else 0.15)


def test_labels_are_read_from_the_nearest_answer_as_in_the_original():
    X, Y = data()
    X_new, _ = data(seed=1)
    model = CLEMS(KNeighborsClassifier(1), LinearRegression(), cost="f1", passthrough=False).fit(
        X, Y
    )
    places = LinearRegression().fit(X, model.truths_[_states_of(model, Y)]).predict(X_new)
    distances = ((places[:, np.newaxis] - model.answers_) ** 2).sum(axis=2)
    np.testing.assert_array_equal(model.predict(X_new), model.states_[distances.argmin(axis=1)])


def _states_of(model, Y):
    return np.array([np.flatnonzero((model.states_ == row).all(axis=1))[0] for row in Y])


@pytest.mark.parametrize("passthrough", [True, False])
def test_the_classifier_sees_places_beside_the_features_or_alone(passthrough):
    X, Y = data()
    X_new, _ = data(seed=1)
    model = CLEMS(MLkNN(3), LinearRegression(), passthrough=passthrough).fit(X, Y)
    places, new_places = model.answers_[_states_of(model, Y)], model.regressor_.predict(X_new)
    left = np.hstack([X, places]) if passthrough else places
    right = np.hstack([X_new, new_places]) if passthrough else new_places
    expected = MLkNN(3).fit(left, Y)
    np.testing.assert_array_equal(model.predict_proba(X_new), expected.predict_proba(right))
    np.testing.assert_array_equal(model.predict(X_new), expected.predict(right))


def test_a_cost_sensitive_embedding_serves_its_cost():
    # Nearest answers under the F1 cost score a higher F1 than under the Hamming cost.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6))
    Y = (X @ rng.normal(size=(6, 6)) + 3 * rng.normal(size=(600, 6)) > 2).astype(np.int8)
    train, test = slice(0, 400), slice(400, 600)

    def f1(cost):
        model = CLEMS(
            KNeighborsClassifier(1), LinearRegression(), cost=cost, passthrough=False
        ).fit(X[train], Y[train])
        votes = model.predict(X[test])
        both, total = (votes * Y[test]).sum(axis=1), (votes + Y[test]).sum(axis=1)
        return np.mean(np.where(total > 0, 2 * both / np.maximum(total, 1), 1))

    assert f1("f1") > f1("hamming")


def test_fewer_dimensions_than_labels():
    X, Y = data()
    model = CLEMS(MLkNN(3), n_components=2, random_state=0).fit(X, Y)
    assert model.truths_.shape == model.answers_.shape == (len(model.states_), 2)
    assert model.stress_ > CLEMS(MLkNN(3), random_state=0).fit(X, Y).stress_
    line = CLEMS(MLkNN(3), n_components=1, passthrough=False, random_state=0).fit(X, Y)
    assert line.predict(X).shape == Y.shape


def test_sparse_items_stay_sparse_beside_their_places():
    X, Y = data()
    X[X < 0] = 0
    seen = []

    class Spy(MLkNN):
        def _fit(self, X, Y):
            seen.append(X)
            super()._fit(X, Y)

    CLEMS(Spy(3), random_state=0).fit(sp.csr_matrix(X), Y)
    assert sp.issparse(seen[0])
    assert seen[0].shape == (120, 9)


def test_a_single_labelset_is_answered():
    X, _ = data()
    Y = np.tile([1, 0], (120, 1))
    model = CLEMS(MLkNN(3), random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), Y)


def test_wrong_parameters_are_refused():
    X, Y = data()
    with pytest.raises(InputError, match="cost must be a function or one of"):
        CLEMS(cost="loss").fit(X, Y)
    with pytest.raises(InputError, match="n_components must be at least 1"):
        CLEMS(n_components=0).fit(X, Y)


def test_a_regressor_that_takes_no_sparse_matrix_gets_a_dense_one():
    X, Y = data()
    X[X < 0.5] = 0.0
    dense = CLEMS(MLkNN(3), PLSRegression(), passthrough=False).fit(X, Y)
    sparse = CLEMS(MLkNN(3), PLSRegression(), passthrough=False).fit(sp.csr_array(X), Y)
    np.testing.assert_allclose(sparse.predict_proba(sp.csr_array(X)), dense.predict_proba(X))


class Counted(LinearRegression):
    """A regressor that counts its trainings."""

    fits = 0

    def fit(self, X, places):
        Counted.fits += 1
        return super().fit(X, places)


def test_settings_of_the_classifier_share_the_regressor():
    X, Y = data()
    X_new, _ = data(seed=1)
    settings = [
        {"regressor__fit_intercept": intercept, "classifier__k": k, "classifier__s": s}
        for k in (1, 3)
        for intercept in (True, False)
        for s in (0.5, 1.0)
    ]
    Counted.fits = 0
    together = list(CLEMS(MLkNN(), Counted()).fit_settings(settings, X, Y))
    assert Counted.fits == 2
    for setting, model in zip(settings, together, strict=True):
        alone = CLEMS(MLkNN(), Counted()).set_params(**setting).fit(X, Y)
        assert model.get_params()["classifier__k"] == setting["classifier__k"]
        np.testing.assert_array_equal(model.predict_proba(X_new), alone.predict_proba(X_new))


def test_settings_of_the_default_classifier_are_its_own():
    X, Y = data()
    (model,) = CLEMS(regressor=LinearRegression()).fit_settings([{"classifier__k": 3}], X, Y)
    alone = CLEMS(MLkNN(3), LinearRegression()).fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))
