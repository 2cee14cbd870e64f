"""What the columns of a file became, as a user sees it."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from prevalens import __main__ as program
from prevalens.cli.columns import column_table, print_columns
from prevalens.errors import InputError
from prevalens.model import Model
from prevalens.tables.kinds import ColumnUse


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = random.Random(0)
    with (tmp_path / "train.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "age", "price", "ward", "seen", "same", "urgent"])
        for i in range(120):
            urgent = i % 2
            age = "?" if i % 10 == 0 else 20 + 30 * urgent + rng.randrange(20)
            price = f"{rng.random() * 9:.2f}".replace(".", ",")
            ward = rng.choice(["north", "south"])
            writer.writerow([i + 1, age, price, ward, f"2024-05-0{1 + i % 9}", "x", urgent])
    return tmp_path / "train.csv"


def run(*words: str) -> Result:
    return CliRunner().invoke(program.cli, list(words), catch_exceptions=False)


FIT = ("fit", "train.csv", "--labels", "urgent", "--method", "lr+pcc")


def test_fit_says_what_each_column_became(train: Path) -> None:
    done = run(*FIT)
    lines = [line.split() for line in done.stderr.splitlines()]
    became = {line[0]: line[1] for line in lines if len(line) > 1}
    assert became["id"] == became["same"] == "dropped"
    assert became["age"] == became["price"] == "number"
    assert (became["ward"], became["seen"]) == ("category", "date")
    for text in (
        "12 missing ('?')",
        "decimal comma",
        "month and day of the week, not the year",
        "--as id=number",
        "note: 2 columns not used: 'id': identifier",
    ):
        assert text in done.stderr
    inspected = run("inspect", "model.prevalens").stdout
    assert "decimal comma" in inspected
    # Columns that are not used are not asked for in batches.
    assert Model.load("model.prevalens").columns == ("age", "price", "ward", "seen")


def test_as_changes_it_and_json_has_it(train: Path) -> None:
    options = ("--as", "id=number", "--as", "price=category", "--as", "age=drop")
    page = json.loads(run(*FIT, *options, "--json").stdout)
    uses = {use["column"]: use["use"] for use in page["column_uses"]}
    assert uses == {
        "id": "number",
        "age": "dropped",
        "price": "category",
        "ward": "category",
        "seen": "date",
        "same": "dropped",
    }
    loaded = Model.load("model.prevalens")
    assert {use.column: use.use for use in loaded.column_uses} == uses
    assert (
        json.loads(run("inspect", "model.prevalens", "--json").stdout)["column_uses"]
        == (page["column_uses"])
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--as", "age"), "--as is written COLUMN=KIND, and a KIND is number"),
        (("--as", "age=colour"), "got 'age=colour'"),
        (("--as", "agee=number"), "train.csv has no column 'agee'"),
        (("--as", "urgent=number"), "The column 'urgent' is not among the features"),
        (("--as", "ward=number"), "The column 'ward' holds no number, but for example"),
        (("--as", "ward=date"), "The column 'ward' holds no date, but for example"),
        (("--text", "ward", "--as", "age=drop"), "with `text=` there are none"),
    ],
)
def test_what_cannot_be_asked_for(train: Path, words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        run(*FIT, *words)
    assert sentence in str(error.value)
    assert not Path("model.prevalens").exists()


def test_many_columns_make_a_short_table(capsys: pytest.CaptureFixture[str]) -> None:
    plain = [ColumnUse(f"x{i}", "number", "", "category") for i in range(500)]
    odd = ColumnUse("price", "number", "decimal comma", "category")
    assert column_table([*plain, odd]).row_count == 2
    print_columns([*plain, odd])
    assert "500 other columns" in capsys.readouterr().err
