from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from prevalens import Quantifier, parse
from prevalens.aggregators import PCC, ScenarioMixture
from prevalens.classifiers import CrossFit, Forest, PerLabel
from prevalens.datasets import synthetic
from prevalens.errors import PrevalensWarning
from prevalens.protocols import MLAPP
from prevalens.selection import automatic
from prevalens.selection.automatic import (
    Candidate,
    Choice,
    Member,
    Trainer,
    _best,
    _is_spoilt,
    _promising,
    _Tried,
    choose,
    scores_of,
)
from prevalens.selection.budget import Budget
from prevalens.validation import InputError


@pytest.fixture(scope="module")
def data():
    return synthetic(n_train=240, n_test=300, n_labels=3, random_state=1)


@pytest.fixture(scope="module")
def fitted(data):
    return Quantifier().fit(data.train.X, data.train.Y, labels=["a", "b", "c"])


def test_the_best_candidate_is_chosen_and_all_are_told(fitted):
    names = [candidate.name for candidate in fitted.choice_.candidates]
    assert len(names) == len(set(names)) >= 10
    assert "naive" in names
    mixtures = [
        candidate.loss
        for candidate in fitted.choice_.candidates
        if candidate.name.endswith("mixture")
    ]
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
    estimate = fitted.quantify(data.test.X, interval=0.9)
    assert np.all((estimate.lower <= estimate.point) & (estimate.point <= estimate.upper))


def test_seeds_change_the_choice_and_all_its_parts(data):
    def fitted(seed):
        return Quantifier(scheme=CrossFit(random_state=seed)).fit(data.train.X, data.train.Y)

    first, other = fitted(3), fitted(4)
    assert first.aggregator_.random_state == 3
    assert np.any(first.quantify(data.test.X).point != other.quantify(data.test.X).point)


@pytest.mark.parametrize("time_budget", [0.3, 600.0])
def test_the_clock_does_not_change_the_choice(data, monkeypatch, time_budget):
    def chosen():
        return Quantifier(time_budget=time_budget).fit(data.train.X, data.train.Y)

    calm = chosen()
    # A machine whose clock stumbles, and is never late.
    ticks = iter(np.random.default_rng(0).uniform(0, 1e-4, size=10_000).cumsum())
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)))
    stop = threading.Event()

    def load():
        while not stop.is_set():
            sum(range(1000))

    busy = threading.Thread(target=load)
    busy.start()
    try:
        loaded = chosen()
    finally:
        stop.set()
        busy.join()
    assert not loaded.choice_.cut_short
    assert loaded.choice_.candidates == calm.choice_.candidates
    assert loaded.choice_.notes == calm.choice_.notes
    ours, theirs = (each.quantify(data.test.X, interval=0.9) for each in (loaded, calm))
    for name in ("point", "lower", "upper", "band_lower", "band_upper"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


def test_a_machine_that_is_too_slow_cuts_the_choice_short_and_says_so(data, monkeypatch):
    ticks = iter(range(0, 10**9, 200))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)))
    with pytest.warns(PrevalensWarning, match="cut short after"):
        choice = choose(data.train.X, data.train.Y, time_budget=600)
    assert choice.cut_short
    assert any("the time was over" in note for note in choice.notes)


def test_a_copy_of_the_chosen_classifier_learns_other_items_with_the_same_members(few):
    choice = choose(few.X, few.Y)
    rows = np.arange(0, len(few.Y), 2)
    again = clone(choice.classifier).fit(few.X[rows], few.Y[rows])
    assert repr(again) == repr(clone(choice.classifier))
    assert again.predict_proba(few.X).shape == few.Y.shape
    same = clone(choice.classifier).fit(few.X, few.Y)
    np.testing.assert_allclose(
        same.predict_proba(few.X), choice.classifier.predict_proba(few.X), atol=1e-3
    )


def test_the_same_items_give_the_same_choice(data, fitted):
    again = clone(fitted).fit(data.train.X, data.train.Y)
    assert again.choice_.name == fitted.choice_.name
    np.testing.assert_array_equal(again.quantify(data.test.X), fitted.quantify(data.test.X))


def test_little_time_leaves_things_out_and_says_so(data):
    choice = choose(data.train.X, data.train.Y, time_budget=0.01)
    assert [note.split(" was left out")[0] for note in choice.notes] == [
        "Logistic regression of other strengths",
        "forest with 80 trees",
        "extratrees with 80 trees",
    ]
    assert not choice.cut_short
    assert all(candidate.name.startswith(("lr+", "naive")) for candidate in choice.candidates)


def test_few_items_are_answered_by_the_mixture():
    data = synthetic(n_train=20, n_test=30, n_labels=2, random_state=0)
    quantifier = Quantifier().fit(data.train.X, data.train.Y)
    assert isinstance(quantifier.aggregator_, ScenarioMixture)
    assert quantifier.quantify(data.test.X).shape == (2,)


