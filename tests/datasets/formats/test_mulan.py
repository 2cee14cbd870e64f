from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from prevalens.datasets.formats.mulan import label_names, mulan_parts, read_mulan
from prevalens.validation import FormatError, InputError

ARFF = (
    "@relation r\n@attribute b {0,1}\n@attribute x real\n@attribute 'a\\'s' {0,1}\n"
    "@data\n1,2.5,0\n0,1,1\n"
)


@pytest.fixture
def arff(tmp_path: Path) -> Path:
    path = tmp_path / "f.arff"
    path.write_text(ARFF)
    return path


def xml(tmp_path: Path, content: str) -> Path:
    path = tmp_path / "f.xml"
    path.write_text(content)
    return path


def test_labels_are_matched_by_name_in_the_order_of_the_xml(arff: Path, tmp_path: Path) -> None:
    path = xml(tmp_path, '<labels xmlns="u"><label name="a\'s"/><label name="b"></label></labels>')
    found = read_mulan(arff, path)
    assert found.labels == ("a's", "b")
    assert found.Y.tolist() == [[0, 1], [1, 0]]
    assert found.features == ("x",)
    assert found.X.tolist() == [[2.5], [1.0]]


def test_labels_by_names(arff: Path) -> None:
    assert read_mulan(arff, ["b"]).Y.tolist() == [[1], [0]]


def test_hierarchies_are_flattened(tmp_path: Path) -> None:
    path = xml(
        tmp_path, '<labels><label name="p"><label name="c"/></label><label name="q"/></labels>'
    )
    assert label_names(path) == ["p", "c", "q"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("<labels>\n<label name='a'>", "line 2: this is not well-formed XML"),
        ("", "line 1: this is not well-formed XML"),
        ("<labels></labels>", "expected <label name"),
        ("<labels><label/></labels>", "expected <label name"),
        ('<?xml version="1.0" encoding="nonsense"?><labels/>', "not well-formed XML"),
    ],
)
def test_bad_xml_is_one_sentence(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(FormatError, match=rf"f\.xml.*{words}"):
        label_names(xml(tmp_path, content))


def test_label_without_attribute(arff: Path) -> None:
    with pytest.raises(FormatError, match=r"f\.arff: there is no attribute for the label 'z'"):
        read_mulan(arff, ["z"])
    with pytest.raises(InputError, match="'b' stands twice"):
        read_mulan(arff, ["b", "b"])
    with pytest.raises(InputError, match="No labels are named"):
        read_mulan(arff, [])


def test_parts(tmp_path: Path, mulan_texts: dict[str, str]) -> None:
    paths = {role: tmp_path / role for role in mulan_texts}
    for role, path in paths.items():
        path.write_text(mulan_texts[role])
    parts = mulan_parts(**paths)
    assert (parts.train.n_items, parts.test.n_items) == (40, 30)
    assert parts.train.labels == parts.test.labels == ("y0", "y1")
    assert parts.train.times is None


@pytest.mark.data
def test_traps_of_the_public_files(data_home: Path) -> None:
    birds = read_mulan(data_home / "birds/birds-train.arff.gz", data_home / "birds/birds.xml.gz")
    assert "Swainson's Thrush" in birds.labels
    assert birds.features is not None
    sites = birds.X[:, birds.features.index("location")]
    assert set(sites) <= {2, 10, 1, 7, 5, 4, 17, 15, 16, 8, 13, 11}
    genbase = read_mulan(
        data_home / "genbase/genbase-train.arff.gz", data_home / "genbase/genbase.xml.gz"
    )
    # YES is declared first, and is rare: it must not become 0.
    assert genbase.X[:, 1:].mean() < 0.05
    # In yeast the XML lists the labels in another order than the ARFF file.
    yeast = read_mulan(data_home / "yeast/yeast-train.arff.gz", data_home / "yeast/yeast.xml.gz")
    names = label_names(data_home / "yeast/yeast.xml.gz")
    shares = dict(zip(yeast.labels, yeast.prevalence, strict=True))
    assert list(yeast.labels) == names != sorted(names)
    assert shares["Class14"] == pytest.approx(0.014, abs=5e-4)
    assert not np.isnan(yeast.X).any()
