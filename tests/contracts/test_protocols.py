"""What every protocol promises, checked on all of them."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from prevalens import protocols
from prevalens.protocols import (
    MLAPP,
    ChronologicalWindows,
    CovariateTilt,
    DirichletLabelsets,
    LabelsetWeights,
    LabelTilt,
    Natural,
    Periods,
    Protocol,
    TwoLabels,
)
from prevalens.samples import Samples

N_ITEMS, SIZE = 80, 12
RNG = np.random.default_rng(7)
X = RNG.normal(size=(N_ITEMS, 3))
TIMES = RNG.permutation(N_ITEMS)

#: One of each, all for pools of `N_ITEMS` items.
ALL: list[Protocol] = [
    MLAPP(size=SIZE, grid=13, repeats=2),
    MLAPP(size=SIZE, grid=13, more_than=150, max_samples=160),
    Natural(size=SIZE, n_samples=40),
    TwoLabels(size=SIZE, grid=4),
    Natural(size=SIZE, n_samples=40, groups=TIMES // 5),
    DirichletLabelsets(size=SIZE, n_samples=40),
    DirichletLabelsets(size=SIZE, n_samples=40, concentration=0.1, n_sets=2),
    LabelsetWeights(size=SIZE, n_samples=40),
    LabelTilt(size=SIZE, n_samples=40),
    CovariateTilt(X, size=SIZE, n_samples=40),
    ChronologicalWindows(TIMES, size=SIZE, step=5),
    Periods(TIMES // 10),
]
EVERY = pytest.mark.parametrize("protocol", ALL, ids=lambda protocol: protocol.name)

#: Those that draw by chance; the others read the order of time.
RANDOM = (
    MLAPP,
    Natural,
    TwoLabels,
    LabelsetWeights,
    DirichletLabelsets,
    LabelTilt,
    CovariateTilt,
)


def labels(seed: int, n_labels: int = 4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.random((N_ITEMS, n_labels)) < rng.uniform(0.05, 0.9, n_labels)).astype(np.int8)


def same(left: Samples, right: Samples) -> bool:
    return (
        np.array_equal(left.flat, right.flat)
        and np.array_equal(left.offsets, right.offsets)
        and np.array_equal(left.targets, right.targets)
        and np.array_equal(left.prevalences, right.prevalences, equal_nan=True)
    )


def test_none_is_forgotten() -> None:
    public = {
        cls
        for cls in vars(protocols).values()
        if inspect.isclass(cls) and issubclass(cls, Protocol) and cls is not Protocol
    }
    assert {type(protocol) for protocol in ALL} == public


@EVERY
@given(seed=st.integers(0, 30), n_labels=st.integers(2, 5))
def test_draws_valid_samples_without_repeats(protocol: Protocol, seed: int, n_labels: int) -> None:
    Y = labels(seed, n_labels)
    samples = protocol.draw(Y, seed)
    assert samples.n_items == N_ITEMS
    assert len(samples) == protocol.count(Y) > 0
    assert samples.flat.min() >= 0
    assert samples.flat.max() < N_ITEMS
    assert all(len(np.unique(bag)) == len(bag) for bag in samples)
    assert np.all(samples.sizes == SIZE) or isinstance(protocol, Periods)


@EVERY
@given(seed=st.integers(0, 30))
def test_steered_labels_are_where_they_were_steered_to(protocol: Protocol, seed: int) -> None:
    Y = labels(seed)
    samples = protocol.draw(Y, seed)
    steered = samples.targets >= 0
    assert np.array_equal(steered, ~np.isnan(samples.prevalences))
    assert np.all(steered) == isinstance(protocol, (MLAPP, TwoLabels))
    positives = np.take_along_axis(samples.mean(Y), np.maximum(samples.targets, 0), axis=1) * SIZE
    wanted = np.ceil(np.round(samples.prevalences * SIZE, 9))
    np.testing.assert_allclose(positives[steered], wanted[steered], atol=1e-9)


@EVERY
def test_the_seed_decides(protocol: Protocol) -> None:
    Y = labels(1)
    first = protocol.draw(Y, 5)
    assert same(first, protocol.draw(Y, 5))
    assert same(first, protocol.draw(Y, np.random.default_rng(5)))
    assert same(first, clone(protocol).draw(Y, 5))
    assert same(first, protocol.draw(Y, 6)) != isinstance(protocol, RANDOM)


@EVERY
def test_a_generator_moves_on(protocol: Protocol) -> None:
    Y, rng = labels(1), np.random.default_rng(5)
    assert same(protocol.draw(Y, rng), protocol.draw(Y, rng)) != isinstance(protocol, RANDOM)


@EVERY
def test_all_forms_of_labels_give_the_same_samples(protocol: Protocol) -> None:
    Y = labels(2)
    first = protocol.draw(Y, 0)
    for form in (Y.astype(bool), Y.astype(float), sp.csr_matrix(Y), sp.csc_array(Y), Y.tolist()):
        assert same(first, protocol.draw(form, 0))


@EVERY
def test_is_a_value_with_a_name(protocol: Protocol) -> None:
    assert protocol.name == protocol.name.lower()
    assert " " not in protocol.name
    parameters = protocol.get_params(deep=False)
    assert set(parameters) == set(inspect.signature(type(protocol)).parameters)
    assert all(getattr(protocol, key) is value for key, value in parameters.items())
    assert repr(protocol).startswith(type(protocol).__name__)


def test_names_are_distinct() -> None:
    names = {type(protocol): protocol.name for protocol in ALL}
    assert len(set(names.values())) == len(names)


@EVERY
def test_drawing_changes_neither_labels_nor_protocol(protocol: Protocol) -> None:
    Y = labels(3)
    before, state = Y.copy(), dict(vars(protocol))
    protocol.draw(Y, 0)
    assert np.array_equal(Y, before)
    assert set(vars(protocol)) == set(state)
    assert all(vars(protocol)[key] is value for key, value in state.items())
