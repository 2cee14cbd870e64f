"""What `prevalens compare-batches` prints and writes: differences against known truth."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from prevalens import __main__ as program
from prevalens.model import Model


def run(*words: str | Path, code: int = 0) -> Result:
    done = CliRunner().invoke(program.cli, list(map(str, words)), catch_exceptions=True)
    assert done.exit_code == code, done.output
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts that say their labels: x is in a tenth of the items of April, in eight of May."""
    place = tmp_path_factory.mktemp("compare")
    rng = np.random.default_rng(0)

    def texts(n: int, share: float) -> tuple[list[str], list[list[int]]]:
        Y = (rng.random((n, 2)) < [share, 0.3]).astype(int).tolist()
        return [" ".join(["hi", "alpha" * x, "beta" * y]) for x, y in Y], Y

    items, Y = texts(300, 0.4)
    model = Model.fit({"text": items}, Y, labels=["x", "y"], text="text", method="lr+pacc")
    model.save(place / "m.prevalens")
    parts = {"april": ("2026-04-02", 0.1), "may": ("2026-05-02", 0.8)}
    everything = [("date", "place", "text")]
    for name, (day, share) in parts.items():
        rows = [(day, name, text) for text in texts(200 if name == "may" else 150, share)[0]]
        everything += rows
        with (place / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([everything[0], *rows])
    everything += [("2026-05-03", "malta", "hi")] * 20
    with (place / "all.csv").open("w", newline="") as file:
        csv.writer(file).writerows(everything)
    return place


def found(folder: Path, *words: str | Path) -> dict[str, object]:
    given = [folder / word if str(word).endswith(".csv") else word for word in words]
    done = run("compare-batches", folder / "m.prevalens", *given, "--json")
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_two_files_are_compared_label_by_label(folder: Path) -> None:
    answer = found(folder, "april.csv", "may.csv")
    assert (answer["first"], answer["second"], answer["interval"]) == ("april", "may", 0.9)
    first, second = answer["rows"]
    assert (first["label"], first["supported"]) == ("x", 1)
    assert first["lower"] <= 0.7 <= first["upper"]
    assert first["lower"] > 0.3
    assert (second["label"], second["supported"]) == ("y", 0)
    assert second["lower"] < 0 < second["upper"]


def test_the_other_order_turns_the_sign(folder: Path) -> None:
    row = found(folder, "may.csv", "april.csv")["rows"][0]
    assert (row["label"], row["supported"]) == ("x", -1)


def test_months_of_one_file_and_batches_by_name(folder: Path) -> None:
    answer = found(folder, "all.csv", "--by-time", "date")
    assert (answer["first"], answer["second"]) == ("2026-04", "2026-05")
    named = found(folder, "all.csv", "--by-time", "date", "--between", "2026-05", "2026-04")
    assert named["rows"][0]["supported"] == -1


def test_the_two_largest_groups_are_compared(folder: Path) -> None:
    answer = found(folder, "all.csv", "--by", "place")
    assert (answer["first"], answer["second"]) == ("april", "may")


def test_it_prints_a_verdict_and_writes_rows_and_the_report(folder: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "out.csv", tmp_path / "report.html"
    words = [folder / "april.csv", folder / "may.csv", "-o", out, "--html", page]
    said = run("compare-batches", folder / "m.prevalens", *words).stdout
    assert "may minus april: 1 of 2 labels differs clearly" in said
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [row["label"] for row in rows] == ["x", "y"]
    assert "Difference of two groups" in page.read_text()


def test_one_batch_cannot_be_compared(folder: Path) -> None:
    done = run("compare-batches", folder / "m.prevalens", folder / "may.csv", code=1)
    assert "There is one batch, 'may'; name two files" in str(done.exception)


def test_a_name_that_no_batch_has_is_refused(folder: Path) -> None:
    words = [folder / "april.csv", folder / "may.csv", "--between", "april", "june"]
    done = run("compare-batches", folder / "m.prevalens", *words, code=1)
    assert "no batch 'june'; the batches are 'april', 'may'" in str(done.exception)
