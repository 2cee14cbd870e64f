"""Shares of label sets that are drawn uniformly from the simplex."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from prevalens.protocols import DirichletLabelsets
from prevalens.protocols.simplex import _classes, _numbers
from prevalens.validation import InputError

#: Four label sets of very different frequency.
SETS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
Y = np.repeat(SETS, [3000, 600, 500, 400], axis=0)


def shares(protocol: DirichletLabelsets, labels: np.ndarray = Y) -> np.ndarray:
    """Share of each of the four label sets in every sample."""
    code = labels @ [2, 1]
    return protocol.draw(labels, 0).mean(np.eye(4)[code])


def test_points_are_uniform_on_the_simplex() -> None:
    """A share is then distributed as Beta(1, k - 1), and mean and variance are known."""
    found = shares(DirichletLabelsets(size=300, n_samples=3000))
    np.testing.assert_allclose(found.mean(axis=0), 0.25, atol=0.015)
    np.testing.assert_allclose(found.std(axis=0), np.sqrt(3 / 80), atol=0.01)
    assert kstest(found[:, 3], "beta", (1, 3)).statistic < 0.03


@pytest.mark.parametrize(("concentration", "spread"), [(0.1, 0.366), (10, 0.068)])
def test_the_concentration_decides_how_far_shares_move(concentration, spread) -> None:
    found = shares(DirichletLabelsets(300, 2000, concentration))
    expected = np.sqrt(0.25 * 0.75 / (4 * concentration + 1) + 0.1875 / 300)
    assert expected == pytest.approx(spread, abs=0.005)
    np.testing.assert_allclose(found.std(axis=0), expected, atol=0.02)


def test_other_label_sets_are_one_class() -> None:
    found = shares(DirichletLabelsets(200, 2000, n_sets=1))
    np.testing.assert_allclose(found[:, 0].mean(), 0.5, atol=0.02)
    # Within the class, items keep their frequencies.
    rest = found[:, 1:].mean(axis=0)
    np.testing.assert_allclose(rest / rest.sum(), [0.4, 1 / 3, 4 / 15], atol=0.02)


def test_classes_are_the_most_frequent_label_sets() -> None:
    labels = np.repeat(SETS, [2, 5, 1, 3], axis=0)
    found = _classes(labels, 2)
    assert [members.tolist() for members in found] == [[2, 3, 4, 5, 6], [8, 9, 10], [0, 1, 7]]
    assert len(_classes(labels, 4)) == len(_classes(labels, 9)) == 4


def test_what_a_class_lacks_comes_from_the_others() -> None:
    labels = np.repeat(SETS, [40, 2, 2, 2], axis=0)
    found = shares(DirichletLabelsets(size=30, n_samples=500), labels) * 30
    assert found[:, 1:].max() == 2
    np.testing.assert_allclose(found.sum(axis=1), 30)
    whole = DirichletLabelsets(size=46, n_samples=5).draw(labels, 0)
    assert np.all(np.sort(whole.indices, axis=1) == np.arange(46))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"concentration": 0}, r"concentration must be a number, 0\.01 or more; got 0"),
        ({"n_sets": 0}, "n_sets must be at least 1; got 0"),
        ({"size": 10_000}, "cannot be drawn without replacement"),
    ],
)
def test_strange_parameters_are_named(options: dict, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        DirichletLabelsets(**options).draw(Y, 0)


def test_classes_without_a_share_fill_up_where_the_others_have_too_few_items() -> None:
    shares, available = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), np.array([3, 10, 4])
    counts = _numbers(shares, available, 6, np.random.default_rng(0))
    assert counts.sum(axis=1).tolist() == [6, 6]
    assert counts[0, 0] == 3
    assert counts[1, 2] == 4
    assert np.all(counts <= available)
