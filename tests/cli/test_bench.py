from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from prevalens.cli.bench import command
from prevalens.errors import InputError
from prevalens.experiments import Store
from prevalens.reports.drift import drift
from prevalens.reports.leaderboard import read_records, write_records

PLAN = """
name = "small"
datasets = ["synthetic"]
seeds = [0, 1]

[[protocols]]
name = "ml-app"
size = 50
grid = 5

[[methods]]
expression = "lr+cc"

[[methods]]
label = "PCC"
variant = "plain"
expression = "lr+pcc"
"""

FAILING = """
[[protocols]]
name = "too large"
kind = "natural"
size = 1000000
"""

#: Four cells of a second or so each, so that there is time to kill.
LONG = """
name = "long"
datasets = ["synthetic"]
seeds = [0, 1]

[[protocols]]
name = "ml-app"
more_than = 20000

[[methods]]
expression = "lr+sld"

[[methods]]
expression = "lr+pacc"
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


def bench(*arguments: Any) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "cells").iterdir()}


def test_a_run_ends_with_a_table_from_the_store(plan: Path, tmp_path: Path) -> None:
    result = bench(plan, "--store", tmp_path / "out")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    (row,) = [line for line in lines if "PCC [plain]" in line]
    records = Store(tmp_path / "out").records()
    chosen = [record for record in records if (record.metric, record.shift) == ("ae", "all")]
    mean = sum(record.value for record in chosen if record.method == "PCC [plain]") / 2
    assert f"{mean:.4f}".removeprefix("0") in row
    assert "AE by shift" in result.stdout
    assert "0 cells were there, 4 were computed, 0 failed." in result.stdout
    again = bench(plan, "--store", tmp_path / "out")
    assert "4 cells were there, 0 were computed, 0 failed." in again.stdout


def test_results_go_to_a_folder_with_the_plans_name(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert bench(plan, "--only", "seed=0,method=PCC").exit_code == 0
    assert len(Store(tmp_path / "small-results")) == 1


TWO_PROTOCOLS = """
[[protocols]]
name = "natural"
size = 50
n_samples = 30
"""


def test_pages_hold_tables_and_charts_of_every_protocol(plan: Path, tmp_path: Path) -> None:
    plan.write_text(PLAN + TWO_PROTOCOLS)
    names = {"--html": "page.html", "--markdown": "page.md", "--latex": "page.tex"}
    asked = [word for option, name in names.items() for word in (option, tmp_path / name)]
    result = bench(plan, "--store", tmp_path / "out", *asked)
    assert result.exit_code == 0, result.output
    html, markdown, latex = ((tmp_path / name).read_text("utf-8") for name in names.values())
    for protocol in ("ml-app", "natural"):
        for metric in ("AE", "RAE"):
            assert f"{protocol}: Results, {metric}" in html
            assert f"## {protocol}: Results, {metric}" in markdown
    assert "How far samples have moved" in html
    assert html.count("<svg") == 1 + 2 * 2  # shifts, and error against shift per table
    assert "http" not in html.replace("http://www.w3.org", "").replace("http-equiv", "")
    assert "## How far samples have moved" not in markdown  # charts alone
    assert latex.startswith(r"\documentclass")
    assert latex.count(r"\begin{tabular}") == markdown.count("\n\n**")
    again = bench(plan, "--store", tmp_path / "out", "--no-run", "--html", tmp_path / "again.html")
    assert again.exit_code == 0
    assert (tmp_path / "again.html").read_text("utf-8") == html


def test_a_board_of_fewer_training_items_is_not_compared_with_print(
    plan: Path, tmp_path: Path
) -> None:
    plan.write_text("max_train = 150\n" + PLAN)
    result = bench(plan, "--store", tmp_path / "out", "--leaderboard", tmp_path / "board.md")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "board.md").read_text("utf-8")
    assert "at most 150 of them" in page
    assert "printed" not in page


def test_earlier_records_complete_those_of_the_store(plan: Path, tmp_path: Path) -> None:
    first, all_records = tmp_path / "first", tmp_path / "all.csv"
    assert bench(plan, "--store", first, "--records", all_records).exit_code == 0
    # Earlier records of a cell that the store has do not count, and others stay as they are.
    earlier = [replace(record, version="old") for record in read_records(all_records)]
    other = replace(earlier[0], method="given", dataset="other")
    write_records([other, *reversed(earlier)], tmp_path / "earlier.csv")
    asked = ("--from-records", tmp_path / "earlier.csv", "--records", tmp_path / "both.csv")
    board = ("--leaderboard", tmp_path / "board.html")
    result = bench(plan, "--store", tmp_path / "new", "--only", "seed=0", *asked, *board)
    assert result.exit_code == 0, result.output
    both = read_records(tmp_path / "both.csv")
    assert {(r.seed, r.version == "old") for r in both if r.dataset != "other"} == {
        (0, False),
        (1, True),
    }
    assert len(both) == len(earlier) + 1
    # In the order of the plan, what is not in it last.
    assert list(dict.fromkeys(r.method for r in both)) == ["lr+cc", "PCC [plain]", "given"]
    page = (tmp_path / "board.html").read_text("utf-8")
    assert "AE by kind of shift" in page
    assert ">PCC [plain]</th>" in page


@pytest.mark.parametrize("option", ["--html", "--latex", "--records", "--leaderboard", "--drift"])
def test_a_file_that_cannot_be_written_is_refused_before_the_run(
    plan: Path, tmp_path: Path, option: str
) -> None:
    result = bench(plan, "--store", tmp_path / "out", option, tmp_path / "nowhere" / "file")
    assert isinstance(result.exception, InputError)
    assert "there is no folder" in str(result.exception)
    assert not (tmp_path / "out").exists()


def test_the_page_on_drift_is_made_of_the_records(plan: Path, tmp_path: Path) -> None:
    page, records = tmp_path / "drift.md", tmp_path / "means.csv"
    refused = bench(plan, "--store", tmp_path / "out", "--drift", page)
    assert "put intervals = 0.9 into the plan" in str(refused.exception)
    assert not (tmp_path / "out").exists()
    plan.write_text(PLAN.replace("seeds =", "intervals = 0.9\nseeds ="))
    asked = ("--only", "seed=0", "--drift", page, "--records", records)
    assert bench(plan, "--store", tmp_path / "out", *asked).exit_code == 0
    source = f"{tmp_path.name}/means.csv"
    made = drift(read_records(records), command="prevalens bench plan.toml", source=source)
    assert page.read_text("utf-8") == made
    assert "PCC [plain]" in made


def test_pages_of_nothing_are_refused(plan: Path, tmp_path: Path) -> None:
    result = bench(plan, "--store", tmp_path, "--no-run", "--html", tmp_path / "page.html")
    assert isinstance(result.exception, InputError)
    assert "No cell of the plan 'small' is finished" in str(result.exception)
    assert not (tmp_path / "page.html").exists()


def test_json_holds_the_records(plan: Path, tmp_path: Path) -> None:
    result = bench(plan, "--store", tmp_path / "out", "--json", "--only", "seed=1")
    report = json.loads(result.stdout)
    assert (report["found"], report["computed"], report["failed"]) == (0, 2, [])
    assert len(report["records"]) == 2 * 2 * 4
    assert {row["seed"] for row in report["records"]} == {1}


def test_list_shows_what_is_done(plan: Path, tmp_path: Path) -> None:
    store = tmp_path / "out"
    before = bench(plan, "--store", store, "--list")
    assert "0 of 4 cells are done." in before.stdout
    assert not store.exists()
    bench(plan, "--store", store, "--only", "method=lr+cc")
    after = bench(plan, "--store", store, "--list")
    assert "2 of 4 cells are done." in after.stdout
    rows = json.loads(bench(plan, "--store", store, "--list", "--json").stdout)
    states = {(row["method"], row["seed"]): row["state"] for row in rows}
    assert states["lr+cc", "0"] == states["lr+cc", "1"] == "done"
    assert states["PCC", "0"] == states["PCC", "1"] == "to do"


def test_failed_cells_are_named_and_the_exit_code_says_so(plan: Path, tmp_path: Path) -> None:
    plan.write_text(PLAN + FAILING)
    store = tmp_path / "out"
    result = bench(plan, "--store", store, "--only", "seed=0")
    assert result.exit_code == 1
    assert "2 were computed, 2 failed." in result.stdout
    text = " ".join(result.stdout.split())
    assert "Failed: synthetic, PCC [plain], too large, seed 0: A sample of 1000000" in text
    assert len(Store(store)) == 2
    rows = json.loads(bench(plan, "--store", store, "--list", "--json").stdout)
    assert [row["state"] for row in rows if row["seed"] == "0"] == ["done", "failed"] * 2
    report = json.loads(bench(plan, "--store", store, "--only", "seed=0", "--json").stdout)
    assert report["failed"][0]["protocol"] == "too large"
    assert Path(report["failed"][0]["log"]).is_file()


@pytest.mark.parametrize(
    ("only", "sentence"),
    [
        ("seed", "--only takes FIELD=VALUE with a field of dataset, method, .*; got 'seed'"),
        ("label=PCC", "--only takes FIELD=VALUE .*; got 'label=PCC'"),
        ("method=PC", "--only method=PC: the plan has no such method; did you mean 'PCC'"),
        ("seed=7", "--only seed=7: the plan has no such seed; known are 0, 1"),
    ],
)
def test_a_wrong_choice_is_refused(plan: Path, only: str, sentence: str) -> None:
    result = bench(plan, "--only", only)
    assert isinstance(result.exception, InputError)
    with pytest.raises(InputError, match=sentence):
        raise result.exception


def test_methods_with_commas_can_be_chosen(plan: Path, tmp_path: Path) -> None:
    plan.write_text(PLAN.replace('"PCC"', '"rq(pcc,svr),dataset"'))
    store = tmp_path / "out"
    given = ("--only", "method=rq(pcc,svr),dataset,seed=0", "--list", "--json")
    rows = json.loads(bench(plan, "--store", store, *given).stdout)
    assert [(row["method"], row["seed"]) for row in rows] == [("rq(pcc,svr),dataset", "0")]


def test_a_bad_plan_is_one_sentence(plan: Path) -> None:
    plan.write_text(PLAN.replace("lr+pcc", "lr+pccc"))
    result = bench(plan)
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith(f"{plan}: methods[1].expression is 'lr+pccc'")


def test_an_interrupt_says_where_things_are(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("prevalens.cli.plans.run_plan", interrupt)
    result = bench(plan, "--store", tmp_path / "out")
    assert result.exit_code != 0
    assert f"Finished cells are in {tmp_path / 'out'}; the same command" in result.stderr


def test_a_warning_is_one_line(plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as before:
        before.setattr("prevalens.experiments.run.__version__", "0.0.9")
        bench(plan, "--store", tmp_path / "out", "--only", "seed=0")
    result = bench(plan, "--store", tmp_path / "out")
    assert result.exit_code == 0
    (line,) = [line for line in result.stderr.splitlines() if "0.0.9" in line]
    assert line.startswith("prevalens: note: 2 of the 2 results found in")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--scheduler tcp://127.0.0.1:1", "No Dask scheduler answers at 'tcp://127.0.0.1:1' ("),
        ("--scheduler tcp://a:1 --jobs 2", "--jobs 2 starts processes on this machine, but --s"),
    ],
)
def test_a_scheduler_that_cannot_be_used_is_refused(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, sentence: str
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("prevalens.cluster._ANSWER", 0.5)
    result = bench(plan, "--store", tmp_path / "out", *options.split())
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith(sentence)
    assert not (tmp_path / "out").exists()


def test_finished_cells_are_reported_without_a_scheduler(plan: Path, tmp_path: Path) -> None:
    given = ("--store", tmp_path / "out", "--only", "seed=0")
    assert bench(plan, *given).exit_code == 0
    result = bench(plan, *given, "--no-run", "--scheduler", "tcp://127.0.0.1:1")
    assert "2 cells were there, 0 were computed, 0 failed." in result.stdout


def start(plan: Path, store: Path, *options: str) -> subprocess.Popen[bytes]:
    code = "from prevalens.cli.bench import command; command()"
    arguments = [str(plan), "--store", str(store), *options]
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.DEVNULL)


def kill_in_the_middle(process: subprocess.Popen[bytes], store: Path) -> int:
    end = time.monotonic() + 120
    while len(Store(store)) < 1 and process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    return len(Store(store))


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("uninterrupted")
    (folder / "long.toml").write_text(LONG)
    result = bench(folder / "long.toml", "--store", folder / "out")
    assert result.exit_code == 0
    return contents(folder / "out")


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        "--jobs 1",
        "--jobs 2",
        pytest.param(
            "--scheduler local",
            marks=pytest.mark.skipif(not find_spec("distributed"), reason="needs Dask"),
        ),
    ],
)
def test_killed_and_started_again_it_ends_as_if_never_killed(
    options: str, tmp_path: Path, uninterrupted: dict[str, bytes]
) -> None:
    plan, store = tmp_path / "long.toml", tmp_path / "out"
    plan.write_text(LONG)
    done = kill_in_the_middle(start(plan, store, *options.split()), store)
    assert 1 <= done < 4
    kept = contents(store)
    stamps = {path.name: path.stat().st_mtime_ns for path in (store / "cells").glob("[!.]*")}
    assert bench(plan, "--store", store, *options.split()).exit_code == 0
    assert contents(store) == uninterrupted
    for name, stamp in stamps.items():
        assert (store / "cells" / name).stat().st_mtime_ns == stamp
        assert kept[name] == uninterrupted[name]
