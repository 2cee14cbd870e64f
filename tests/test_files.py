from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.files import (
    about,
    damaged,
    digest,
    fingerprint,
    locate,
    read_bytes,
    read_text,
)
from prevalens.validation import FormatError, InputError

PACKERS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("suffix", PACKERS)
def test_content_is_the_same_however_packed(tmp_path: Path, suffix: str) -> None:
    content = "Wörter\nund mehr".encode()
    path = tmp_path / f"file{suffix}"
    path.write_bytes(PACKERS[suffix](content))
    assert read_bytes(path) == content
    assert digest(path) == hashlib.sha256(content).hexdigest()
    assert locate(tmp_path, "file") == path


def test_packing_is_seen_in_the_content_not_in_the_name(tmp_path: Path) -> None:
    path = tmp_path / "plain.txt"
    path.write_bytes(gzip.compress(b"packed"))
    assert read_bytes(path) == b"packed"


def test_text_that_is_not_utf8_is_latin1(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes("café".encode("latin-1"))
    assert read_text(path) == "café"
    path.write_bytes("\ufeffcafé".encode())
    assert read_text(path) == "café"


def test_absent_file_and_folder_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"There is no file .*nowhere\."):
        read_bytes(tmp_path / "nowhere")
    with pytest.raises(InputError, match="is a folder"):
        read_bytes(tmp_path)
    assert locate(tmp_path, "nowhere") is None


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
@given(keep=st.floats(0.05, 0.95), flip=st.booleans())
def test_damaged_packing_is_a_format_error(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, keep: float, flip: bool
) -> None:
    content = b"some content, long enough to be packed " * 20
    packed = bytearray(PACKERS[suffix](content))
    cut = max(7, int(keep * len(packed)))
    if flip:
        packed[cut - 1] ^= 0xFF
    else:
        del packed[cut:]
    path = tmp_path_factory.mktemp("packed") / "file"
    path.write_bytes(bytes(packed))
    try:
        found = read_bytes(path)
    except FormatError as error:
        sentence = str(error)
    else:
        # A flipped bit in a header field that does not matter.
        assert flip
        assert found == content
        sentence = str(path)
    assert str(path) in sentence


def test_errors_about_a_file_get_its_name() -> None:
    with pytest.raises(FormatError, match=r"^a\.csv: wrong$"), about("a.csv"):
        raise InputError("wrong")
    with pytest.raises(FormatError, match=r"^b, line 3: bad$"), about("a.csv"):
        raise damaged("b", "bad", line=3)


def test_fingerprint_does_not_depend_on_order() -> None:
    assert fingerprint(["a", "b"]) == fingerprint(["b", "a"]) != fingerprint(["a", "c"])
