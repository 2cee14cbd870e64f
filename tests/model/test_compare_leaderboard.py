"""The leaderboard: order, spread and ties, against numpy."""

from __future__ import annotations

import json

import numpy as np
import pytest

from prevalens.model.compare import Leaderboard
from prevalens.reports.trust_page import leaderboard_grid, leaderboard_page, leaderboard_sentence


def make() -> Leaderboard:
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.001, (1, 5, 2))
    base = np.array([0.05, 0.02, 0.0201, 0.04]).reshape(4, 1, 1)
    own = rng.normal(0, 0.0005, (4, 5, 2))
    return Leaderboard(
        methods=("naive", "lr+pacc", "lr+<rq>", "lr+cc"),
        protocols=("ml-app", "natural"),
        errors=base + noise + own,
        seconds=np.ones((4, 5)),
        n_items=500,
        n_labels=7,
        size=100,
        failures={"broken": "It cannot be."},
        provenance={"seed": "0"},
    )


def test_places_are_in_the_order_of_the_mean_error() -> None:
    found = make()
    places = found.places()
    means = found.errors.mean(axis=(1, 2))
    assert [place.method for place in places] == [found.methods[i] for i in np.argsort(means)]
    assert [place.rank for place in places] == [1, 2, 3, 4]
    first = places[0]
    number = found.methods.index(first.method)
    assert first.error == pytest.approx(means[number])
    assert first.spread == pytest.approx(found.errors[number].mean(axis=1).std(ddof=1))
    assert first.by_protocol["natural"] == pytest.approx(found.errors[number, :, 1].mean())
    assert found.best == first.method


def test_small_differences_are_ties_and_large_ones_are_not() -> None:
    assert [place.tied for place in make().places()] == [True, True, False, False]


def test_words_table_and_page_agree() -> None:
    found = make()
    best, second = (place.method for place in found.places()[:2])
    sentence = leaderboard_sentence(found)
    assert sentence.startswith(f"{best} has the smallest error")
    assert f"{second} cannot be distinguished from it" in sentence
    grid = leaderboard_grid(found)
    assert [line.name for line in grid.lines()] == [place.method for place in found.places()]
    assert any("broken could not be trained: It cannot be." in note for note in grid.notes)
    page = leaderboard_page(found)
    assert "lr+&lt;rq&gt;" in page
    assert "<rq>" not in page


def test_it_shows_itself_in_notebooks() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    found = make()
    names = [place.method for place in found.places()]
    assert [text.get_text() for text in found.plot().get_yticklabels()] == names
    assert found.plot("altair").to_dict()["layer"]
    assert "lr+&lt;rq&gt;" in found._repr_html_()
    assert found.to_frame()["method"].to_list() == names
    assert json.loads(json.dumps(found.to_dict()))["places"][0]["rank"] == 1
