"""Bytes from disk, from files handed in, and what goes wrong on the way."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from prevalens.errors import FormatError, InputError
from prevalens.files import ByteSource, file_ending


def test_a_file_handed_in_stays_open_and_can_be_read_again() -> None:
    file = io.BytesIO(gzip.compress(b"hello"))
    source = ByteSource(file, "x.csv.gz")
    assert source.content() == source.content() == b"hello"
    assert not file.closed
    assert source.suffix == ".csv"
    assert source.size == len(file.getvalue())


def test_cut_compressed_data(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"hello " * 1000)[:-10])
    with pytest.raises(FormatError, match="the compressed data is damaged or cut off"):
        ByteSource(path).content()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(13, "Permission denied"), "you have no permission"),
        (OSError(5, "Input/output error"), "Input/output error"),
    ],
)
def test_failures_of_the_system_are_sentences(
    error: OSError, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(Path, "open", fail)
    with pytest.raises(InputError, match=f"x cannot be read: {words}"):
        ByteSource(tmp_path / "x").content()


def test_text_that_ends_within_a_character() -> None:
    source = ByteSource(io.BytesIO("aé".encode("utf-16")[:-1]), "x.csv")
    with pytest.raises(FormatError, match="is not utf-16"), source.text() as (text, _):
        text.read()


@pytest.mark.parametrize(
    ("name", "ending"),
    [("a.CSV", ".csv"), ("a.csv.gz", ".csv"), ("a.b.json.xz", ".json"), ("a", "")],
)
def test_endings(name: str, ending: str) -> None:
    assert file_ending(Path(name)) == ending
