"""docs/service.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from prevalens.service.command import command
from prevalens.service.problems import STATUS
from prevalens.service.settings import Limits

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def text() -> str:
    return (ROOT / "docs" / "service.md").read_text(encoding="utf-8")


def test_every_code_is_explained_with_its_status(text: str) -> None:
    found = {
        code: int(status)
        for codes, status in re.findall(
            r"^\| ((?:`\w+`(?:, )?)+) \| (\d{3}) \|", text, re.MULTILINE
        )
        for code in re.findall(r"`(\w+)`", codes)
    }
    assert found == {code: int(status) for code, status in STATUS.items()}


def test_every_option_is_there(text: str) -> None:
    options = {one for parameter in command.params for one in parameter.opts if one[:2] == "--"}
    named = set(re.findall(r"(--[a-z][a-z-]+)", text))
    assert named <= options
    assert options - named <= {"--port"}


def test_the_limits_are_the_defaults(text: str) -> None:
    limits = Limits()
    for words in (
        f"| size of a request | {limits.upload_bytes // 10**6} MB |",
        f"when unpacked | {limits.unpacked_bytes // 10**9} GB",
        f"| files in a request | {limits.files} |",
        f"| rows of a file | {limits.rows:,} |",
        f"| columns of a file | {limits.columns:,} |",
        f"| time of an estimate | {limits.quantify_seconds:.0f} s |",
        f"| time of a training | {limits.train_seconds:,.0f} s |",
        f"| requests that may wait for a worker | {limits.waiting} of one client, "
        f"{4 * limits.waiting} in all |",
        f"| connections | {limits.connections} |",
        f"| {limits.stall_seconds:.0f} s | |",
        "| memory of a worker | 8 GB, or half of the machine's",
        f"| uploads kept at one time | {limits.stored_bytes // 10**9} GB, with",
        f"{limits.kept_seconds / 3600:.0f} hour, {limits.kept_jobs} jobs",
        f"| models trained here | {limits.kept_models},",
    ):
        assert words in text


def test_pictures_are_there(text: str) -> None:
    for name in re.findall(r"images/[\w.-]+", text):
        assert (ROOT / "docs" / name).is_file(), name


def test_the_figures_are_those_that_were_measured(text: str) -> None:
    measured = (ROOT / "benchmarks" / "results" / "service.md").read_text(encoding="utf-8")
    rows = [line for line in measured.splitlines() if line.startswith("| ")]
    assert len(rows) > 10
    assert [row for row in rows if row not in text] == []
