"""MATLAB files (up to version 7) with a data and a target matrix."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from prevalens.collection import Collection
from prevalens.datasets.dataset import Parts
from prevalens.datasets.files import about, malformed, read_bytes

__all__ = ["matlab_parts", "read_matlab"]


def read_matlab(path: str | Path, *, data: str = "data", target: str = "target") -> Collection:
    """Read a MATLAB file, plain or compressed.

    Parameters
    ----------
    path : str or Path
    data, target : str
        Names of the two variables: (n_items, n_features) numbers, and 0/1 or -1/1 labels as
        (n_items, n_labels) or (n_labels, n_items).

    Notes
    -----
    Version 7.3 files are HDF5 and cannot be read; save them with ``-v7``.
    """
    path = Path(path)
    X, Y = _variables(path, data, target)
    n_items = X.shape[0]
    if Y.shape[0] != n_items and Y.shape[1] == n_items:
        Y = Y.T
    if Y.shape[0] != n_items:
        what = f"{data!r} has {n_items} rows, but {target!r} has the shape {Y.shape}."
        raise malformed(path, None, what)
    Y = Y.toarray() if sp.issparse(Y) else Y
    with about(path):
        return Collection(X, np.where(Y == -1, 0, Y))


def _variables(path: Path, data: str, target: str) -> tuple[Any, Any]:
    content = read_bytes(path)
    try:
        found = scipy.io.loadmat(io.BytesIO(content), variable_names=[data, target])
    except NotImplementedError:
        what = "this is a MATLAB 7.3 file; save it with the option -v7."
        raise malformed(path, None, what) from None
    # The parser answers a damaged file with whatever its innermost step stumbles over.
    except Exception as error:
        raise malformed(path, None, f"this is no readable MATLAB file ({error}).") from error
    for name in (data, target):
        if name not in found:
            raise malformed(path, None, f"there is no variable {name!r} in it.")
        if found[name].ndim != 2 or found[name].dtype.kind not in "biuf":
            raise malformed(path, None, f"the variable {name!r} is not a matrix of numbers.")
    return found[data], found[target]


def matlab_parts(data: Path, *, n_train: int) -> Parts:
    """Training and test items of a MATLAB file whose first `n_train` rows are for training."""
    whole = read_matlab(data)
    if whole.n_items <= n_train:
        raise malformed(data, None, f"there are {whole.n_items} rows, {n_train} are for training.")
    return Parts(whole.take(slice(None, n_train)), whole.take(slice(n_train, None)))
