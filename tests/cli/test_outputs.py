"""Outputs never destroy an input, and no file of another kind without --force."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pytest
from click.testing import CliRunner

from prevalens import __main__ as program
from prevalens.cli.outputs import DOCUMENT, MODEL, PAGE, TABLE, check_outputs
from prevalens.datasets.tickets import SEPARATOR, tickets, write_tickets
from prevalens.errors import InputError

FIT = ("--text", "text", "--tags", "tags", "--sep", SEPARATOR, "--method", "lr+pcc")
LABELLED = ("--tags", "tags", "--sep", SEPARATOR, "--samples", "5", "--protocol", "ml-app")


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tickets as files, and a model of them."""
    folder = tmp_path_factory.mktemp("stock")
    write_tickets(tickets(120, 20, months=2, random_state=0), folder)
    run("fit", folder / "train.csv", "-o", folder / "m.prevalens", *FIT)
    return folder


@pytest.fixture
def folder(stock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("train.csv", "labelled.csv", "m.prevalens"):
        (tmp_path / name).write_bytes((stock / name).read_bytes())
    (tmp_path / "months").mkdir()
    for file in (stock / "months").iterdir():
        (tmp_path / "months" / file.name).write_bytes(file.read_bytes())
    (tmp_path / "link.csv").symlink_to(tmp_path / "train.csv")
    os.link(tmp_path / "m.prevalens", tmp_path / "other.html")
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "plan.toml").write_text("mine")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str | Path) -> str:
    done = CliRunner().invoke(program.cli, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


QUANTIFY = ("quantify", "m.prevalens", "months")
EVALUATE = ("evaluate", "m.prevalens", "labelled.csv", *LABELLED)
COMPARE = ("compare", "train.csv", "--text", "text", "--methods", "naive", *LABELLED)


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "train.csv", "-o", "train.csv", *FIT),
        ("fit", "train.csv", "-o", "link.csv", *FIT),
        ("fit", "tr*.csv", "-o", "train.csv", *FIT),
        ("fit", ".", "-o", "labelled.csv", *FIT),
        (*QUANTIFY, "-o", "months/2026-01.csv"),
        ("quantify", "m.prevalens", "months/*-01.csv", "-o", "./months/../months/2026-01.csv"),
        (*QUANTIFY, "--html", "m.prevalens"),
        (*QUANTIFY, "--html", "other.html"),
        (*EVALUATE, "-o", "labelled.csv"),
        (*EVALUATE, "--html", "m.prevalens"),
        (*COMPARE, "-o", "train.csv"),
        (*COMPARE, "--html", "link.csv"),
    ],
    ids=lambda words: " ".join(words[:5]),
)
@pytest.mark.parametrize("forced", [(), ("--force",)], ids=["", "forced"])
def test_an_input_is_never_overwritten(
    folder: Path, words: tuple[str, ...], forced: tuple[str, ...]
) -> None:
    before = contents(folder)
    with pytest.raises(InputError, match=r"is an input of this command.*name another file"):
        run(*words, *forced)
    assert contents(folder) == before


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "train.csv", "-o", "notes.txt", *FIT),
        ("fit", "train.csv", "-o", "labelled.csv", *FIT),
        ("quantify", "m.prevalens", "months", "--html", "notes.txt"),
        ("evaluate", "other.html", "labelled.csv", *LABELLED, "--html", "train.csv"),
        (*COMPARE, "--html", "m.prevalens"),
        (*COMPARE, "--html", "other.html"),
        ("demo", "--report", "m.prevalens"),
    ],
    ids=lambda words: " ".join(words[:5]),
)
def test_a_file_of_another_kind_needs_force(folder: Path, words: tuple[str, ...]) -> None:
    before = contents(folder)
    with pytest.raises(InputError, match=r"exists and is not a .* overwrite it with --force"):
        run(*words)
    assert contents(folder) == before


def test_force_overwrites_a_file_of_another_kind(folder: Path) -> None:
    run(*QUANTIFY, "--html", "notes.txt", "--force")
    assert (folder / "notes.txt").read_text().lower().startswith("<!doctype html")
    run(*QUANTIFY, "--html", "new.html", "-o", "new.csv")
    run(*QUANTIFY, "--html", "new.html", "-o", "new.csv")
    run("fit", "train.csv", "-o", "m.prevalens", *FIT)


def test_two_outputs_are_two_files(folder: Path) -> None:
    with pytest.raises(InputError, match=r"x\.html is named for two outputs"):
        run(*COMPARE, "--html", "x.html", "-o", "./x.html")


