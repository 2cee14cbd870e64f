from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from prevalens import Quantifier, parse
from prevalens.aggregators import PCC, ScenarioMixture
from prevalens.datasets import synthetic
from prevalens.protocols import MLAPP
from prevalens.selection.automatic import Candidate, _best, _Tried, choose
from prevalens.selection.members import Member
from prevalens.validation import InputError


@pytest.fixture(scope="module")
def data():
    return synthetic(n_train=240, n_test=300, n_labels=3, random_state=1)


@pytest.fixture(scope="module")
def fitted(data):
    return Quantifier().fit(data.train.X, data.train.Y, labels=["a", "b", "c"])


def test_the_best_candidate_is_chosen_and_all_are_told(fitted):
    names = [one.name for one in fitted.choice_.candidates]
    assert len(names) == len(set(names)) == 15
    assert "naive" in names
    mixtures = [one.loss for one in fitted.choice_.candidates if one.name.endswith("mixture")]
    assert fitted.choice_.candidates[0].loss <= min(mixtures) * 1.005
    assert fitted.choice_.name in fitted.choice_.table()
    # Each name may be given to other commands.
    assert [parse(name).name for name in names] == names


def _tried(name, loss, members, aggregator=None):
    group = [Member(f"m{number}", None, np.zeros((1, 1))) for number in range(members)]
    return _Tried(Candidate(name, loss), aggregator or ScenarioMixture(), None, group)


def test_of_mixtures_about_as_good_the_richest_is_taken():
    tried = [_tried("one", 0.500, 1), _tried("three", 0.502, 3), _tried("five", 0.503, 5)]
    assert _best(tried, 0.05).candidate.name == "three"


def test_counting_must_be_clearly_better_and_more_so_in_small_rehearsals():
    tried = [_tried("mixture", 0.500, 1), _tried("counting", 0.470, 1, PCC())]
    assert _best(tried, 0.05).candidate.name == "counting"
    assert _best(tried, 0.25).candidate.name == "mixture"


def test_it_estimates_moved_samples_better_than_the_training_prevalence(data, fitted):
    samples = MLAPP(more_than=300).draw(data.test.Y, 0)
    true = samples.mean(data.test.Y)
    estimated = fitted.quantify_many(data.test.X, samples).point
    naive = np.abs(true - fitted.prevalence_).mean()
    assert np.abs(true - estimated).mean() < 0.7 * naive


def test_it_has_intervals(data, fitted):
    found = fitted.quantify(data.test.X, interval=0.9)
    assert np.all((found.lower <= found.point) & (found.point <= found.upper))


def test_the_same_items_give_the_same_choice(data, fitted):
    again = clone(fitted).fit(data.train.X, data.train.Y)
    assert again.choice_.name == fitted.choice_.name
    np.testing.assert_array_equal(again.quantify(data.test.X), fitted.quantify(data.test.X))


def test_little_time_leaves_things_out_and_says_so(data):
    choice = choose(data.train.X, data.train.Y, time_budget=0.01)
    assert len(choice.notes) == 3
    assert all(one.name.startswith(("lr+", "naive")) for one in choice.candidates)


def test_few_items_are_answered_by_the_mixture():
    data = synthetic(n_train=20, n_test=30, n_labels=2, random_state=0)
    quantifier = Quantifier().fit(data.train.X, data.train.Y)
    assert isinstance(quantifier.aggregator_, ScenarioMixture)
    assert quantifier.quantify(data.test.X).shape == (2,)


def test_texts_are_taken_as_they_are():
    rng = np.random.default_rng(0)
    Y = (rng.random((120, 2)) < 0.4).astype(int)
    words = np.array(["refund", "login"])
    texts = [" ".join([*words[row == 1], "please", str(i % 7)]) for i, row in enumerate(Y)]
    quantifier = Quantifier(time_budget=30).fit(texts, Y)
    found = quantifier.quantify([text for text, row in zip(texts, Y, strict=True) if row[0]])
    assert found.point[0] > 0.9


def test_its_name_can_be_parsed():
    assert parse("auto").name == Quantifier().name == "auto"
    assert parse("auto(time_budget=20)").time_budget == 20
    assert parse("auto(time_budget=20)").name == "auto(time_budget=20)"


def test_no_time_is_refused(data):
    with pytest.raises(InputError, match="time_budget must be above 0"):
        Quantifier(time_budget=0).fit(data.train.X, data.train.Y)


def test_a_single_item_is_refused():
    with pytest.raises(InputError, match="too few"):
        Quantifier().fit([[1.0]], [[1]])
