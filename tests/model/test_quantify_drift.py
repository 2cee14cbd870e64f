"""Batches that have drifted are mended one by one, and said so once."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from sklearn.pipeline import make_pipeline

from prevalens import __main__ as program
from prevalens.aggregators import PCC
from prevalens.classifiers import PerLabel
from prevalens.model import Model
from prevalens.model.groups import ByColumn
from prevalens.model.quantify import BatchMonitor, quantify_tables
from prevalens.quantifier import Quantifier
from prevalens.reports.batch_page import report_html
from prevalens.reports.batches import drivers_of, label_weights
from prevalens.tables.column_guard import ColumnGuard, DriftWarning
from prevalens.tables.formats import as_table

FOOTER = " newsletter"


def texts(count: int, *, footer: int) -> tuple[list[str], list[list[int]]]:
    """Texts of two labels, of which every so-many-th ends with the footer."""
    Y = [[i % 2, int(i % 3 == 0)] for i in range(count)]
    found = [
        " ".join(["hello", "there"] + ["alpha"] * a + ["beta"] * b) + FOOTER * (i % footer == 0)
        for i, (a, b) in enumerate(Y)
    ]
    return found, Y


def guarded(**guard: Any) -> Quantifier:
    return Quantifier(make_pipeline(ColumnGuard(**guard), PerLabel()), PCC())


@pytest.fixture(scope="module")
def model() -> Model:
    words, Y = texts(400, footer=50)
    return Model.fit({"text": words}, Y, labels=["a", "b"], text="text", method=guarded())


def place(model: Model) -> int:
    return int(model.preparation.terms_.index("newsletter"))


def months(*every: int) -> dict[str, list[str]]:
    """A table of batches of 60 texts, shuffled, with footers in every so-many-th."""
    parts = [texts(60, footer=one)[0] for one in every]
    order = np.random.default_rng(0).permutation(60 * len(every))
    names = [f"m{i}" for i in range(len(every)) for _ in range(60)]
    joined = [text for part in parts for text in part]
    return {"text": [joined[i] for i in order], "month": [names[i] for i in order]}


def test_a_batch_that_drifted_is_mended_among_others(model: Model) -> None:
    table = months(50, 50, 50, 50, 50, 1)
    result = quantify_tables(model, [as_table(table)], ByColumn("month"), interval=None)
    (text,) = result.warnings
    assert text.startswith("In m5, ")
    assert "'newsletter' (mean" in text
    assert [one.batch for one in result.notices] == ["m5"]
    # The footer aside, all months hold the same texts.
    np.testing.assert_allclose(result.estimate.point[5], result.estimate.point[0], atol=0.02)
    assert result.feature_means[5, place(model)] == pytest.approx(
        model.feature_means[place(model)], rel=1e-5
    )
    assert text in report_html(result, model).replace("&#x27;", "'").replace("&#39;", "'")


def test_chunks_do_not_multiply_the_notice(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    table, groups = as_table(months(1, 1, 1)), ByColumn("month")
    whole = quantify_tables(model, [table], groups, interval=None)
    plain = table.chunks
    monkeypatch.setattr(
        table, "chunks", lambda columns, **more: plain(columns, chunk_rows=36, **more)
    )
    found = quantify_tables(model, [table], ByColumn("month"), interval=None)
    for result in (whole, found):
        (text,) = result.warnings
        assert text.startswith("In 3 batches (the first is m0), ")
    np.testing.assert_allclose(found.estimate.point, whole.estimate.point, atol=0.02)


def test_small_batches_are_seen_together(model: Model) -> None:
    words, _ = texts(80, footer=1)
    table = {"text": words, "day": [f"d{i % 4}" for i in range(80)]}
    result = quantify_tables(model, [as_table(table)], ByColumn("day"), interval=None)
    about = [text for text in result.warnings if "newsletter" in text]
    assert len(about) == 1
    assert about[0].startswith("In 4 batches")


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_only_rows_of_the_batch_change(model: Model, form: Any) -> None:
    words, _ = texts(200, footer=50)
    expected = model.preparation.transform(words).toarray()
    codes = (np.arange(200) % 4 == 0).astype(np.int32)
    # The footer in all texts of a batch, next to the other words of it.
    expected[codes == 1, place(model)] = 0
    expected[codes == 1] /= np.linalg.norm(expected[codes == 1], axis=1, keepdims=True)
    X = expected.copy()
    X[codes == 1] *= 0.5
    X[codes == 1, place(model)] = 0.75**0.5
    monitor = BatchMonitor(model)
    mended = monitor.mend(form(X), codes)
    monitor.add(words, mended, codes)
    dense = mended.toarray() if sp.issparse(mended) else mended
    expected[codes == 1, place(model)] = model.feature_means[place(model)]
    np.testing.assert_allclose(dense, expected, rtol=1e-6)
    notices = monitor.notices(["x", "y"], [1, 0])
    assert [notice.batch for notice in notices if "'newsletter'" in notice.text] == ["x"]


def test_what_has_not_drifted_or_has_no_guard_passes_untouched(model: Model) -> None:
    words, Y = texts(100, footer=50)
    codes = np.zeros(100, dtype=np.int32)
    X = model.preparation.transform(words)
    assert BatchMonitor(model).mend(X, codes) is X
    plain = Model.fit(words, Y, method="lr+pcc")
    drifted = plain.preparation.transform(texts(100, footer=1)[0])
    assert BatchMonitor(plain).mend(drifted, codes) is drifted


def test_a_guard_does_not_hide_the_weights(model: Model) -> None:
    weights = label_weights(model)
    np.testing.assert_array_equal(weights, model.quantifier.classifier_[-1].coef_)
    means = model.feature_means.copy()
    means[place(model)] += 0.1
    (found,) = drivers_of(model, means, labels=[0], batch="later")
    assert [one.name for one in found.drivers] == ["newsletter"]


def test_items_in_memory_are_warned_of_once(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    words, _ = texts(200, footer=1)
    monkeypatch.setattr("prevalens.model.items.CHUNK_ROWS", 50)
    with pytest.warns(DriftWarning, match="'newsletter'") as caught:
        model.quantify(words, interval=None)
    assert len(caught) == 1


def said(*words: str) -> list[str]:
    """Lines on standard error that name the footer; a warning that nobody catches is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = CliRunner().invoke(program.cli, list(words), catch_exceptions=False)
    return [line for line in done.stderr.splitlines() if "'newsletter'" in line]


def test_evaluating_says_it_once(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "m.prevalens")
    words, Y = texts(120, footer=1)
    rows = [f"{text},{a},{b}" for text, (a, b) in zip(words, Y, strict=True)]
    (tmp_path / "labelled.csv").write_text("\n".join(["text,a,b", *rows]) + "\n")
    paths = [str(tmp_path / name) for name in ("m.prevalens", "labelled.csv")]
    (note,) = said("evaluate", *paths, "--samples", "5")
    assert note.startswith("prevalens: note: In this batch, 3 feature columns moved")


def test_on_the_command_line_it_is_a_note(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "m.prevalens")
    batch = tmp_path / "may.csv"
    batch.write_text("text\n" + "\n".join(texts(100, footer=1)[0]) + "\n")
    notes = said("quantify", str(tmp_path / "m.prevalens"), str(batch))
    assert len(notes) == 1
    assert notes[0].startswith("prevalens: note: In may, 3 feature columns moved")
    assert "'beta newsletter'" in notes[0]
