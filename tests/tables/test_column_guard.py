"""Columns that no mix of labels explains are set aside; all else passes untouched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prevalens import datasets
from prevalens.classifiers import PerLabel
from prevalens.errors import InputError, PrevalensWarning
from prevalens.model.file import read_parts, write_model
from prevalens.model.manifest import read_manifest
from prevalens.protocols import MLAPP
from prevalens.tables import column_guard as module
from prevalens.tables.column_guard import ColumnGuard, DriftWarning, guard_of
from prevalens.tables.text import TextPreparation

FORMS = [np.asarray, sp.csr_matrix, sp.csr_array]


def items(count: int, chances: Any, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels with these chances; ones and zeros and normal numbers that depend on the labels."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((count, 3)) < chances).astype(np.int8)
    ones = rng.random((count, 6)) < np.hstack([0.02 + 0.6 * Y, np.full((count, 3), 0.01)])
    numbers = rng.normal(size=(count, 3)) + 5 * Y
    return np.hstack([ones.astype(float), numbers]), Y


X, Y = items(1500, [0.2, 0.1, 0.05])
GUARD = ColumnGuard().fit(X, Y)
#: A column that one of a hundred items has.
RARE = 4


def stuck(X: np.ndarray, column: int = RARE, value: float = 1.0) -> np.ndarray:
    found = X.copy()
    found[:, column] = value
    return found


def dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)


@pytest.mark.parametrize("form", FORMS)
def test_what_has_not_drifted_is_handed_back_itself(form: Any) -> None:
    batch = form(items(200, [0.2, 0.1, 0.05], seed=1)[0])
    guard = ColumnGuard().fit(form(X), Y)
    assert guard.transform(batch) is batch
    assert guard.fit_transform(batch, Y[:200]) is batch


@given(
    st.tuples(*[st.floats(0, 1)] * 3),
    st.integers(30, 600),
    st.integers(0, 10**6),
)
def test_a_shift_of_the_labels_alone_is_never_a_drift(
    chances: tuple[float, ...], count: int, seed: int
) -> None:
    assert GUARD.adrift(items(count, chances, seed=seed)[0]).tolist() == []


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", FORMS)
def test_a_stuck_column_gets_the_mean_of_the_training_items(form: Any, dtype: type) -> None:
    batch = form(stuck(X[:100]).astype(dtype))
    before = dense(batch).copy()
    guard = ColumnGuard().fit(form(X.astype(dtype)), Y)
    with pytest.warns(DriftWarning) as caught:
        found = guard.transform(batch)
    assert (type(found), found.dtype) == (type(batch), dtype)
    np.testing.assert_allclose(
        dense(found), stuck(X[:100], value=X[:, RARE].mean()).astype(dtype), rtol=1e-6
    )
    np.testing.assert_array_equal(dense(batch), before)
    assert caught[0].message.columns == (RARE,)
    assert guard.adrift(found).tolist() == []


def test_dense_and_sparse_learn_the_same() -> None:
    other = ColumnGuard().fit(sp.csr_array(X), Y)
    for name in ("mean_", "deviation_", "lowest_", "highest_"):
        np.testing.assert_allclose(getattr(GUARD, name), getattr(other, name), atol=1e-12)
    np.testing.assert_allclose(GUARD.mean_, X.mean(axis=0))
    np.testing.assert_allclose(GUARD.deviation_, X.std(axis=0))


def test_the_range_is_that_of_items_with_and_without_a_label() -> None:
    groups = [X[Y[:, c] == side] for c in range(3) for side in (0, 1)]
    means = [(one.sum(axis=0) + 10 * X.mean(axis=0)) / (len(one) + 10) for one in groups]
    np.testing.assert_allclose(GUARD.lowest_, np.min(means, axis=0))
    np.testing.assert_allclose(GUARD.highest_, np.max(means, axis=0))


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 1)
    for form in FORMS:
        other = ColumnGuard().fit(form(X), Y)
        np.testing.assert_allclose(other.deviation_, GUARD.deviation_)
        np.testing.assert_allclose(other.highest_, GUARD.highest_)


def test_entries_stored_in_parts_count_once() -> None:
    parts = sp.csr_matrix(X)
    twice = sp.csr_matrix(
        (np.repeat(parts.data / 2, 2), np.repeat(parts.indices, 2), 2 * parts.indptr), X.shape
    )
    np.testing.assert_allclose(ColumnGuard().fit(twice, Y).deviation_, GUARD.deviation_)
    assert twice.nnz == 2 * parts.nnz


def test_a_column_that_grew_keeps_its_sparsity_and_gets_the_training_mean() -> None:
    batch = X[:200].copy()
    batch[:150, RARE], batch[150:, RARE] = 3.0, 0.0
    found, drift = GUARD.mend(sp.csr_matrix(batch))
    assert drift == {RARE: 2.25}
    assert found.nnz == np.count_nonzero(batch)
    column = found.toarray()[:, RARE]
    assert column.mean() == pytest.approx(X[:, RARE].mean())
    assert set(np.round(column, 12)) == {0.0, round(X[:, RARE].mean() / 0.75, 12)}


def test_a_column_that_vanished_is_filled() -> None:
    rng = np.random.default_rng(0)
    common = np.column_stack([X, rng.random(len(X)) < 0.9])
    guard = ColumnGuard().fit(sp.csr_matrix(common), Y)
    gone = common[:300].copy()
    gone[10:, -1] = 0
    with pytest.warns(DriftWarning):
        found = guard.transform(sp.csr_matrix(gone))
    np.testing.assert_allclose(found.toarray(), stuck(gone, -1, common[:, -1].mean()))


def test_constant_columns() -> None:
    constant = np.column_stack([X, np.zeros(len(X)), np.full(len(X), 7.0)])
    for form in FORMS:
        guard = ColumnGuard().fit(form(constant), Y)
        # Nothing can have been learnt from a column of zeros; one of sevens is a second intercept.
        assert guard.adrift(form(stuck(constant[:100], -2, 5.0))).tolist() == []
        assert guard.adrift(form(stuck(constant[:100], -1, 8.0))).tolist() == [X.shape[1] + 1]
        assert guard.adrift(form(stuck(constant[:100], -1, 7.0001))).tolist() == []


def test_few_training_items_may_lack_a_value_by_chance() -> None:
    few, many = np.ones((20, 1)), np.ones((100, 1))
    Y = np.eye(2, dtype=np.int8)[np.arange(100) % 2]
    batch = np.ones((200, 1))
    batch[::5] = 0
    assert ColumnGuard().fit(few, Y[:20]).adrift(batch).tolist() == []
    assert ColumnGuard().fit(many, Y).adrift(batch).tolist() == [0]


def test_few_rows_and_few_carriers_are_no_drift() -> None:
    assert GUARD.adrift(stuck(X[:29])).tolist() == []
    assert GUARD.adrift(stuck(X[:30])).tolist() == [RARE]
    odd = X[:500].copy()
    odd[:5, 8] = 1e6
    assert GUARD.adrift(odd).tolist() == []


@pytest.mark.parametrize("form", [lambda matrix: matrix, lambda matrix: matrix.toarray()])
def test_words_added_to_all_texts_give_their_weight_back(form: Any) -> None:
    data = datasets.synthetic(n_train=600, n_test=200, n_labels=4, kind="text", random_state=0)
    # A footer that few training texts have.
    known = [text + " newsletter" * (i % 100 == 0) for i, text in enumerate(data.train.X)]
    prepared = TextPreparation(pairs=False)
    guard = ColumnGuard().fit(form(prepared.fit_transform(known)), data.train.Y)
    plain = prepared.transform(list(data.test.X))
    footer = prepared.transform([f"{text} newsletter" for text in data.test.X])
    with pytest.warns(DriftWarning):
        found = guard.transform(form(footer))
    np.testing.assert_allclose(dense(found), plain.toarray(), atol=0.01)
    assert np.abs(footer - plain).max() > 0.2


def test_a_recoded_column_is_adrift() -> None:
    recoded = X[:100].copy()
    recoded[:, 7] = recoded[:, 7] * 100 + 300
    assert GUARD.adrift(recoded).tolist() == [7]


def test_the_sentence_names_columns_and_the_way_out() -> None:
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    guard = ColumnGuard().fit(frame, Y)
    assert guard.transform(frame) is frame
    assert guard.get_feature_names_out().tolist() == list(frame.columns)
    with pytest.warns(
        PrevalensWarning, match=r"1 feature column .* 'f4' \(mean 0.0\d+ in training, 1"
    ):
        guard.transform(stuck(X))
    every = stuck(stuck(stuck(stuck(X, 3), 4), 5), 7, 99)
    _, drift = guard.mend(every)
    text = guard.sentence(drift, list("abcdefghi"), where="May")
    assert text.startswith("In May, 4 feature columns moved further")
    # The one that moved most comes first.
    assert "training mean: 'h' (mean" in text
    assert "and 1 more; if that is wrong, train anew" in text
    assert ": 7 (mean" in ColumnGuard().fit(X, Y).sentence(drift)
    named = ColumnGuard().fit(X, Y, names=list("abcdefghi"))
    assert named.feature_names_in_.tolist() == list("abcdefghi")


def test_parts_of_a_batch_are_warned_of_once() -> None:
    parts = [X[:500], stuck(X[500:1000]), stuck(stuck(X[1000:]), 5)]
    with pytest.warns(DriftWarning) as caught:
        found = list(GUARD.transform_many(parts))
    assert [one.message.columns for one in caught] == [(RARE, 5)]
    assert found[0] is parts[0]
    assert (found[2][:, [RARE, 5]] == X[:, [RARE, 5]].mean(axis=0)).all()


def test_the_guard_of_a_pipeline() -> None:
    assert guard_of(make_pipeline(GUARD, PerLabel())) is GUARD
    assert guard_of(make_pipeline(StandardScaler(), GUARD, PerLabel())) is None
    assert guard_of(PerLabel()) is None


def test_switched_off() -> None:
    guard = ColumnGuard(float("inf")).fit(X, Y)
    batch = stuck(X)
    assert guard.transform(batch) is batch


def test_refusals() -> None:
    with pytest.raises(NotFittedError):
        ColumnGuard().transform(X)
    with pytest.raises(InputError, match="items have 2 features, but there were 9 in training"):
        GUARD.transform(X[:, :2])
    with pytest.raises(InputError, match="X has 1500 rows but Y has 3"):
        ColumnGuard().fit(X, Y[:3])
    with pytest.raises(InputError, match="tolerance must be above 0; got -1"):
        ColumnGuard(-1).fit(X, Y)
    with pytest.raises(InputError, match="9 columns but 1 names"):
        ColumnGuard().fit(X, Y, names=["a"])


def test_in_a_pipeline_and_through_a_file(tmp_path: Path) -> None:
    pipeline = make_pipeline(ColumnGuard(), PerLabel()).fit(X, Y)
    path = tmp_path / "m"
    write_model(path, {}, {"p": pipeline})
    again = read_parts(path, read_manifest(path))["p"]
    with pytest.warns(DriftWarning):
        expected = pipeline.predict_proba(stuck(X))
    with pytest.warns(DriftWarning):
        np.testing.assert_array_equal(again.predict_proba(stuck(X)), expected)
    neutral = PerLabel().fit(X, Y).predict_proba(stuck(X, value=X[:, RARE].mean()))
    np.testing.assert_allclose(expected, neutral, atol=1e-12)


SETS = [
    *("emotions", "scene", "yeast", "birds", "genbase", "medical", "enron", "bibtex"),
    *("reuters21578", "corel5k", "delicious", "tmc2007_500"),
]


@pytest.mark.data
@pytest.mark.parametrize("name", SETS)
def test_of_the_public_test_parts_only_one_column_is_adrift(name: str) -> None:
    data = datasets.load(name, text=name == "reuters21578", download=False)
    before, after = data.train.X, data.test.X
    if name == "reuters21578":
        prepared = TextPreparation()
        before, after = prepared.fit_transform(list(before)), prepared.transform(list(after))
    found = ColumnGuard().fit(before, data.train.Y).adrift(after).tolist()
    assert found == ([498] if name == "corel5k" else [])


@pytest.mark.data
@pytest.mark.parametrize("name", ["emotions", "scene", "yeast", "enron", "medical"])
def test_samples_of_shifted_labels_are_not_adrift(name: str) -> None:
    data = datasets.load(name, download=False)
    guard = ColumnGuard().fit(data.train.X, data.train.Y)
    samples = MLAPP(100, max_samples=200).draw(data.test.Y, 0)
    assert len(samples) == 200
    assert [guard.adrift(data.test.X[rows]).tolist() for rows in samples] == [[]] * 200
