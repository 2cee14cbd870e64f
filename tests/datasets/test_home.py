from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prevalens.datasets import home as module
from prevalens.datasets.fetch import DownloadError
from prevalens.datasets.home import DataNotFoundError, acquire, data_home, find
from prevalens.datasets.registry import RegistryEntry, lookup

NAMES = ("emotions-train.arff", "emotions-test.arff", "emotions.xml")


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREVALENS_DATA", raising=False)
    monkeypatch.delenv("PREVALENS_MIRROR", raising=False)
    # No waiting between tries of a download.
    monkeypatch.setattr("prevalens.datasets.fetch.time.sleep", lambda seconds: None)


def without_checksums(name: str) -> RegistryEntry:
    """The entry of a dataset, for files that are not the published ones."""
    entry = lookup(name)
    layouts = tuple(
        replace(one, files=tuple(replace(file, sha256=None) for file in one.files))
        for one in entry.layouts
    )
    return replace(entry, layouts=layouts)


def test_argument_then_environment_then_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert data_home().name == "prevalens"
    monkeypatch.setenv("PREVALENS_DATA", str(tmp_path))
    assert data_home() == tmp_path
    assert data_home(tmp_path / "mine") == tmp_path / "mine"
    assert data_home("~/x") == Path.home() / "x"


@pytest.mark.parametrize("packed", [False, True])
def test_found_plain_or_packed(
    tmp_path: Path, place_mulan: Callable[..., None], packed: bool
) -> None:
    entry = lookup("emotions")
    assert find(entry, tmp_path) is None
    place_mulan(tmp_path / "emotions", *NAMES, packed=packed)
    found = find(entry, tmp_path)
    assert found is not None
    assert set(found.arguments()) == {"train", "test", "labels"}
    assert found.arguments()["labels"].name == "emotions.xml" + (".gz" if packed else "")


def test_incomplete_is_not_found(tmp_path: Path, place_mulan: Callable[..., None]) -> None:
    place_mulan(tmp_path / "emotions", *NAMES)
    (tmp_path / "emotions" / "emotions.xml").unlink()
    assert find(lookup("emotions"), tmp_path) is None


def test_first_complete_layout_wins(tmp_path: Path) -> None:
    folder = tmp_path / "mediamill"
    folder.mkdir()
    for name in ("train-exp1.svm.bz2", "test-exp1.svm.bz2"):
        (folder / name).touch()
    found = find(lookup("mediamill"), tmp_path)
    assert found is not None
    assert found.layout.format == "svmlight"
    assert found.arguments()["n_features"] == 120


def test_lists_of_files_keep_their_order(tmp_path: Path) -> None:
    entry = lookup("reuters21578")
    (tmp_path / "reuters21578").mkdir()
    for file in entry.layouts[0].files:
        (tmp_path / "reuters21578" / f"{file.name}.gz").touch()
    found = find(entry, tmp_path)
    assert found is not None
    stories = found.arguments()["stories"]
    assert [path.name for path in stories] == [f"reut2-{i:03d}.sgm.gz" for i in range(22)]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("how", ["argument", "environment"])
def test_downloaded_from_a_mirror(
    tmp_path: Path,
    server: Any,
    mulan_texts: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    packed: bool,
    how: str,
) -> None:
    for name, role in zip(NAMES, ("train", "test", "labels"), strict=True):
        content = mulan_texts[role].encode()
        path = f"/copy/emotions/{name}"
        server.files[f"{path}.gz" if packed else path] = (
            gzip.compress(content) if packed else content
        )
    mirror: str | None = f"{server.address}/copy/"
    if how == "environment":
        monkeypatch.setenv("PREVALENS_MIRROR", str(mirror))
        mirror = None
    found = acquire(without_checksums("emotions"), tmp_path, mirror=mirror)
    assert all(path.exists() for path in found.paths)
    # The second time nothing is asked for.
    asked = len(server.asked)
    assert acquire(without_checksums("emotions"), tmp_path, mirror=mirror) == found
    assert len(server.asked) == asked


def test_only_what_is_missing_is_downloaded(
    tmp_path: Path, server: Any, place_mulan: Callable[..., None]
) -> None:
    place_mulan(tmp_path / "emotions", *NAMES)
    (tmp_path / "emotions" / "emotions.xml").unlink()
    server.files["/emotions/emotions.xml"] = b"<labels/>"
    acquire(without_checksums("emotions"), tmp_path, mirror=server.address)
    assert server.asked == [("/emotions/emotions.xml", None)]


def test_wrong_checksum_is_said_and_nothing_is_left(tmp_path: Path, server: Any) -> None:
    server.files["/emotions/emotions-train.arff"] = b"something else"
    with pytest.raises(DataNotFoundError, match="is not the expected file"):
        acquire(lookup("emotions"), tmp_path, mirror=server.address)
    assert list((tmp_path / "emotions").iterdir()) == []


def test_next_source_after_a_failure(tmp_path: Path, server: Any) -> None:
    # The mirror has not the single files of Reuters-21578, but the archive.
    server.files["/reuters21578/reuters21578.tar.gz"] = b"archive"
    found = acquire(lookup("reuters21578"), tmp_path, mirror=server.address)
    assert [path.name for path in found.paths] == ["reuters21578.tar.gz"]


def test_offline_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataNotFoundError) as caught:
        acquire(lookup("emotions"), tmp_path, mirror="http://127.0.0.1:9")
    sentence = str(caught.value)
    assert sentence.startswith(
        f"The dataset 'emotions' is not in {tmp_path / 'emotions'} and could not"
    )
    assert "refused" in sentence
    assert "raw.githubusercontent.com/tsoumakas/mulan" in sentence
    assert "emotions-train.arff, emotions-test.arff, emotions.xml" in sentence
    assert "PREVALENS_DATA" in sentence
    assert "\n" not in sentence
    assert isinstance(caught.value, FileNotFoundError)


def test_download_switched_off_or_impossible(tmp_path: Path) -> None:
    with pytest.raises(DataNotFoundError, match="and downloading is switched off; get emotions-tr"):
        acquire(lookup("emotions"), tmp_path, download_missing=False)
    with pytest.raises(
        DataNotFoundError, match="and has no public download; get mediamill-train-s"
    ):
        acquire(lookup("mediamill_discretized"), tmp_path)
    with pytest.raises(DataNotFoundError, match=r"all-topics-strings\.lc\.txt \.\.\. reut2-021"):
        acquire(lookup("reuters21578"), tmp_path, download_missing=False)


def test_rcv1_is_left_to_scikit_learn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = lookup("rcv1")

    def pretend(folder: Path) -> None:
        for file in entry.layouts[0].files:
            path = folder / file.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    def fail(folder: Path) -> None:
        raise DownloadError("no network.")

    monkeypatch.setitem(module._FETCHERS, "scikit-learn", fail)
    with pytest.raises(DataNotFoundError, match=r"\(no network\); get RCV1/samples_py3"):
        acquire(entry, tmp_path)
    monkeypatch.setitem(module._FETCHERS, "scikit-learn", pretend)
    assert len(acquire(entry, tmp_path).paths) == 4