def test_texts_are_taken_as_they_are():
    rng = np.random.default_rng(0)
    Y = (rng.random((120, 2)) < 0.4).astype(int)
    topics = np.array(["refund", "login"])
    texts = [" ".join([*topics[row == 1], "please", str(i % 7)]) for i, row in enumerate(Y)]
    quantifier = Quantifier(time_budget=30).fit(texts, Y)
    estimate = quantifier.quantify([text for text, row in zip(texts, Y, strict=True) if row[0]])
    assert estimate.point[0] > 0.9


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


def test_the_table_has_a_line_for_each_candidate_in_order():
    first = Candidate("lr+mixture", 0.5, {"ml-app": 0.4, "natural": 0.6})
    second = Candidate("naive", 1.0, {"ml-app": 1.0})
    choice = Choice(None, PCC(), (first, second), 1.5, ())
    head, *lines = choice.table().splitlines()
    assert head.split() == ["method", "all", "ml-app", "natural"]
    assert [line.split() for line in lines] == [
        ["lr+mixture", "0.500", "0.400", "0.600"],
        ["naive", "1.000", "1.000", "nan"],
    ]
    assert choice.name == "lr+mixture"


def test_notebooks_show_the_losses_of_the_candidates_that_were_tried():
    tried, left_out = Candidate("br(<A>)+pcc", 0.25), Candidate("forest+pcc", float("nan"))
    choice = Choice(None, PCC(), (tried, left_out), 1.5, ())
    assert repr(choice).splitlines() == [
        "br(<A>)+pcc, chosen in 1.5 s",
        *choice.table().splitlines(),
    ]
    shown = choice._repr_html_()
    assert "<th>br(&lt;A&gt;)+pcc</th><td>0.2500</td>" in shown
    assert "forest" not in shown
    only = Choice(None, PCC(), (left_out,), 0.0, ())._repr_html_()
    assert only.startswith("<pre>forest+pcc, chosen in 0.0 s")


@pytest.fixture(scope="module")
def few():
    return synthetic(n_train=160, n_labels=3, random_state=2).train


def trainer(data, seconds=600.0, progress=lambda _: None, *, grouped=False):
    divisions = CrossFit(2, random_state=0).divide(data.Y)
    return Trainer(data.X, data.Y, divisions, Budget(seconds), 0, progress, grouped=grouped)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_regressions_are_scored_out_of_fold(few, class_weight):
    instance = trainer(few)
    members = instance.linear([1.0, 10.0], class_weight)
    assert [member.weighted for member in members] == [class_weight is not None] * 2
    rest, held = instance.divisions[0]
    for member in members:
        alone = PerLabel(C=member.classifier.C, class_weight=class_weight)
        expected = alone.fit(few.X[rest], few.Y[rest]).predict_proba(few.X[held])
        np.testing.assert_allclose(member.scores[held], expected, atol=5e-3)


def test_forests_are_left_out_where_few_trees_are_affordable(few):
    instance = trainer(few, 1e-6)
    assert instance.trees() == []
    assert [note.split(" was left out")[0] for note in instance.budget.notes] == [
        "forest with 80 trees",
        "extratrees with 80 trees",
    ]


def test_items_that_belong_together_are_scored_by_folds(few):
    (forest, extra) = trainer(few, grouped=True).trees()
    assert forest.out_of_bag is None
    assert not extra.classifier.bootstrap
    rest, held = trainer(few).divisions[0]
    expected = clone(forest.classifier).fit(few.X[rest], few.Y[rest]).predict_proba(few.X[held])
    np.testing.assert_array_equal(forest.scores[held], expected)


def test_extra_trees_are_for_dense_features(few):
    dense, sparse = trainer(few), trainer(few)
    sparse.X = sp.csr_array(few.X)
    assert [type(member.classifier).__name__ for member in dense.trees()] == [
        "Forest",
        "ExtraTrees",
    ]
    members = sparse.trees()
    assert [type(member.classifier).__name__ for member in members] == ["Forest"]
    assert members[0].name == f"forest(n_estimators={members[0].classifier.n_estimators})"
    assert np.all((members[0].scores >= 0) & (members[0].scores <= 1))


def test_members_are_trained_on_all_items_as_if_alone(few):
    instance = trainer(few)
    members = [
        Member("one", PerLabel(C=10.0), np.empty(0)),
        Member("two", PerLabel(class_weight="balanced"), np.empty(0)),
        Member("three", Forest(3, random_state=0), np.empty(0)),
        *instance.grown([Member("four", Forest(3, random_state=0), np.empty(0))]),
        Member("five", PerLabel(), np.empty(0)),
    ]
    messages = []
    instance.progress = messages.append
    fitted = instance.on_all_items(members)
    assert fitted[3] is members[3].classifier
    assert messages == ["training the chosen classifiers on all items"]
    for member, ours in zip(members, fitted, strict=True):
        alone = clone(member.classifier).fit(few.X, few.Y)
        np.testing.assert_allclose(ours.predict_proba(few.X), alone.predict_proba(few.X), atol=1e-3)


