import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import get_tags

from prevalens.classifiers.base import MultiLabelClassifier, append_columns
from prevalens.validation import InputError


class Prior(MultiLabelClassifier):
    """Answers the training prevalences."""

    def _fit(self, X, Y):
        self.prior_ = Y.mean(axis=0)
        self.training_ = (X, Y)

    def _posteriors(self, X):
        return np.tile(self.prior_.astype(np.float32), (X.shape[0], 1))


class Passing(Prior):
    """Hands texts on."""

    takes_texts = True

    def _posteriors(self, X):
        return np.tile(self.prior_, (len(X), 1))


class Silent(Prior):
    """Has no posteriors to offer."""

    def _offers_posteriors(self):
        return False


X = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]])
Y = [[1, 0], [1, 0], [0, 1]]


def test_a_vote_is_a_posterior_above_one_half():
    model = Prior().fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), [[1, 0]] * 3)
    np.testing.assert_array_equal(Prior().fit(X[:2], [[1], [0]]).predict(X), [[0]] * 3)


def test_posteriors_are_double_precision():
    assert Prior().fit(X, Y).predict_proba(X).dtype == np.float64


def test_labels_reach_training_as_small_integers():
    for labels in (Y, np.array(Y, dtype=float), np.array(Y) == 1, sp.csr_matrix(Y)):
        assert Prior().fit(X, labels).training_[1].dtype == np.int8


def test_matrices_reach_training_in_two_forms():
    for items in (X, X.tolist(), pd.DataFrame(X), X.astype(int), X.astype(np.float32)):
        assert isinstance(Prior().fit(items, Y).training_[0], np.ndarray)
    for form in (sp.csr_matrix, sp.csc_array, sp.coo_matrix, sp.lil_array):
        assert Prior().fit(form(X), Y).training_[0].format == "csr"


def test_texts_are_refused_with_a_way_out_unless_they_are_handed_on():
    texts = ["a b", "c", "a"]
    with pytest.raises(InputError, match=r"make_pipeline\(TfidfVectorizer\(\), Prior\(\)\)"):
        Prior().fit(texts, Y)
    assert Passing().fit(texts, Y).predict(texts).shape == (3, 2)
    assert not hasattr(Passing().fit(texts, Y), "n_features_in_")


def test_a_bad_value_is_named_by_its_column():
    frame = pd.DataFrame(X, columns=["age", "height"])
    frame.loc[1, "height"] = np.inf
    with pytest.raises(InputError, match="inf at row 1, column 'height'"):
        Prior().fit(frame, Y)


def test_labels_are_needed():
    with pytest.raises(InputError, match="requires y to be passed, but the target y is None"):
        Prior().fit(X, None)


def test_what_cannot_be_offered_is_not_there():
    assert not hasattr(Silent(), "predict_proba")
    assert hasattr(clone(Prior()), "predict_proba")


def test_scikit_learn_is_told_what_is_taken():
    tags = get_tags(Prior())
    assert tags.classifier_tags.multi_label
    assert tags.input_tags.sparse
    assert not tags.input_tags.string
    assert get_tags(Passing()).input_tags.string


def test_columns_are_put_beside_features():
    more = np.array([[7.0], [8.0], [9.0]])
    np.testing.assert_array_equal(append_columns(X, more), np.hstack([X, more]))
    for form in (sp.csr_matrix, sp.csr_array):
        both = append_columns(form(X), more)
        assert both.format == "csr"
        np.testing.assert_array_equal(both.toarray(), np.hstack([X, more]))
    assert append_columns(X, more[:, :0]) is X
