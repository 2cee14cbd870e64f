from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.error import URLError

import joblib
import numpy as np
import pytest
import scipy.sparse as sp

from prevalens.datasets.fetch import DownloadError
from prevalens.datasets.formats import corpora
from prevalens.validation import FormatError

NAMES = ["samples", "sample_id", "sample_topics", "topics_names"]


@pytest.fixture
def pickles(tmp_path: Path) -> list[Path]:
    """Files as scikit-learn keeps them after a download, with fewer documents."""
    folder = tmp_path / "RCV1"
    folder.mkdir()
    rng = np.random.default_rng(0)
    values = [
        sp.csr_matrix(rng.random((9, 5)) * (rng.random((9, 5)) < 0.5)),
        np.arange(9, dtype=np.uint32),
        sp.csr_matrix(rng.integers(0, 2, size=(9, 3)).astype(np.uint8)),
        np.array(["C11", "ECAT", "GCAT"], dtype=object),
    ]
    paths = [folder / f"{name}_py3.pkl" for name in NAMES]
    for path, value in zip(paths, values, strict=True):
        joblib.dump(value, path, compress=9)
    return paths


def test_split_through_scikit_learn(pickles: list[Path]) -> None:
    parts = corpora.rcv1_parts(pickles, n_train=6)
    whole = joblib.load(pickles[0]).toarray()
    np.testing.assert_array_equal(parts.train.X.toarray(), whole[:6])
    np.testing.assert_array_equal(parts.test.X.toarray(), whole[6:])
    assert parts.train.labels == ("C11", "ECAT", "GCAT")
    np.testing.assert_array_equal(parts.test.Y, joblib.load(pickles[2]).toarray()[6:])


def test_damaged_or_short_files_are_one_sentence(pickles: list[Path]) -> None:
    with pytest.raises(FormatError, match="there are 9 documents, 9 are for training"):
        corpora.rcv1_parts(pickles, n_train=9)
    pickles[2].write_bytes(pickles[2].read_bytes()[:20])
    with pytest.raises(FormatError, match="RCV1 cannot be read"):
        corpora.rcv1_parts(pickles, n_train=6)


def test_download_asks_scikit_learn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(corpora, "fetch_rcv1", lambda **options: asked.update(options))
    corpora.download_rcv1(tmp_path / "new")
    assert asked == {"data_home": tmp_path / "new", "download_if_missing": True}
    assert (tmp_path / "new").is_dir()


def test_failed_download_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(**options: Any) -> None:
        raise URLError("no network")

    monkeypatch.setattr(corpora, "fetch_rcv1", offline)
    with pytest.raises(DownloadError, match=r"scikit-learn could not download it: .*no network"):
        corpora.download_rcv1(tmp_path)
