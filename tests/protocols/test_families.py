"""One list of families of shifts: names, aliases and protocols."""

from __future__ import annotations

import numpy as np
import pytest

from prevalens.protocols import MLAPP, CovariateTilt, LabelTilt, Natural, TwoLabels
from prevalens.protocols.families import (
    ALIASES,
    FAMILIES,
    draw_family,
    family_name,
    family_protocol,
)
from prevalens.validation import InputError, PrevalensWarning

Y = (np.random.default_rng(0).random((200, 4)) < 0.4).astype(np.int8)


def test_a_name_is_the_name_of_its_protocol_and_no_alias() -> None:
    assert all(protocol.name == name for name, protocol in FAMILIES.items())
    assert not set(ALIASES) & set(FAMILIES)
    assert set(ALIASES.values()) <= set(FAMILIES)


@pytest.mark.parametrize(("alias", "name"), [("uniform", "natural"), ("tilt", "label-tilt")])
def test_another_name_is_accepted_with_a_note(alias: str, name: str) -> None:
    with pytest.warns(PrevalensWarning, match=f"The shift '{alias}' is called '{name}'"):
        assert family_name(alias) == name


def test_an_unknown_name_is_told_what_there_is() -> None:
    with pytest.raises(InputError, match="no protocol 'natral'; there are ml-app, natural"):
        family_name("natral")


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("ml-app", {"grid": 21}, MLAPP(20, 21, more_than=39, max_samples=40)),
        ("natural", {}, Natural(20, 40)),
        ("label-tilt", {"scale": 2.5}, LabelTilt(20, 40, scale=2.5)),
        ("covariate-tilt", {}, CovariateTilt(None, 20, n_samples=40)),
        ("two-labels", {}, TwoLabels(20, max_samples=40)),
    ],
)
def test_protocols_are_made_for_a_number_of_samples(name, options, expected) -> None:
    made = family_protocol(name, 20, 40, **options)
    assert type(made) is type(expected)
    assert made.get_params() == expected.get_params()


@pytest.mark.parametrize("name", ["ml-app", "natural", "label-tilt", "labelset-weights"])
def test_as_many_samples_are_drawn_as_asked_for(name: str) -> None:
    samples = draw_family(name, Y, 20, 40, np.random.default_rng(0))
    assert len(samples) == 40
    assert np.all(samples.sizes == 20)


def test_what_cannot_be_drawn_is_none() -> None:
    assert draw_family("natural", Y, 201, 5, np.random.default_rng(0)) is None


def test_time_cannot_be_drawn() -> None:
    with pytest.raises(InputError, match="goes by time"):
        family_protocol("periods", 10, 5)
