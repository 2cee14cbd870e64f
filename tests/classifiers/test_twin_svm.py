import numpy as np
import pytest

from prevalens import parse
from prevalens.classifiers.twin_svm import MLTSVM
from prevalens.validation import InputError


def data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X[:, :3] + 0.5 * rng.normal(size=(n, 3)) > 0.3).astype(np.int8)


def test_items_of_a_label_are_near_its_plane_and_the_others_are_not():
    X, Y = data()
    model = MLTSVM(10.0, 0.1).fit(X, Y)
    scores = np.abs(X @ model.coef_.T + model.intercept_)
    for label in range(3):
        has = Y[:, label] == 1
        assert np.median(scores[has, label]) < 0.6 * np.median(scores[~has, label])
    np.testing.assert_allclose(model.decision_function(X), 1 - scores)


def test_items_on_the_far_side_do_not_have_the_label():
    # The published rule reads distances: beyond the plane is as far as before it.
    X = np.array([[1.0], [1.1], [0.9], [-1.0], [-1.1], [-0.9]])
    Y = np.array([[1], [1], [1], [0], [0], [0]])
    model = MLTSVM(10.0, 0.01, cv=2).fit(X, Y)
    assert model.predict([[-1.0], [1.0], [9.0]]).ravel().tolist() == [0, 1, 0]


def test_stopping_is_proven_and_counted():
    X, Y = data()
    exact, short = MLTSVM(tol=1e-6).fit(X, Y), MLTSVM(tol=1e-12, max_iter=3).fit(X, Y)
    assert exact.gap_ <= 1e-6
    assert short.n_iter_ == 3
    assert short.gap_ > 1e-12


@pytest.mark.parametrize(
    ("parameters", "name"), [({"C": -1}, "C"), ({"alpha": 0}, "alpha"), ({"max_iter": 0}, "max_it")]
)
def test_wrong_parameters_are_named(parameters, name):
    with pytest.raises(InputError, match=name):
        MLTSVM(**parameters).fit(*data())


def test_names_lead_back():
    assert parse("mltsvm(C=0.5)+pacc").name == "mltsvm(C=0.5)+pacc"
