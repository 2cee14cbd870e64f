"""RCV1-v2, through scikit-learn's fetcher, which knows its parts and their checksums."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import scipy.sparse as sp
from sklearn.datasets import fetch_rcv1

from prevalens.collection import Collection
from prevalens.datasets.dataset import Parts
from prevalens.datasets.fetch import DownloadError
from prevalens.datasets.files import malformed

__all__ = ["download_rcv1", "rcv1_parts"]


def download_rcv1(folder: Path) -> None:
    """Let scikit-learn download RCV1-v2 (some 650 MB) into ``folder/RCV1``."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        fetch_rcv1(data_home=folder, download_if_missing=True)
    except (OSError, EOFError) as error:
        raise DownloadError(f"scikit-learn could not download it: {error}.") from error


def rcv1_parts(pickles: Sequence[Path], *, n_train: int) -> Parts:
    """The chronological split of Lewis et al. (2004): the first 23,149 are for training.

    Parameters
    ----------
    pickles : sequence of Path
        scikit-learn's files, all in one folder ``RCV1``.
    n_train : int
    """
    folder = pickles[0].parent.parent
    try:
        found = fetch_rcv1(data_home=folder, subset="all", download_if_missing=False)
    # The cached files are pickles: a damaged one fails in its own ways.
    except Exception as error:
        what = f"scikit-learn's files of RCV1 cannot be read ({error}); delete the folder."
        raise malformed(folder / "RCV1", None, what) from error
    if found.data.shape[0] <= n_train:
        what = f"there are {found.data.shape[0]} documents, {n_train} are for training."
        raise malformed(folder / "RCV1", None, what)
    whole = Collection(sp.csr_matrix(found.data), found.target, found.target_names)
    return Parts(whole.take(slice(None, n_train)), whole.take(slice(n_train, None)))
