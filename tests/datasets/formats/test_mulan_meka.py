from __future__ import annotations

from pathlib import Path

import pytest

from prevalens.datasets.formats.mulan import label_count, read_meka
from prevalens.validation import FormatError


def write(tmp_path: Path, relation: str) -> Path:
    path = tmp_path / "f.arff"
    path.write_text(
        f"@relation {relation}\n@attribute a {{0,1}}\n@attribute b {{0,1}}\n@attribute c {{0,1}}\n"
        "@data\n1,0,1\n0,0,1\n"
    )
    return path


@pytest.mark.parametrize(
    ("relation", "labels", "features"),
    [
        ("'Small: -C 1'", ("a",), ("b", "c")),
        ("'Small: -C 2 -I 0'", ("a", "b"), ("c",)),
        ("'Small: -C -1'", ("c",), ("a", "b")),
        ("'Small: -split-number 5 -C -2 '", ("b", "c"), ("a",)),
    ],
)
def test_first_or_last_attributes_are_labels(
    tmp_path: Path, relation: str, labels: tuple[str, ...], features: tuple[str, ...]
) -> None:
    found = read_meka(write(tmp_path, relation))
    assert found.labels == labels
    assert found.features == features
    columns = {"a": [1, 0], "b": [0, 0], "c": [1, 1]}
    assert found.Y.T.tolist() == [columns[name] for name in labels]


@pytest.mark.parametrize("relation", ["plain", "'x-C 3'", "'x: -D 3'"])
def test_no_option(tmp_path: Path, relation: str) -> None:
    with pytest.raises(FormatError, match=r"f\.arff: the relation name has no option -C"):
        read_meka(write(tmp_path, relation))


@pytest.mark.parametrize("count", [0, 3, -3, 99])
def test_option_that_does_not_fit(tmp_path: Path, count: int) -> None:
    with pytest.raises(FormatError, match=f"-C {count} does not fit 3 attributes"):
        read_meka(write(tmp_path, f"'x: -C {count}'"))


def test_count_in_the_name() -> None:
    assert label_count("MEDC: -C 45 -I 0-weka.filters") == 45
    assert label_count("nothing") is None
