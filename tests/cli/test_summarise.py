"""`prevalens summarise` and `watch` answer as the items do, and count nothing twice."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from prevalens.__main__ import cli
from prevalens.errors import PrevalensError
from prevalens.model import fit_files
from prevalens.summary import Summary

WORDS = {"billing": ["invoice", "payment", "refund"], "login": ["password", "account", "locked"]}


def write(path: Path, n_rows: int, seed: int, month: int = 1) -> Path:
    rng = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "date", "billing", "login"])
        for row in range(n_rows):
            labels = (rng.random(2) < (0.3, 0.5)).astype(int)
            words = [
                rng.choice(WORDS[name]) for name, has in zip(WORDS, labels, strict=True) if has
            ]
            text = " ".join([*words, *rng.choice(["hello", "please", "thanks"], 2)])
            writer.writerow([text, f"2024-{month + row % 3:02d}-05", *labels])
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("summaries")
    train = write(folder / "train.csv", 300, 0)
    how = {"text": "text", "labels": ["billing", "login"], "method": "lr+mixture"}
    fit_files(train, **how).save(folder / "m.prevalens")
    for number in (1, 2, 3):
        write(folder / f"site{number}.csv", 100 + 20 * number, number)
    return folder


def run(*words: object) -> None:
    done = CliRunner().invoke(cli, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output


def rows(path: Path) -> dict[tuple[str, str], dict[str, float]]:
    with path.open() as file:
        return {
            (row["group"], row["label"]): {
                name: float(row[name]) for name in ("n_items", "prevalence", "lower", "upper")
            }
            for row in csv.DictReader(file)
        }


def same(a: Path, b: Path) -> None:
    first, second = rows(a), rows(b)
    assert first.keys() == second.keys()
    for key, cells in first.items():
        assert cells == pytest.approx(second[key], abs=1e-9)


@pytest.mark.parametrize("jobs", [1, 2])
def test_sites_together_answer_as_all_items_do(folder: Path, tmp_path: Path, jobs: int) -> None:
    model, sites = folder / "m.prevalens", sorted(folder.glob("site*.csv"))
    by = ("--by-time", "date")
    run("summarise", model, *sites[:2], *by, "--jobs", jobs, "-o", tmp_path / "a.summary")
    run("summarise", model, sites[2], *by, "-o", tmp_path / "b.summary")
    summaries = (tmp_path / "b.summary", tmp_path / "a.summary")
    run("quantify", model, *summaries, "-o", tmp_path / "sums.csv")
    run("quantify", model, *sites, *by, "-o", tmp_path / "items.csv")
    same(tmp_path / "sums.csv", tmp_path / "items.csv")
    assert "invoice" not in (tmp_path / "a.summary").read_bytes().decode("latin-1")


def test_every_file_is_a_batch_without_a_grouping(folder: Path, tmp_path: Path) -> None:
    sites = sorted(folder.glob("site*.csv"))
    run("summarise", folder / "m.prevalens", *sites, "-o", tmp_path / "a.summary")
    assert Summary.load(tmp_path / "a.summary").names == ("site1", "site2", "site3")


def test_bad_input_is_refused_in_a_sentence(folder: Path, tmp_path: Path) -> None:
    model, site = folder / "m.prevalens", folder / "site1.csv"
    summary = tmp_path / "a.summary"
    run("summarise", model, site, "-o", summary)
    copy = tmp_path / "copy.summary"
    copy.write_bytes(summary.read_bytes())
    other = fit_files(site, text="text", labels=["billing", "login"], method="lr+pcc")
    other.save(tmp_path / "other.prevalens")
    (tmp_path / "damaged.summary").write_bytes(summary.read_bytes()[:200])
    refused = {
        "ends in .summary": ("summarise", model, site, "-o", tmp_path / "a.csv"),
        "counted twice": ("quantify", model, summary, copy),
        "made by another model": ("quantify", tmp_path / "other.prevalens", summary),
        "is no summary that prevalens wrote": ("quantify", model, tmp_path / "damaged.summary"),
        "is no summary; name summaries": ("quantify", model, summary, site),
        "--by needs the items": ("quantify", model, summary, "--by", "date"),
        "No batch has 5,000 items": (
            *("summarise", model, site, "--min-group", 5000),
            *("-o", tmp_path / "b.summary"),
        ),
    }
    for sentence, arguments in refused.items():
        with pytest.raises(PrevalensError, match=sentence):
            run(*arguments)
    assert not (tmp_path / "b.summary").exists()


def test_a_folder_is_counted_once_also_after_a_restart(folder: Path, tmp_path: Path) -> None:
    model, inbox, state = folder / "m.prevalens", tmp_path / "in", tmp_path / "s.summary"
    inbox.mkdir()
    watch = ("watch", model, inbox, "--state", state, "--by-time", "date", "--once")
    for number in (1, 2, 1):
        path = inbox / f"{number}.csv"
        path.write_bytes((folder / f"site{number}.csv").read_bytes())
        os.utime(path, (1, number))
        run(*watch, "-o", tmp_path / "out.csv")
    assert Summary.load(state).n_items == 260
    sites = (folder / "site1.csv", folder / "site2.csv")
    run("quantify", model, *sites, "--by-time", "date", "-o", tmp_path / "items.csv")
    same(tmp_path / "out.csv", tmp_path / "items.csv")


def test_a_killed_watch_loses_nothing_and_counts_nothing_twice(
    folder: Path, tmp_path: Path
) -> None:
    model, inbox, state = folder / "m.prevalens", tmp_path / "in", tmp_path / "s.summary"
    inbox.mkdir()
    for number in range(12):
        path = inbox / f"{number:02d}.csv"
        write(path, 50, 100 + number)
        os.utime(path, (1, 1))
    command = [sys.executable, "-m", "prevalens", "watch", str(model), str(inbox)]
    command += ["--state", str(state), "--by-time", "date", "--every", "0.1"]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.time() + 60
    while not state.exists() and time.time() < deadline:
        time.sleep(0.005)
    child.send_signal(signal.SIGKILL)
    child.wait()
    counted = Summary.load(state)
    assert counted.n_items == 50 * len(counted.sources)
    once = ("watch", model, inbox, "--state", state, "--by-time", "date", "--once")
    run(*once)
    assert Summary.load(state).n_items == 600


@pytest.mark.parametrize("form", ["json", "csv"])
def test_lines_of_standard_input(folder: Path, tmp_path: Path, form: str) -> None:
    source = folder / "site1.csv"
    text = source.read_text()
    if form == "json":
        with source.open() as file:
            text = "".join(json.dumps(row) + "\n" for row in csv.DictReader(file))
    command = [sys.executable, "-m", "prevalens", "watch", str(folder / "m.prevalens"), "-"]
    command += ["--state", str(tmp_path / "s.summary"), "-o", str(tmp_path / "out.csv")]
    command += ["--by-time", "date"]
    done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    model = folder / "m.prevalens"
    run("quantify", model, source, "--by-time", "date", "-o", tmp_path / "items.csv")
    same(tmp_path / "out.csv", tmp_path / "items.csv")


def test_lines_that_are_no_items(folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "prevalens", "watch", str(folder / "m.prevalens"), "-"]
    command += ["--state", str(tmp_path / "s.summary")]
    done = subprocess.run(
        command, input='{"text": "a"}\n{"text"\n', text=True, capture_output=True, check=False
    )
    assert done.returncode == 2
    assert "Standard input, line 2: no JSON object" in done.stderr
    assert not (tmp_path / "s.summary").exists()
