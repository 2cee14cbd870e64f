from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from prevalens.classifiers import CrossFit, Forest, PerLabel
from prevalens.datasets import synthetic
from prevalens.selection.members import Budget, Member, Trainer, scores_of


@pytest.fixture(scope="module")
def data():
    return synthetic(n_train=160, n_labels=3, random_state=2).train


def trainer(data, seconds=600.0, tell=lambda _: None):
    divisions = CrossFit(2, random_state=0).divide(data.Y)
    return Trainer(data.X, data.Y, divisions, Budget(seconds), 0, tell)


def test_settings_are_scored_out_of_fold_and_the_default_is_trained(data):
    one = trainer(data)
    members = one.linear()
    assert [member.name for member in members if member.trained] == ["lr"]
    assert sum(member.weighted for member in members) == 3
    rest, held = one.divisions[0]
    for member in members:
        alone = PerLabel(C=member.classifier.C, class_weight=member.classifier.class_weight)
        expected = alone.fit(data.X[rest], data.Y[rest]).predict_proba(data.X[held])
        np.testing.assert_allclose(member.scores[held], expected, atol=2e-3)


@pytest.mark.parametrize(
    ("seconds", "n_settings", "note"),
    [(600.0, 7, None), (4.0, 4, "balanced classes"), (0.5, 1, "Only one strength")],
)
def test_less_time_means_fewer_settings_and_a_note(data, seconds, n_settings, note):
    one = trainer(data, seconds)
    # 2 folds x settings / 2 seconds, of which 0.4 of the budget may be planned.
    assert len(one._settings(0.3)) == n_settings
    assert [note in told for told in one.budget.notes] == ([True] if note else [])


def test_forests_are_left_out_where_few_trees_are_affordable(data):
    one = trainer(data, 1e-6)
    assert one.trees() == []
    assert [note.split(" was left out")[0] for note in one.budget.notes] == ["forest", "extratrees"]


def test_extra_trees_are_for_dense_features(data):
    dense, sparse = trainer(data), trainer(data)
    sparse.X = sp.csr_array(data.X)
    assert [type(one.classifier).__name__ for one in dense.trees()] == ["Forest", "ExtraTrees"]
    found = sparse.trees()
    assert [type(one.classifier).__name__ for one in found] == ["Forest"]
    assert found[0].name == f"forest(n_estimators={found[0].classifier.n_estimators})"
    assert np.all((found[0].scores >= 0) & (found[0].scores <= 1))


def test_a_member_is_trained_on_all_items_only_once(data):
    one = trainer(data)
    fitted = PerLabel().fit(data.X, data.Y)
    assert one.on_all_items(Member("lr", fitted, np.empty(0), trained=True)) is fitted
    told = []
    late = trainer(data, tell=told.append)
    found = late.on_all_items(Member("forest", Forest(3, random_state=0), np.empty(0)))
    assert found.predict_proba(data.X).shape == data.Y.shape
    assert told == ["forest, all items"]


def test_weighted_members_are_evidence_but_not_counted():
    low, high = np.full((4, 2), 0.2), np.full((4, 2), 0.8)
    plain = Member("lr", PerLabel(), low)
    weighted = Member("balanced", PerLabel(class_weight="balanced"), high)
    both = scores_of([plain, weighted])
    np.testing.assert_array_equal(both.values, low)
    np.testing.assert_array_equal(both.evidence, np.hstack([low, high]))
    np.testing.assert_array_equal(scores_of([weighted]).values, high)
