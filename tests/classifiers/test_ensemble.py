from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prevalens.aggregators import PCC, ScenarioMixture
from prevalens.catalogue import parse
from prevalens.classifiers import ClassifierEnsemble, CrossFit, Forest, PerLabel, response
from prevalens.classifiers.ensemble import is_weighted, mean_posterior
from prevalens.datasets import synthetic
from prevalens.quantifier import Quantifier
from prevalens.validation import InputError


@pytest.fixture(scope="module")
def data():
    return synthetic(n_train=200, n_test=100, n_labels=3, random_state=0)


def make():
    return ClassifierEnsemble(PerLabel(), Forest(10, random_state=0))


def test_posteriors_are_the_mean_of_the_members(data):
    panel = make().fit(data.train.X, data.train.Y)
    alone = [
        response(member, data.test.X, "posteriors", 3).values
        for member in (
            PerLabel().fit(data.train.X, data.train.Y),
            Forest(10, random_state=0).fit(data.train.X, data.train.Y),
        )
    ]
    np.testing.assert_allclose(panel.predict_proba(data.test.X), np.mean(alone, axis=0))
    np.testing.assert_allclose(panel.member_posteriors(data.test.X), np.hstack(alone))


def test_views_survive_cross_fitting(data):
    labelled = CrossFit(3).fit(make(), data.train.X, data.train.Y)
    scores = labelled.scores
    assert scores.members.shape == (200, 6)
    stacked = scores.members.reshape(200, 2, 3)
    np.testing.assert_allclose(stacked.mean(axis=1), scores.values)
    np.testing.assert_allclose(scores.labels([1]).members, stacked[:, :, 1])


def test_any_aggregator_reads_a_panel(data):
    for aggregator in (PCC(), ScenarioMixture(0.1, 1.0)):
        quantifier = Quantifier(make(), aggregator).fit(data.train.X, data.train.Y)
        assert quantifier.quantify(data.test.X).shape == (3,)


def test_members_with_class_weights_are_read_but_not_averaged(data):
    members = [PerLabel(), PerLabel(class_weight="balanced"), Forest(10, random_state=0)]
    panel = ClassifierEnsemble(members[0], members[1], more=members[2:]).fit(
        data.train.X, data.train.Y
    )
    alone = [member.predict_proba(data.test.X) for member in panel.members_]
    scores = response(make_pipeline(panel), data.test.X, "posteriors", 3)
    np.testing.assert_allclose(scores.members, np.hstack(alone))
    for values in (scores.values, panel.predict_proba(data.test.X)):
        np.testing.assert_allclose(values, (alone[0] + alone[2]) / 2)
    assert not np.allclose(alone[0], alone[1])


def test_a_panel_of_weighted_members_alone_averages_them():
    members = np.arange(12.0).reshape(2, 2, 3)
    np.testing.assert_array_equal(mean_posterior(members, [False, False]), members.mean(axis=1))
    np.testing.assert_array_equal(mean_posterior(members, [False, True]), members[:, 1])


def test_class_weights_are_found_inside_pipelines_and_wrappers():
    weighted = LogisticRegression(class_weight="balanced")
    for inside in (weighted, OneVsRestClassifier(weighted), make_pipeline(weighted)):
        assert is_weighted(inside)
        assert is_weighted(make_pipeline(StandardScaler(), inside))
    for plain in (PerLabel(), Forest(), OneVsRestClassifier(LogisticRegression()), object()):
        assert not is_weighted(plain)


def test_the_catalogue_knows_it():
    several = "panel(lr,lr(class_weight=balanced),lr(C=10),forest)+mixture"
    assert parse(several).name == several
    assert len(parse(several).classifier.members()) == 4
    assert parse("panel+mixture").name == "panel+mixture"
    with pytest.raises(InputError, match="panel has no parameter 'size'"):
        parse("panel(lr,size=3)+mixture")

    quantifier = parse("panel(lr(C=10),forest)+mixture")
    assert quantifier.name == "panel(lr(C=10),forest)+mixture"
    assert quantifier.group == "MLC+MLA"
    assert not ClassifierEnsemble(PerLabel(), PerLabel(C=10)).joint
