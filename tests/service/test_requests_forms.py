from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.service.problems import Problem
from prevalens.service.requests import FormReader, display_name, file_ending
from prevalens.service.settings import Limits

LIMITS = Limits(files=2)


def _part(name: str, content: bytes, filename: str | None = None) -> bytes:
    named = f'; filename="{filename}"' if filename is not None else ""
    head = f'--B\r\nContent-Disposition: form-data; name="{name}"{named}\r\n\r\n'
    return head.encode() + content + b"\r\n"


def _read(body: bytes, folder: Path, cuts: list[int] | None = None) -> FormReader:
    form = FormReader(b"B", folder, LIMITS)
    edges = [0, *sorted(cuts or []), len(body)]
    try:
        for start, end in pairwise(edges):
            form.write(body[start:end])
        form.end()
    finally:
        form.abandon()
    return form


@given(
    first=st.binary(max_size=200),
    second=st.binary(max_size=50),
    cuts=st.lists(st.integers(0, 500), max_size=8),
)
def test_the_pieces_a_body_comes_in_do_not_matter(
    first: bytes, second: bytes, cuts: list[int]
) -> None:
    body = _part("file", first, "a.csv") + _part("by", b"month") + _part("file", second, "b.tsv")
    body += b"--B--\r\n"
    with tempfile.TemporaryDirectory() as folder:
        form = _read(body, Path(folder), [min(cut, len(body)) for cut in cuts])
        assert [one.path.read_bytes() for one in form.files] == [first, second]
        assert [one.size for one in form.files] == [len(first), len(second)]
        assert [one.name for one in form.files] == ["a.csv", "b.tsv"]
        assert form.fields == {"by": "month"}


@pytest.mark.parametrize(
    "name",
    [
        "../../../../tmp/evil.csv",
        "/etc/passwd.csv",
        "..\\..\\evil.csv",
        "a/../../b.csv",
        "a\x00.csv",
    ],
)
def test_no_name_of_a_client_reaches_the_disk(name: str, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    form = _read(_part("file", b"x", name) + b"--B--\r\n", inside)
    assert [one.name for one in inside.iterdir()] == ["0.csv"]
    assert [one.name for one in tmp_path.iterdir()] == ["inside"]
    assert "/" not in form.files[0].name
    assert "\\" not in form.files[0].name


@given(st.text(max_size=80))
def test_a_display_name_is_one_line_without_folders(name: str) -> None:
    shown = display_name(name)
    assert shown
    assert not set(shown) & set("/\\\n\r\x00")
    assert shown not in {".", ".."}


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        ("May.CSV", "csv"),
        ("a.jsonl.gz", "jsonl.gz"),
        ("x.tar.csv", "csv"),
        ("b.parquet", "parquet"),
    ],
)
def test_endings_tell_the_format(name: str, ending: str) -> None:
    assert file_ending(name) == ending


@pytest.mark.parametrize("name", ["a.exe", "csv", "a.gz", "a.prevalens", "a.csv.zip", ""])
def test_other_endings_are_refused(name: str) -> None:
    with pytest.raises(Problem, match="no known ending"):
        file_ending(name)


def test_a_body_that_ends_early_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="ends in the middle"):
        _read(_part("file", b"x", "a.csv"), tmp_path)


def test_a_damaged_body_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="damaged"):
        _read(b"this is no form", tmp_path)


def test_a_part_without_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="has no name"):
        _read(b"--B\r\nContent-Disposition: form-data\r\n\r\nx\r\n--B--\r\n", tmp_path)


def test_files_fields_and_their_lengths_are_limited(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="up to 2 files"):
        _read(_part("file", b"x", "a.csv") * 3, tmp_path)
    with pytest.raises(Problem, match="up to 100 fields"):
        _read(b"".join(_part(f"f{i}", b"x") for i in range(101)), tmp_path)
    with pytest.raises(Problem, match="longer than 64 KB"):
        _read(_part("by", b"x" * 70_000), tmp_path)
