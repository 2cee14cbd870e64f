from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from prevalens.datasets.formats.corpora import ohsumed_parts, read_ohsumed
from prevalens.validation import FormatError, InputError


def place(root: Path, documents: dict[str, str], *, packed: bool = False) -> Path:
    for name, text in documents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = text.encode("latin-1")
        if packed:
            path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(content))
        else:
            path.write_bytes(content)
    return root


def archive(path: Path, documents: dict[str, str]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, text in documents.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode("latin-1")))
    return path


SMALL = {"C01/0001": "heart", "C01/0002": "caf\xe9", "C02/0002": "caf\xe9", "C02/0003": "lung"}
#: Ten documents in C01, ten more in C02, five of C01 also in C02.
MANY = (
    {f"C01/{i:04d}": f"one {i}" for i in range(10)}
    | {f"C02/{i:04d}": f"two {i}" for i in range(10, 20)}
    | {f"C02/{i:04d}": f"one {i}" for i in range(5)}
)


@pytest.mark.parametrize("packed", [False, True])
def test_a_document_in_several_folders_has_several_labels(tmp_path: Path, packed: bool) -> None:
    found = read_ohsumed(place(tmp_path / "all", SMALL, packed=packed))
    assert found.labels == ("C01", "C02")
    assert found.X.tolist() == ["heart", "café", "lung"]
    assert found.Y.tolist() == [[1, 0], [1, 1], [0, 1]]


def test_archive_reads_like_the_folder(tmp_path: Path) -> None:
    names = {f"ohsumed-all/{name}": text for name, text in SMALL.items()}
    packed = read_ohsumed(archive(tmp_path / "ohsumed-all-docs.tar.gz", names))
    plain = read_ohsumed(place(tmp_path / "all", SMALL))
    assert packed.X.tolist() == plain.X.tolist()
    assert packed.Y.tolist() == plain.Y.tolist()


def test_given_split(tmp_path: Path) -> None:
    tree = {f"training/{name}": text for name, text in SMALL.items()}
    tree |= {"test/C03/0009": "skin", "test/C01/0009": "skin", "readme.txt": "hello"}
    root = place(tmp_path / "all", tree)
    for parts in (ohsumed_parts(root), ohsumed_parts(root / "training", root / "test")):
        assert parts.train.labels == parts.test.labels == ("C01", "C02", "C03")
        assert parts.train.n_items == 3
        assert parts.test.X.tolist() == ["skin"]
        assert parts.test.Y.tolist() == [[1, 0, 1]]


def test_seventy_percent_of_each_class_train(tmp_path: Path) -> None:
    parts = ohsumed_parts(place(tmp_path / "ohsumed-all", MANY))
    assert (parts.train.n_items, parts.test.n_items) == (14, 6)
    texts = [*parts.train.X, *parts.test.X]
    assert sorted(texts) == sorted(set(MANY.values()))
    # The documents of C01 are assigned with C01, whether or not they are in C02.
    assert sum(text.startswith("one") for text in parts.train.X) == 7
    assert parts.train.Y[:, 0].sum() == 7


def test_bad_trees_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no class folder with documents"):
        ohsumed_parts(tmp_path / "empty")
    with pytest.raises(FormatError, match="1 documents are too few"):
        ohsumed_parts(place(tmp_path / "one", {"C01/1": "x"}))
    with pytest.raises(FormatError, match="too few"):
        ohsumed_parts(place(tmp_path / "half", {"training/C01/1": "x"}))
