"""Quantify files: chunks and files change nothing, results go out whole and safe."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from prevalens.errors import InputError
from prevalens.estimate import PrevalenceEstimate
from prevalens.model import Model
from prevalens.model import quantify as notices_module
from prevalens.model.groups import ByColumn
from prevalens.model.progress import CancelledError, Step
from prevalens.model.quantify import quantify_files, quantify_tables
from prevalens.model.result import COLUMNS, BatchResult
from prevalens.quantifier import Quantifier
from prevalens.tables.formats import as_table
from prevalens.uncertainty import warn_of_misfit

NAMES = ("=cmd", "b")


def texts(count: int) -> tuple[list[str], np.ndarray]:
    Y = np.array([[i % 2, (i // 2) % 3 == 0] for i in range(count)], dtype=np.int8)
    found = [" ".join(["hello"] + ["alpha"] * a + ["beta"] * b) for a, b in Y.tolist()]
    return found, Y


@pytest.fixture(scope="module")
def model() -> Model:
    words, Y = texts(120)
    return Model.fit({"text": words}, Y, labels=NAMES, text="text", method="lr+pacc")


@pytest.fixture(scope="module")
def batches(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("batches")
    words, _ = texts(300)
    paths = []
    for month in (1, 2, 3):
        path = folder / f"2024-0{month}.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["date", "region", "text"])
            for i in range(100):
                row = words[(month * 100 + i) % 300]
                writer.writerow([f"2024-0{month}-{1 + i % 28:02d}", "ab"[i % 2], row])
        paths.append(path)
    return paths


@pytest.fixture(scope="module")
def result(model: Model, batches: list[Path]) -> BatchResult:
    return quantify_files(model, batches)


def test_every_file_is_a_batch(model: Model, result: BatchResult, batches: list[Path]) -> None:
    assert result.batches == ("2024-01", "2024-02", "2024-03")
    assert result.sizes.tolist() == [100, 100, 100]
    alone = quantify_files(model, batches[1])
    np.testing.assert_allclose(alone.estimate.point[0], result.estimate.point[1], atol=1e-7)
    np.testing.assert_array_equal(result.training, model.prevalence)
    assert result.feature_means.shape == (3, model.summary.n_features)
    assert result.counted.shape == (3, 2)
    assert result.provenance["rows"] == 300
    assert not result.ordered


def test_groups_across_files(model: Model, batches: list[Path]) -> None:
    by_month = quantify_files(model, batches, by_time="date", interval=None)
    by_file = quantify_files(model, batches, interval=None)
    assert by_month.ordered
    np.testing.assert_array_equal(by_month.estimate.point, by_file.estimate.point)
    by_region = quantify_files(model, str(batches[0].parent / "*.csv"), by="region", interval=None)
    assert by_region.batches == ("a", "b")
    assert by_region.sizes.tolist() == [150, 150]


def test_small_groups_are_estimated_as_if_they_had_been_one(model: Model) -> None:
    words, _ = texts(90)
    shops = ["big" if i < 60 else f"s{i % 10}" for i in range(90)]
    table = {"text": [*words[:-1], "utterly novel"], "shop": shops}
    folded = quantify_tables(model, [as_table(table)], ByColumn("shop"), min_items=5)
    name = "10 groups with fewer than 5 items"
    assert folded.batches == ("big", name)
    joined = {**table, "shop": ["big" if shop == "big" else "others" for shop in shops]}
    expected = quantify_tables(model, [as_table(joined)], ByColumn("shop"), min_items=5)
    for part in ("point", "lower", "band_upper", "p_value", "sizes"):
        np.testing.assert_allclose(getattr(folded, part), getattr(expected, part), atol=1e-12)
    np.testing.assert_allclose(folded.feature_means, expected.feature_means, rtol=1e-6)
    assert "(s0, s1, s2, s3, s4 and 5 more) stand together at the end" in folded.notes_of(name)
    assert f"{name}: 30 items only; the estimates are rough." in folded.notes_of(name)
    assert "stand together" not in folded.notes_of("big")


def test_small_periods_are_noted_and_not_put_together(model: Model, batches: list[Path]) -> None:
    found = quantify_files(model, batches, by_time="date", min_items=101, interval=None)
    assert found.batches == ("2024-01", "2024-02", "2024-03")
    assert [found.notes_of(name) for name in found.batches] == [
        f"{name}: 100 items only; the estimates are rough." for name in found.batches
    ]


@pytest.mark.parametrize("wrong", [-1, 1.5])
def test_a_limit_is_a_whole_number(model: Model, batches: list[Path], wrong: float) -> None:
    with pytest.raises(InputError, match="min_items"):
        quantify_files(model, batches, by="region", min_items=wrong)


def test_one_warning_names_the_batches_that_alarm(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, _ = texts(90)
    table = as_table({"text": words, "team": ["x"] * 30 + ["y"] * 30 + ["z"] * 30})
    read = Quantifier.read

    def alarming(self: Quantifier, *args: Any, **given: Any) -> PrevalenceEstimate:
        estimate = read(self, *args, **given)
        estimate.p_value = np.array([0.5, 0.001, 0.002])
        warn_of_misfit(estimate.p_value, estimate.index)
        return estimate

    monkeypatch.setattr(Quantifier, "read", alarming)
    found = quantify_tables(model, [table], ByColumn("team"))
    (notice,) = [one for one in found.notices if "in more than the label mix" in one.text]
    assert notice.text.startswith("Batches 'y', 'z' differ")
    assert (notice.batches, notice.level) == (("y", "z"), "warning")
    assert [notice.text in found.notes_of(name) for name in "xyz"] == [False, True, True]
    assert [row["alarm"] for row in found.batch_rows()] == [False, True, True]


def test_tables_in_memory_go_the_same_way(model: Model, batches: list[Path]) -> None:
    frame = pd.concat([pd.read_csv(path, dtype=str) for path in batches])
    by_frame = quantify_tables(model, [as_table(frame)], ByColumn("region"), interval=None)
    by_file = quantify_files(model, batches, by="region", interval=None)
    np.testing.assert_allclose(by_frame.estimate.point, by_file.estimate.point, atol=1e-12)


def test_a_model_from_a_file(model: Model, batches: list[Path], tmp_path: Path) -> None:
    model.save(tmp_path / "m.prevalens")
    found = quantify_files(tmp_path / "m.prevalens", batches, interval=None)
    expected = quantify_files(model, batches, interval=None)
    np.testing.assert_array_equal(found.estimate.point, expected.estimate.point)


def test_a_model_of_texts_reads_the_column_called_text(batches: list[Path], tmp_path: Path) -> None:
    words, Y = texts(60)
    plain = Model.fit(words, Y, labels=NAMES, method="lr+pcc")
    assert quantify_files(plain, batches, interval=None).sizes.sum() == 300
    (tmp_path / "t.csv").write_text("body\nhello\n")
    with pytest.raises(InputError, match="does not know which columns to read"):
        quantify_files(plain, tmp_path / "t.csv")


def test_rows_and_frames(result: BatchResult) -> None:
    rows = result.to_rows()
    assert len(rows) == 6
    assert tuple(rows[0]) == COLUMNS
    for row in rows:
        assert 0 <= row["lower"] <= row["prevalence"] <= row["upper"] <= 1
    assert result.to_frame().equals(result.to_frame("polars").to_pandas())
    assert isinstance(result.to_frame("polars"), pl.DataFrame)


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".json", ".jsonl", ".parquet"])
def test_written_and_read_again(result: BatchResult, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"out{ending}"
    result.write(path)
    readers = {
        ".csv": pd.read_csv,
        ".tsv": lambda p: pd.read_csv(p, sep="\t"),
        ".json": lambda p: pd.DataFrame(json.loads(p.read_text())["rows"]),
        ".jsonl": lambda p: pd.DataFrame(map(json.loads, p.read_text().splitlines())),
        ".parquet": pd.read_parquet,
    }
    found = readers[ending](path)
    expected = result.to_frame()
    np.testing.assert_allclose(found["prevalence"], expected["prevalence"])
    np.testing.assert_allclose(found["upper"], expected["upper"])
    named = found["label"].tolist()
    assert named == (["'=cmd", "b"] * 3 if ending in (".csv", ".tsv") else ["=cmd", "b"] * 3)


def test_without_intervals(model: Model, batches: list[Path]) -> None:
    found = quantify_files(model, batches, interval=None)
    assert found.to_rows()[0]["lower"] is None
    text = found.to_bytes(".csv").decode()
    assert next(iter(csv.DictReader(io.StringIO(text))))["lower"] == ""
    assert found.to_bytes(".parquet")


def test_notices(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text("text\n" + "utterly novel vocabulary\n" * 8 + "hello alpha\n")
    found = quantify_files(model, path, interval=None)
    sentences = "\n".join(found.warnings)
    assert "odd: 9 items only" in sentences
    assert "89% of the items of odd hold nothing the model knows" in sentences
    assert "of the words in odd were not seen in training" in sentences
    assert {one.batch for one in found.notices} == {"odd"}


def test_too_many_features_are_not_summed(
    model: Model, batches: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices_module, "_MOST_SUMS", 1)
    assert quantify_files(model, batches, interval=None).feature_means is None


def test_feature_means_are_means(model: Model, batches: list[Path]) -> None:
    found = quantify_files(model, batches[0], interval=None)
    with batches[0].open() as file:
        words = [row["text"] for row in csv.DictReader(file)]
    X = model.preparation.transform(words)
    np.testing.assert_allclose(found.feature_means[0], np.asarray(X.mean(axis=0))[0], atol=1e-6)


def test_progress_and_cancelling(model: Model, batches: list[Path]) -> None:
    steps: list[Step] = []
    quantify_files(model, batches, interval=None, progress=steps.append)
    assert [step.stage for step in steps] == ["scoring"] * 3 + ["estimating"]
    assert steps[2].done == steps[2].total == sum(path.stat().st_size for path in batches)
    with pytest.raises(CancelledError):
        quantify_files(model, batches, cancelled=lambda: True)
