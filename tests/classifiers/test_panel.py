from __future__ import annotations

import numpy as np
import pytest

from prevalens.aggregators import PCC, ScenarioMixture
from prevalens.catalogue import parse
from prevalens.classifiers import CrossFit, Forest, Panel, PerLabel, response
from prevalens.datasets import synthetic
from prevalens.quantifier import Quantifier


@pytest.fixture(scope="module")
def data():
    return synthetic(n_train=200, n_test=100, n_labels=3, seed=0)


def make():
    return Panel(PerLabel(), Forest(10, random_state=0))


def test_posteriors_are_the_mean_of_the_members(data):
    panel = make().fit(data.train.X, data.train.Y)
    alone = [
        response(one, data.test.X, "posteriors", 3).values
        for one in (
            PerLabel().fit(data.train.X, data.train.Y),
            Forest(10, random_state=0).fit(data.train.X, data.train.Y),
        )
    ]
    np.testing.assert_allclose(panel.predict_proba(data.test.X), np.mean(alone, axis=0))
    np.testing.assert_allclose(panel.views(data.test.X), np.hstack(alone))


def test_views_survive_cross_fitting(data):
    labelled = CrossFit(3).fit(make(), data.train.X, data.train.Y)
    scores = labelled.scores
    assert scores.views.shape == (200, 6)
    stacked = scores.views.reshape(200, 2, 3)
    np.testing.assert_allclose(stacked.mean(axis=1), scores.values)
    np.testing.assert_allclose(scores.labels([1]).views, stacked[:, :, 1])


def test_any_aggregator_reads_a_panel(data):
    for aggregator in (PCC(), ScenarioMixture(0.1, 1.0)):
        quantifier = Quantifier(make(), aggregator).fit(data.train.X, data.train.Y)
        assert quantifier.quantify(data.test.X).shape == (3,)


def test_the_catalogue_knows_it():
    quantifier = parse("panel(lr(C=10),forest)+mixture")
    assert quantifier.name == "panel(lr(C=10),forest)+mixture"
    assert quantifier.group == "MLC+MLA"
    assert not Panel(PerLabel(), PerLabel(C=10)).joint