def test_the_demo_writes_into_no_folder_with_other_files(folder: Path) -> None:
    before = contents(folder)
    with pytest.raises(InputError, match=r"holds other files.*--force"):
        run("demo", "--files", ".")
    assert contents(folder) == before
    run("demo", "--files", "fresh")
    run("demo", "--files", "fresh")


@pytest.mark.parametrize("kind", [MODEL, PAGE, TABLE, DOCUMENT], ids=lambda kind: kind.name)
def test_an_empty_file_may_be_replaced_by_any_kind(folder: Path, kind: object) -> None:
    (folder / "new").touch()
    check_outputs([(kind, folder / "new")])  # type: ignore[list-item]


def test_an_empty_separator_of_tags_is_refused(folder: Path) -> None:
    words = ["fit", "train.csv", "--text", "text", "--tags", "tags", "--sep", ""]
    with pytest.raises(InputError, match="The separator of tags is empty; name one or more"):
        run(*words)


def printed_to(target: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A command whose standard output is a device."""
    with open(target, "w", encoding="utf-8") as device:  # noqa: PTH123
        return subprocess.run(
            [sys.executable, "-m", "prevalens", *words],
            stdout=device,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=120,
        )


full_device = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")


@full_device
@pytest.mark.parametrize(
    "words",
    [
        ("--help",),
        ("methods",),
        ("methods", "--json"),
        ("inspect", "m.prevalens"),
        ("quantify", "m.prevalens", "months"),
        ("quantify", "m.prevalens", "months", "--json"),
        ("datasets",),
    ],
    ids=" ".join,
)
def test_printing_to_a_full_device_is_one_sentence(folder: Path, words: tuple[str, ...]) -> None:
    done = printed_to("/dev/full", *words)
    last = done.stderr.splitlines()[-1]
    assert last == "prevalens: The output cannot be written: No space left on device."
    assert "Traceback" not in done.stderr
    assert done.returncode == 2


@full_device
def test_writing_to_a_full_device_is_one_sentence(folder: Path) -> None:
    def refused(write: Callable[[], str]) -> str:
        with pytest.raises(InputError) as error:
            write()
        return str(error.value)

    assert refused(lambda: run("fit", "train.csv", "-o", "/dev/full", *FIT)) == (
        "/dev/full cannot be written: the disk is full. Nothing was left there."
    )
    assert "disk is full" in refused(lambda: run(*QUANTIFY, "--html", "/dev/full"))
    assert Path("/dev/full").is_char_device()


@pytest.mark.parametrize(
    "option", ["--html", "--markdown", "--latex", "--records", "--leaderboard", "--drift"]
)
def test_bench_overwrites_neither_its_plan_nor_other_files(folder: Path, option: str) -> None:
    (folder / "plan.toml").write_text(
        'name = "p"\ndatasets = ["emotions"]\nmetrics = ["ae"]\nseeds = [0]\n'
        '[[methods]]\nexpression = "naive"\n'
        '[[protocols]]\nname = "natural"\nsize = 10\nn_samples = 2\n'
    )
    before = contents(folder)
    with pytest.raises(InputError, match="is an input of this command"):
        run("bench", "plan.toml", option, "plan.toml")
    with pytest.raises(InputError, match="exists and is not a"):
        run("bench", "plan.toml", option, "m.prevalens")
    assert contents(folder) == before


def test_paper_overwrites_no_other_file(folder: Path) -> None:
    with pytest.raises(InputError, match="exists and is not a"):
        run("paper", "--fast", "--no-run", "--reproduction", "train.csv")


def test_a_workbook_of_results_is_replaced_and_another_is_not(folder: Path) -> None:
    run(*QUANTIFY, "-o", "out.xlsx")
    run(*QUANTIFY, "-o", "out.xlsx")
    book = openpyxl.Workbook()
    book.active.append(["mine"])
    book.save("mine.xlsx")
    (folder / "damaged.xlsx").write_bytes((folder / "out.xlsx").read_bytes()[:-300])
    for name in ("mine.xlsx", "damaged.xlsx"):
        before = (folder / name).read_bytes()
        with pytest.raises(InputError, match="is not a table of results"):
            run(*QUANTIFY, "-o", name)
        assert (folder / name).read_bytes() == before
    run(*QUANTIFY, "-o", "mine.xlsx", "--force")
    assert openpyxl.load_workbook("mine.xlsx").sheetnames == ["estimates", "batches", "notes"]
