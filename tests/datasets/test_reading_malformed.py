"""Whatever happens to a file, its reader gives a result or one sentence, never a foreign error."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
from hypothesis import given, settings
from hypothesis import strategies as st

from prevalens.collection import Collection
from prevalens.datasets import read
from prevalens.datasets.formats.corpora import parse_stories
from prevalens.datasets.formats.mulan import label_names
from prevalens.validation import FormatError, InputError

HEADER = "@relation 'r: -C 2'\n@attribute 'a\\'s' {0,1}\n@attribute b {NO,YES}\n@attribute x real\n"


@cache
def matlab() -> bytes:
    stream = io.BytesIO()
    labels = np.array([[1, 0, 1], [0, 0, 1]], dtype=np.uint8)
    scipy.io.savemat(stream, {"data": np.eye(3), "target": labels}, do_compression=False)
    return stream.getvalue()


@cache
def parquet() -> bytes:
    pa = pytest.importorskip("pyarrow")
    stream = io.BytesIO()
    table = pa.table({"text": ["one", "two"], "tags": [["a"], ["a", "b"]]})
    pytest.importorskip("pyarrow.parquet").write_table(table, stream)
    return stream.getvalue()


LINES = [json.dumps({"text": "one", "tags": ["a"]}), json.dumps({"text": "two", "tags": ["b"]})]
TEXT = {"tags": "tags", "text": "text"}
#: A good file of each format, its name, and how to read it.
GOOD: dict[str, tuple[Callable[[], bytes], dict[str, Any]]] = {
    "dense.arff": (lambda: f"{HEADER}@data\n0,NO,1.5\n1,'YES',-2\n% c\n0,YES,3\n".encode(), {}),
    "sparse.arff": (lambda: f"{HEADER}@data\n{{0 1,2 3.5}}\n{{}}\n{{1 YES}}\n".encode(), {}),
    "f.svm": (lambda: b"0,2 1:0.5 3:2\n1 2:1 # c\n 1:4\n", {}),
    "f.csv": (lambda: b'x,"a b",y\n1,2,0\n"3",4,1\n', {"labels": ["y"]}),
    "tags.csv": (lambda: b'text,tags\n"one, two",a;b\nthree,\n', TEXT),
    "f.jsonl": (lambda: "\n".join(LINES).encode(), TEXT),
    "f.parquet": (parquet, TEXT),
    "f.mat": (matlab, {}),
}


def damage(data: st.DataObject, content: bytes) -> bytes:
    """Cut, overwrite, insert, remove or repeat something."""
    at = data.draw(st.integers(0, len(content)))
    length = data.draw(st.integers(1, 8))
    piece = data.draw(
        st.binary(min_size=1, max_size=8)
        | st.sampled_from(
            [b",", b"{", b"}", b"'", b'"', b"\n", b"?", b" ", b":", b"<", b"@data", b"9e99"]
        )
    )
    return data.draw(
        st.sampled_from(
            [
                content[:at],
                content[:at] + piece + content[at + len(piece) :],
                content[:at] + piece + content[at:],
                content[:at] + content[at + length :],
                content[:at] + content[at : at + 20 * length] + content[at:],
            ]
        )
    )


def check(error: InputError, name: str) -> None:
    assert name in str(error)
    assert "\n" not in str(error).strip()


@pytest.mark.parametrize("name", GOOD)
def test_the_good_files_are_good(tmp_path: Path, name: str) -> None:
    make, choice = GOOD[name]
    for suffix, pack in (("", bytes), (".gz", gzip.compress)):
        path = tmp_path / f"{name}{suffix}"
        path.write_bytes(pack(make()))
        assert read(path, **choice).n_items >= 2


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("packed", [False, True])
@settings(max_examples=80)
@given(data=st.data())
def test_damaged_files(
    tmp_path_factory: pytest.TempPathFactory, name: str, packed: bool, data: st.DataObject
) -> None:
    make, choice = GOOD[name]
    content = gzip.compress(make(), mtime=0) if packed else make()
    path = tmp_path_factory.getbasetemp() / f"damaged-{name}"
    path.write_bytes(damage(data, content))
    try:
        found = read(path, **choice)
    except InputError as error:
        check(error, path.name)
    else:
        assert isinstance(found, Collection)


@given(data=st.data())
def test_damaged_label_files(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    content = (
        b'<?xml version="1.0" encoding="utf-8"?>\n'
        b'<labels xmlns="u">\n<label name="a"></label>\n</labels>'
    )
    path = tmp_path_factory.getbasetemp() / "damaged.xml"
    path.write_bytes(damage(data, content))
    try:
        assert label_names(path)
    except InputError as error:
        check(error, path.name)


@given(data=st.data())
def test_damaged_stories(story: Callable[..., str], data: st.DataObject) -> None:
    content = (story(1, "TRAIN", ["a"], "one") + story(2, "TEST", ["b"], "two")).encode("latin-1")
    try:
        found = list(parse_stories(damage(data, content).decode("latin-1"), "f.sgm"))
    except FormatError as error:
        check(error, "f.sgm")
    else:
        assert found
