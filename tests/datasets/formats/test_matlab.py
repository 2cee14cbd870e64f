from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from prevalens.datasets.formats.matlab import matlab_parts, read_matlab
from prevalens.validation import FormatError

X = np.arange(12.0).reshape(4, 3)
Y = np.array([[1, 0], [0, 0], [1, 1], [0, 1]], dtype=np.uint8)


def write(tmp_path: Path, packed: bool = False, **variables: object) -> Path:
    stream = io.BytesIO()
    scipy.io.savemat(stream, variables)
    path = tmp_path / "f.mat"
    path.write_bytes(gzip.compress(stream.getvalue()) if packed else stream.getvalue())
    return path


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("target", [Y, Y.T, Y.astype(float) * 2 - 1, sp.csc_matrix(Y)])
def test_labels_either_way_up(tmp_path: Path, target: object, packed: bool) -> None:
    found = read_matlab(write(tmp_path, packed, data=X, target=target))
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.Y, Y)
    assert found.labels == ("label_0", "label_1")


def test_other_names_and_sparse_data(tmp_path: Path) -> None:
    path = write(tmp_path, inputs=sp.csc_matrix(X), outputs=Y)
    found = read_matlab(path, data="inputs", target="outputs")
    np.testing.assert_array_equal(found.X.toarray(), X)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"data": X}, "there is no matrix of numbers 'target'"),
        ({"data": X, "target": Y[:2]}, r"'data' has 4 rows, but 'target' has the shape \(2, 2\)"),
        ({"data": X, "target": "text"}, "there is no matrix of numbers 'target'"),
        ({"data": X, "target": {"a": 1}}, "there is no matrix of numbers 'target'"),
        ({"data": X * 1j, "target": Y}, "there is no matrix of numbers 'data'"),
        ({"data": X * np.nan, "target": Y}, "X has nan at row 0"),
        ({"data": X, "target": Y + 3}, "Y must be 0 or 1 everywhere; got .*4"),
    ],
)
def test_bad_files_are_one_sentence(
    tmp_path: Path, variables: dict[str, object], words: str
) -> None:
    with pytest.raises(FormatError, match=rf"f\.mat: .*{words}"):
        read_matlab(write(tmp_path, **variables))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "kind", ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">f8"]
)
def test_same_as_scipy(tmp_path: Path, kind: str, packed: bool) -> None:
    stream = io.BytesIO()
    other = {"cells": np.array([1, "x"], dtype=object), "name": "text", "empty": np.zeros((0, 2))}
    variables = other | {"data": X.astype(kind), "target": Y}
    scipy.io.savemat(stream, variables, do_compression=packed)
    path = tmp_path / "f.mat"
    path.write_bytes(stream.getvalue())
    oracle = scipy.io.loadmat(io.BytesIO(stream.getvalue()))
    found = read_matlab(path)
    np.testing.assert_array_equal(found.X, oracle["data"].astype(float))
    np.testing.assert_array_equal(found.Y, oracle["target"])


@pytest.mark.data
def test_same_as_scipy_on_a_public_file(data_home: Path) -> None:
    path = data_home / "rcv1subset_top944" / "rcv1subset1_top944.mat.gz"
    oracle = scipy.io.loadmat(io.BytesIO(gzip.decompress(path.read_bytes())))
    found = read_matlab(path)
    np.testing.assert_array_equal(found.X, oracle["data"])
    np.testing.assert_array_equal(found.Y, oracle["target"].T)


def test_other_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "f.mat"
    path.write_bytes(b"hello")
    with pytest.raises(FormatError, match="no MATLAB file of version 5 to 7"):
        read_matlab(path)


def test_newer_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "f.mat"
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124, b" ") + b"\x00\x02IM" + bytes(512))
    with pytest.raises(FormatError, match=r"MATLAB 7\.3 file; save it with the option -v7"):
        read_matlab(path)


def test_parts(tmp_path: Path) -> None:
    path = write(tmp_path, data=X, target=Y.T)
    parts = matlab_parts(path, n_train=3)
    np.testing.assert_array_equal(parts.train.X, X[:3])
    np.testing.assert_array_equal(parts.test.Y, Y[3:])
    with pytest.raises(FormatError, match="there are 4 rows, 4 are for training"):
        matlab_parts(path, n_train=4)


def test_parts_of_a_file_whose_test_labels_are_rolled(tmp_path: Path) -> None:
    rolled = Y.copy()
    rolled[2:] = np.roll(rolled[2:], -1, axis=1)
    parts = matlab_parts(write(tmp_path, data=X, target=rolled), n_train=2, test_roll=1)
    np.testing.assert_array_equal(parts.train.Y, Y[:2])
    np.testing.assert_array_equal(parts.test.Y, Y[2:])


def test_parts_of_the_first_rows(tmp_path: Path) -> None:
    path = write(tmp_path, data=X, target=Y)
    parts = matlab_parts(path, n_train=1, n_items=3)
    np.testing.assert_array_equal(parts.train.Y, Y[:1])
    np.testing.assert_array_equal(parts.test.X, X[1:3])
    with pytest.raises(FormatError, match="3 are for training"):
        matlab_parts(path, n_train=3, n_items=3)
