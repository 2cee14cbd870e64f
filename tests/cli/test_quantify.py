"""What `prevalens quantify` prints and writes."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import openpyxl
import pytest
from click.testing import CliRunner, Result

from prevalens import __main__ as program
from prevalens.cli import quantify as module
from prevalens.datasets.tickets import tickets, write_tickets
from prevalens.model import Model, quantify_files
from prevalens.model.groups import MIN_ITEMS


def run(*words: str | Path) -> Result:
    done = CliRunner().invoke(program.cli, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("quantify")
    rows = [
        (f"2024-0{5 + i % 2}-03", " ".join(["hi"] + ["alpha"] * (i % 2) + ["beta"] * (i // 2 % 2)))
        for i in range(120)
    ]
    Y = [[i % 2, i // 2 % 2] for i in range(120)]
    table = {"date": [row[0] for row in rows], "text": [row[1] for row in rows]}
    Model.fit(table, Y, labels=["x", "y"], text="text", method="lr+pacc").save(
        place / "m.prevalens"
    )
    for name, part in (("may", rows[:60]), ("june", rows[60:])):
        with (place / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("date", "text"), *part])
    return place


def test_csv_where_nobody_looks(folder: Path) -> None:
    said = run("quantify", folder / "m.prevalens", folder / "may.csv", folder / "june.csv").stdout
    rows = list(csv.DictReader(io.StringIO(said)))
    assert [(row["group"], row["label"]) for row in rows] == [
        ("may", "x"), ("may", "y"), ("june", "x"), ("june", "y")
    ]  # fmt: skip
    for row in rows:
        assert float(row["lower"]) <= float(row["prevalence"]) <= float(row["upper"])
        assert float(row["prevalence"]) == pytest.approx(0.5, abs=0.1)


def test_json_files_and_report(folder: Path, tmp_path: Path) -> None:
    words = ["quantify", folder / "m.prevalens", folder / "*.csv", "--by-time", "date"]
    out, page = tmp_path / "out.csv", tmp_path / "report.html"
    done = run(*words, "-o", out, "--html", page)
    assert f"2 batches, 2 labels: {out}, {page}" in done.stdout
    assert out.read_text().startswith("group,label,n_items")
    assert page.read_text().lstrip().lower().startswith("<!doctype html")
    found = json.loads(run(*words, "--json", "--freq", "y").stdout)
    assert {row["group"] for row in found["rows"]} == {"2024"}
    assert found["interval"] == 0.9


def test_few_notes_are_printed(folder: Path) -> None:
    done = run(
        "quantify", folder / "m.prevalens", folder / "may.csv", "--by", "text", "--interval", 0
    )
    assert "prevalens: note: hi: 15 items only; the estimates are rough." in done.stderr
    many = [f"sentence {i}" for i in range(12)]
    runner = CliRunner()
    with runner.isolation() as streams:
        module._warn(many)
        said = streams[1].getvalue().decode() if streams[1] else ""
    assert "sentence 7" in said
    assert "sentence 8" not in said
    assert "4 more notes" in said


def test_forms_of_the_table(folder: Path, tmp_path: Path) -> None:
    words = ["quantify", folder / "m.prevalens", folder / "*.csv"]
    run(*words, "-o", tmp_path / "out.xlsx", "--wide", "--percent")
    book = openpyxl.load_workbook(tmp_path / "out.xlsx")
    head, first, *_ = book["estimates"].iter_rows(values_only=True)
    assert head[:4] == (
        "label",
        "training_percent",
        "prevalence_percent june",
        "lower_percent june",
    )
    assert first[0] == "x"
    assert first[2] == pytest.approx(50, abs=10)
    said = run(*words, "--wide").stdout
    assert said.splitlines()[0].startswith("label,training,prevalence june,lower june,upper june,")
    found = json.loads(run(*words, "--json", "--percent").stdout)
    assert found["rows"][0]["prevalence_percent"] == pytest.approx(50, abs=10)
    assert [batch["alarm"] for batch in found["batches"]] == [False, False]


@pytest.fixture(scope="module")
def strange(folder: Path) -> Path:
    """A batch in which half of the items are of no kind that was in training."""
    path = folder / "strange.tsv"
    path.write_text("text\n" + "hi alpha\n" * 150 + "hi alpha alpha beta beta beta\n" * 150)
    return path


def test_strict_ends_with_a_code_of_its_own(folder: Path, strange: Path, tmp_path: Path) -> None:
    words = ["quantify", folder / "m.prevalens", strange, folder / "may.csv"]
    run(*words, "-o", tmp_path / "plain.csv")
    strict = [*words, "-o", tmp_path / "out.csv", "--html", tmp_path / "out.html", "--strict"]
    done = CliRunner().invoke(program.cli, list(map(str, strict)))
    assert done.exit_code == module.ALARMED == 3
    assert "1 of 2 batches raised the alarm, so the exit code is 3" in done.stderr
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "plain.csv").read_bytes()
    assert (tmp_path / "out.html").exists()
    lines = (tmp_path / "out.csv").read_text().splitlines()
    alarms = {row["group"]: row["alarm"] for row in csv.DictReader(lines)}
    assert alarms == {"strange": "true", "may": "false"}
    assert run(*words[:2], folder / "may.csv", "--strict").exit_code == 0


def test_small_groups_are_put_together_with_a_note(folder: Path) -> None:
    words = ["quantify", folder / "m.prevalens", folder / "may.csv", "--by", "text", "--json"]
    done = run(*words, "--min-items", 16)
    assert [batch["group"] for batch in json.loads(done.stdout)["batches"]] == [
        "4 groups with fewer than 16 items"
    ]
    assert "(hi, hi alpha, hi alpha beta, hi beta) stand together" in done.stderr
    assert "--min-items 1 shows each by name" in done.stderr
    assert len(json.loads(run(*words).stdout)["batches"]) == 4


def test_a_negative_limit_is_refused(folder: Path) -> None:
    words = ["quantify", folder / "m.prevalens", folder / "may.csv", "--min-items", -3]
    done = CliRunner().invoke(program.cli, list(map(str, words)))
    assert done.exit_code == 2
    assert "'--min-items': -3 is not in the range" in done.stderr


def test_the_default_of_small_groups_is_that_of_python() -> None:
    option = next(each for each in module.command.params if each.name == "min_items")
    assert option.default == MIN_ITEMS


def test_the_table_on_a_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = quantify_files(folder / "m.prevalens", folder / "may.csv")
    rows, title = module._moved_most(result.to_rows())
    table = module._table(rows, 0.9)
    assert table.row_count == 2
    assert title == "Prevalence in percent"
    assert [column.header for column in table.columns] == [
        "batch", "label", "items", "prevalence", "90% interval", "training"
    ]  # fmt: skip
    alarming = module._table([{**rows[0], "alarm": True}], 0.9)
    assert [cell.plain for cell in alarming.columns[0].cells] == ["may (alarm)"]
    monkeypatch.setattr(module, "_MOST_ROWS", 1)
    assert "the 1 of 2 that moved most" in module._moved_most(rows)[1]


def test_every_file_is_opened_at_most_twice(tmp_path: Path) -> None:
    write_tickets(tickets(120, 20, months=3), tmp_path)
    code = (
        "import sys, collections\n"
        "opened = collections.Counter()\n"
        "def hook(event, args):\n"
        "    if event == 'open' and isinstance(args[0], (str, bytes)):\n"
        "        opened[str(args[0]).rpartition('/')[2]] += 1\n"
        "from prevalens.__main__ import cli\n"
        "fit = ['fit', 'train.csv', '--text', 'text', '--tags', 'tags', '--sep', ';']\n"
        "cli([*fit, '--method', 'lr+pcc'], standalone_mode=False)\n"
        "sys.addaudithook(hook)\n"
        "words = ['quantify', 'model.prevalens', 'months', '--html', 'page.html', '--by-time']\n"
        "cli([*words, 'date', '-o', 'out.csv'], standalone_mode=False)\n"
        "files = ('2026-01.csv', '2026-02.csv', '2026-03.csv')\n"
        "print(max(opened[name] for name in files), min(opened[name] for name in files))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1] in ("2 2", "2 1", "1 1"), done.stderr


def test_the_headline_is_the_first_note(folder: Path) -> None:
    words = ["quantify", folder / "m.prevalens", folder / "may.csv"]
    first = run(*words).stderr.splitlines()[0]
    assert first.startswith("prevalens: note: In may, no label has clearly moved since training")
    assert run(*words, "--json").stderr == ""


def test_rows_whose_intervals_moved_stand_before_estimates_that_moved_farther() -> None:
    near = {"training": 0.2, "prevalence": 0.3, "lower": 0.25, "upper": 0.35}
    far = {"training": 0.2, "prevalence": 0.9, "lower": 0.1, "upper": 1.0}
    assert sorted([far, near], key=module._farthest) == [near, far]
    assert module._farthest({**far, "lower": None, "upper": None})[0] == 0