def test_weighted_members_are_evidence_but_not_counted():
    low, high = np.full((4, 2), 0.2), np.full((4, 2), 0.8)
    plain = Member("lr", PerLabel(), low)
    weighted = Member("balanced", PerLabel(class_weight="balanced"), high)
    both = scores_of([plain, weighted])
    np.testing.assert_array_equal(both.values, low)
    np.testing.assert_array_equal(both.evidence, np.hstack([low, high]))
    np.testing.assert_array_equal(scores_of([weighted]).values, high)


def test_forests_must_lower_the_loss_by_three_percent():
    def forest(loss):
        tried = _tried("forest", loss, 1)
        return tried._replace(members=[Member("forest", Forest(), np.zeros((1, 1)))])

    lean = _tried("lean", 0.500, 1)
    assert _best([lean, forest(0.490)], 0.05).candidate.name == "lean"
    assert _best([lean, forest(0.484)], 0.05).candidate.name == "forest"
    # Counting has its handicap before forests are compared with it.
    counting = _tried("counting", 0.480, 1, PCC())
    assert _best([counting, forest(0.484)], 0.05).candidate.name == "forest"


def _of(names, loss):
    members = [
        Member(name, Forest() if name == "forest" else PerLabel(), np.zeros((1, 1)))
        for name in names.split()
    ]
    return _Tried(Candidate(names, loss), ScenarioMixture(), None, members, screened=True)


def test_ensembles_with_a_part_that_others_spoilt_are_not_tried():
    tried = [_of("lr", 0.5), _of("lr bal", 0.52), _of("lr forest", 0.49)]
    assert _is_spoilt(_of("lr bal forest", 0).members, tried)
    assert not _is_spoilt(_of("lr forest more", 0).members, tried)
    assert not _is_spoilt(_of("lr bal", 0).members, tried)


def test_screening_keeps_what_may_be_chosen():
    def kept(*tried):
        order = sorted(tried, key=lambda each: each.candidate.loss)
        return [each.candidate.name for each in _promising(order, 0.05)]

    assert kept(_of("lr", 0.5), _of("lr bal", 0.505), _of("wide", 0.52)) == ["lr", "lr bal"]
    # All trees may lower the loss of a forest by one percent more.
    assert kept(_of("lr", 0.5), _of("forest", 0.498)) == ["lr"]
    assert kept(_of("lr", 0.5), _of("forest", 0.49), _of("wide", 0.505)) == [
        "forest",
        "lr",
        "wide",
    ]
    # A forest that is clearly better needs the best without forests as a reference only.
    assert kept(_of("lr", 0.5), _of("forest", 0.45), _of("wide", 0.505)) == ["forest", "lr"]
    assert kept(_of("forest", 0.49)) == ["forest"]


def test_a_refused_forest_says_why(data, monkeypatch):
    monkeypatch.setattr(automatic, "FOREST_GAIN", 1.0)
    choice = choose(data.train.X, data.train.Y, time_budget=60)
    assert not choice.name.startswith(("forest", "extratrees"))
    better = [
        candidate
        for candidate in choice.candidates
        if candidate.loss < 0.99 * choice.candidates[0].loss
    ]
    notes = [
        candidate.note
        for candidate in better
        if "forest" in candidate.name or "extratrees" in candidate.name
    ]
    assert all("forests must lower the loss by 100%" in note for note in notes)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("FOREST_BYTES", 1000, "forest was left out: 200 trees take about"),
        ("TREE_BYTES", 1000, "forest was left out: a tree takes about 0.0 GB while it is grown"),
    ],
)
def test_forests_beyond_the_budget_of_bytes_are_left_out(few, monkeypatch, name, value, why):
    monkeypatch.setattr(automatic, name, value)
    instance = trainer(few)
    assert instance.trees() == []
    assert instance.budget.notes[0].startswith(why)
    assert [candidate.name for candidate in instance.left_out] == [
        "forest+mixture",
        "extratrees+mixture",
    ]
    choice = choose(few.X, few.Y, time_budget=20)
    assert "left out" in choice.table()


def test_a_forest_gets_as_many_trees_as_the_budget_of_bytes_allows(few, monkeypatch):
    expected = Forest(200).expected_bytes(*few.Y.shape, labels_per_item=few.Y.sum(axis=1).mean())
    monkeypatch.setattr(automatic, "FOREST_BYTES", expected // 2)
    assert 90 <= trainer(few).trees()[0].classifier.n_estimators <= 100


def test_groups_are_kept_together_by_the_choice(few):
    groups = np.arange(len(few.Y)) // 4
    choice = choose(few.X, few.Y, groups=groups, time_budget=1)
    assert all(len(np.unique(choice.folds[groups == group])) == 1 for group in np.unique(groups))


def test_an_automatic_choice_of_the_training_prevalence_has_intervals_with_width(few, monkeypatch):
    monkeypatch.setattr(automatic, "_best", lambda tried, _: tried[-1])
    quantifier = Quantifier(time_budget=1).fit(few.X, few.Y)
    assert quantifier.choice_.name == "naive"
    estimate = quantifier.quantify(few.X[:80], interval=0.9)
    assert np.all(estimate.upper - estimate.lower > 0.01)
    assert np.all(estimate.band_upper - estimate.band_lower >= estimate.upper - estimate.lower)
