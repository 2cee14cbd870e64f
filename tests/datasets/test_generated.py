from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.multiclass import OneVsRestClassifier

from prevalens.datasets import text_pipeline
from prevalens.datasets.generated import synthetic
from prevalens.validation import InputError


def test_same_seed_same_data() -> None:
    one, two = synthetic(200, 100, random_state=3), synthetic(200, 100, random_state=3)
    np.testing.assert_array_equal(one.train.X, two.train.X)
    np.testing.assert_array_equal(one.test.Y, two.test.Y)
    assert one.sha == two.sha != synthetic(200, 100, random_state=4).sha


@pytest.mark.parametrize("kind", ["numeric", "text"])
def test_shift_moves_the_test_part_only(kind: Any) -> None:
    still, moved = synthetic(300, 300, kind=kind), synthetic(300, 300, kind=kind, shift=1.0)
    assert np.array_equal(still.train.Y, moved.train.Y)
    assert np.array_equal(still.train.X, moved.train.X)
    assert not np.array_equal(still.test.Y, moved.test.Y)


def test_more_shift_is_further_away_and_none_is_none() -> None:
    away = []
    for shift in (0.0, 0.5, 1.0, 2.0):
        data = synthetic(4000, 4000, shift=shift)
        away.append(float(abs(data.test.prevalence - data.train.prevalence).mean()))
    assert away == sorted(away)
    assert away[0] < 0.015
    assert away[2] > 4 * away[0]


def test_every_second_label_goes_up() -> None:
    data = synthetic(20_000, 20_000, shift=1.0, n_features=1)
    odds = [p / (1 - p) for p in (data.train.prevalence, data.test.prevalence)]
    factors = odds[1] / odds[0]
    assert (factors[1::2] > 1.2).all()
    assert np.median(factors[0::2]) < 1


def test_prevalences_follow_a_power_law_and_labels_are_correlated() -> None:
    data = synthetic(20_000, 1, n_features=1)
    expected = 0.45 * np.arange(1, 13) ** -0.9
    np.testing.assert_allclose(data.train.prevalence, expected, atol=0.01)
    off_diagonal = data.train.label_correlation()[~np.eye(12, dtype=bool)]
    assert off_diagonal.max() > 0.3
    assert off_diagonal.min() < -0.05


def test_given_the_labels_items_do_not_shift() -> None:
    still, moved = synthetic(1, 40_000, n_features=6), synthetic(1, 40_000, n_features=6, shift=1.5)
    # The same labelset in both: the mean item must agree up to sampling error.
    for pattern in ([0, 1], [1, 0]):
        rows = [
            one.test.X[(one.test.Y[:, :2] == pattern).all(axis=1) & (one.test.Y[:, 2:].sum(1) == 0)]
            for one in (still, moved)
        ]
        assert min(map(len, rows)) > 100
        means, errors = zip(
            *((x.mean(axis=0), x.std(axis=0) / np.sqrt(len(x))) for x in rows), strict=True
        )
        z = (means[0] - means[1]) / np.hypot(*errors)
        assert np.abs(z).max() < 5


@pytest.mark.parametrize("kind", ["numeric", "text"])
def test_counting_is_learnable_and_biased_under_shift(kind: Any) -> None:
    errors = {}
    for shift in (0.0, 1.5):
        data = synthetic(kind=kind, shift=shift)
        train, test = data.train.X, data.test.X
        if kind == "text":
            words = text_pipeline().fit(train)
            train, test = words.transform(train), words.transform(test)
        model = OneVsRestClassifier(LogisticRegression(max_iter=1000)).fit(train, data.train.Y)
        posteriors = model.predict_proba(test)
        assert 0.8 < roc_auc_score(data.test.Y, posteriors) < 0.97
        true = data.test.prevalence
        errors[shift] = [
            float(abs(estimate - true).mean())
            for estimate in (posteriors.mean(axis=0), data.train.prevalence)
        ]
    pcc, naive = errors[1.5]
    assert errors[0.0][0] < 0.015
    assert pcc > 4 * errors[0.0][0]
    assert pcc < naive


def test_months_drift_away() -> None:
    data = synthetic(2000, 6000, periods=6, shift=1.5)
    assert data.test_times is not None
    assert data.train_times is None
    months, sizes = np.unique(data.test_times, return_counts=True)
    assert len(months) == 6
    assert sizes.tolist() == [1000] * 6
    assert (np.diff(data.test_times) >= np.timedelta64(0)).all()
    away = [
        abs(data.test.Y[data.test_times == month].mean(axis=0) - data.train.prevalence).mean()
        for month in months
    ]
    assert away[0] < 0.02 < away[3] < away[5]


@settings(max_examples=25)
@given(
    n_train=st.integers(1, 30),
    n_test=st.integers(1, 30),
    n_labels=st.integers(1, 40),
    n_features=st.integers(1, 10),
    kind=st.sampled_from(["numeric", "text"]),
    shift=st.floats(-3, 3),
    signal=st.floats(0, 2),
)
def test_any_sizes(
    n_train: int,
    n_test: int,
    n_labels: int,
    n_features: int,
    kind: Any,
    shift: float,
    signal: float,
) -> None:
    data = synthetic(
        n_train,
        n_test,
        n_labels=n_labels,
        n_features=n_features,
        kind=kind,
        shift=shift,
        signal=signal,
    )
    assert data.train.Y.shape == (n_train, n_labels)
    assert data.test.Y.shape == (n_test, n_labels)
    assert data.train.labels == data.test.labels
    assert data.train.n_features == (n_features if kind == "numeric" else None)


def test_texts_are_made_of_words() -> None:
    data = synthetic(50, 1, kind="text")
    assert data.name == "synthetic_text"
    assert all(len(text.split()) >= 6 for text in data.train.X)
    assert data.train.labels[:2] == ("billing", "login")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_labels": 0}, "n_labels must be at least 1"),
        ({"kind": "image"}, "kind must be one of 'numeric', 'text'"),
        ({"n_test": 3, "periods": 4}, "3 test items cannot fill 4 periods"),
        ({"random_state": "x"}, "random_state must be a whole number"),
        ({"shift": float("nan")}, "shift must be a finite number"),
        ({"signal": -1.0}, "signal must be a finite number, at least 0"),
    ],
)
def test_wrong_arguments_are_one_sentence(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        synthetic(**options)


def test_languages_have_features_of_their_own():
    data = synthetic(300, 100, n_labels=3, n_features=5, languages=2)
    assert data.train.features[:2] == ("language", "x0_0")
    X = data.train.X
    assert X.shape == (300, 11)
    assert np.unique(X[:, 0]).tolist() == [0, 1]
    for language, columns in ((0, slice(1, 6)), (1, slice(6, 11))):
        own = X[:, 0] == language
        assert 100 < own.sum() < 200
        assert np.all(X[own, columns] != 0)
        assert np.all(X[~own, columns] == 0)
    # Labels are those of one language alone.
    np.testing.assert_array_equal(
        data.train.Y, synthetic(300, 100, n_labels=3, n_features=5).train.Y
    )
    with pytest.raises(InputError, match="kind='text'"):
        synthetic(kind="text", languages=2)
    with pytest.raises(InputError, match="languages"):
        synthetic(languages=0)
