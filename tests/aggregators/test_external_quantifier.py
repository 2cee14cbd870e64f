from __future__ import annotations

import numpy as np
import pytest

from prevalens.aggregators.counting import PCC
from prevalens.aggregators.external import (
    ExternalQuantifier,
    QuantifierLike,
    QuapyPerLabel,
    as_aggregator,
)
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.validation import InputError


class MeanLength:
    """Estimates from texts: the share of items at least as long as the label's shortest."""

    group = "BC+BA"

    def fit(self, X, Y):
        lengths = np.array([len(text) for text in X])
        self.shortest = [lengths[y == 1].min() for y in np.asarray(Y).T]
        return self

    def quantify(self, X):
        return [np.mean([len(text) >= limit for text in X]) for limit in self.shortest]


class InOneGo(MeanLength):
    asked = 0

    def quantify_many(self, X, samples):
        self.asked += 1
        return np.array([self.quantify([X[i] for i in rows]) for rows in samples])


TEXTS = ["a", "bb", "ccc", "dddd"]
Y = np.array([[0, 0], [0, 1], [1, 1], [1, 1]])
SAMPLES = Samples.from_indices([[0, 1], [2, 2, 3], [1]], n_items=4)
EXPECTED = [[0.0, 0.5], [1.0, 1.0], [0.0, 1.0]]


@pytest.mark.parametrize("items", [TEXTS, np.array(TEXTS, dtype=object)])
def test_one_question_per_sample(items):
    scores = Scores(items, kind="features")
    external = ExternalQuantifier(MeanLength()).fit(scores, Y)
    np.testing.assert_array_equal(external.aggregate(scores, SAMPLES), EXPECTED)


def test_all_samples_in_one_question_where_the_quantifier_can():
    scores = Scores(TEXTS, kind="features")
    external = ExternalQuantifier(InOneGo()).fit(scores, Y)
    np.testing.assert_array_equal(external.aggregate(scores, SAMPLES), EXPECTED)
    assert external.quantifier_.asked == 1


def test_the_quantifier_handed_in_is_not_fitted():
    original = MeanLength()
    ExternalQuantifier(original).fit(Scores(TEXTS, kind="features"), Y)
    assert not hasattr(original, "shortest")


def test_the_group_says_whether_labels_inform_each_other():
    assert not ExternalQuantifier(MeanLength()).joint
    joint = MeanLength()
    joint.group = "BC+MLA"
    assert ExternalQuantifier(joint).joint
    del MeanLength.group
    try:
        assert ExternalQuantifier(MeanLength()).joint
    finally:
        MeanLength.group = "BC+BA"


def test_what_is_like_a_quantifier():
    assert isinstance(MeanLength(), QuantifierLike)
    assert not isinstance(object(), QuantifierLike)
    with pytest.raises(InputError, match="needs the methods fit"):
        ExternalQuantifier(object()).fit(Scores(TEXTS, kind="features"), Y)


def test_a_wrong_number_of_answers_is_named():
    class Short(MeanLength):
        def quantify(self, X):
            return [0.5]

    scores = Scores(TEXTS, kind="features")
    external = ExternalQuantifier(Short()).fit(scores, Y)
    with pytest.raises(InputError, match=r"Short answered with shape \(3, 1\) for 3 samples of 2"):
        external.aggregate(scores, SAMPLES)


def test_no_samples():
    scores = Scores(TEXTS, kind="features")
    none = Samples(np.empty(0, dtype=int), [0], n_items=4)
    assert ExternalQuantifier(MeanLength()).fit(scores, Y).aggregate(scores, none).shape == (0, 2)


def test_anything_as_an_aggregator():
    assert isinstance(as_aggregator(None), PCC)
    external = as_aggregator(MeanLength())
    assert isinstance(external, ExternalQuantifier)
    assert as_aggregator(external) is external
    quapy = pytest.importorskip("quapy")
    assert isinstance(as_aggregator(quapy.method.aggregative.CC()), QuapyPerLabel)
