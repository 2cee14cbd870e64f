"""Kinds of shift by name, and the size of samples."""

from __future__ import annotations

import numpy as np
import pytest

from prevalens.errors import InputError, PrevalensWarning
from prevalens.model.evaluate import protocols_of, sample_size

NAMES = ["ml-app", "natural", "label-tilt", "labelset-weights", "covariate-tilt"]


def test_every_name_draws_what_is_asked_for() -> None:
    rng = np.random.default_rng(0)
    Y, X = (rng.random((300, 4)) < 0.3).astype(np.int8), rng.normal(size=(300, 3))
    for name, protocol in protocols_of(NAMES, size=20, n_samples=40).items():
        samples = protocol.with_items(X).draw(Y, 0)
        assert len(samples) == 40, name
        assert set(samples.sizes.tolist()) == {20}


def test_names_keep_their_order_and_stand_once() -> None:
    chosen = protocols_of(" label-tilt, ml-app,label-tilt", size=5, n_samples=3)
    assert list(chosen) == ["label-tilt", "ml-app"]


@pytest.mark.parametrize(("other", "name"), [("uniform", "natural"), ("tilt", "label-tilt")])
def test_the_other_name_of_a_shift_is_accepted_with_a_note(other: str, name: str) -> None:
    with pytest.warns(PrevalensWarning, match=f"'{other}' is called '{name}'"):
        assert list(protocols_of(f"{other},{name}", size=5, n_samples=3)) == [name]


@pytest.mark.parametrize(
    ("names", "sentence"),
    [("drift", "There is no protocol 'drift'"), (" , ", "Name at least one protocol")],
)
def test_what_is_no_shift_is_refused(names: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        protocols_of(names, size=5, n_samples=3)


def test_the_size_follows_the_number_of_items() -> None:
    assert [sample_size(n, None) for n in (30, 150, 300, 5000)] == [10, 50, 100, 100]
    assert sample_size(60, 25) == 25
    with pytest.raises(InputError, match="29 labelled items are too few"):
        sample_size(29, None)
    with pytest.raises(InputError, match="Samples of 70 items cannot be drawn from 60"):
        sample_size(60, 70)
