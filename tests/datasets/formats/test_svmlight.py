from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from prevalens.datasets.formats.svmlight import read_svmlight, svmlight_parts
from prevalens.validation import FormatError, InputError


def write(tmp_path: Path, content: str, name: str = "f.svm") -> Path:
    path = tmp_path / name
    path.write_text(content)
    return path


def test_labels_features_comments_and_queries(tmp_path: Path) -> None:
    content = "# a comment\n3,1 1:0.5 3:2 # note\n 2:1\n\n7 qid:4 1:-1e-3\n2:4\n1\n"
    found = read_svmlight(write(tmp_path, content))
    assert found.labels == ("1", "3", "7")
    assert found.Y.tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0], [1, 0, 0]]
    assert found.X.toarray().tolist() == [
        [0.5, 0, 2],
        [0, 1, 0],
        [-1e-3, 0, 0],
        [0, 4, 0],
        [0, 0, 0],
    ]


def test_header_of_the_extreme_classification_repository(tmp_path: Path) -> None:
    found = read_svmlight(write(tmp_path, "2 4 3\n0,2 0:1 3:1\n1 1:1\n"))
    assert found.labels == ("0", "1", "2")
    assert found.X.toarray().tolist() == [[1, 0, 0, 1], [0, 1, 0, 0]]


def test_counting_from_zero_or_one(tmp_path: Path) -> None:
    path = write(tmp_path, "0 1:1 2:1\n")
    assert read_svmlight(path).X.shape == (1, 2)
    assert read_svmlight(path, zero_based=True).X.toarray().tolist() == [[0, 1, 1]]
    assert read_svmlight(path, n_features=5).X.shape == (1, 5)
    named = read_svmlight(write(tmp_path, "1 0:1\n"), labels=["no", "yes"])
    assert named.labels == ("no", "yes")
    assert named.Y.tolist() == [[0, 1]]


MATRICES = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.just(4)),
    elements=st.sampled_from([0.0, 0.0, 1.0, -2.5, 1e-9, 12345.678]),
)


@given(X=MATRICES, data=st.data(), zero_based=st.booleans())
def test_round_trip_with_scikit_learn(
    tmp_path_factory: pytest.TempPathFactory, X: np.ndarray, data: st.DataObject, zero_based: bool
) -> None:
    Y = data.draw(hnp.arrays(np.int8, (len(X), 3), elements=st.integers(0, 1)))
    Y[0] = 1
    # An item with neither labels nor features is a blank line, which counts for nothing.
    X[:, 0] = 1
    path = tmp_path_factory.mktemp("svm") / "f.svm"
    dump_svmlight_file(X, sp.csr_matrix(Y), str(path), multilabel=True, zero_based=zero_based)
    found = read_svmlight(path, zero_based=zero_based, n_features=4)
    oracle, sets = load_svmlight_file(
        io.BytesIO(path.read_bytes()), multilabel=True, zero_based=zero_based, n_features=4
    )
    np.testing.assert_array_equal(found.Y, Y)
    np.testing.assert_array_equal(found.X.toarray(), oracle.toarray())
    assert [set(np.flatnonzero(row)) for row in found.Y] == [set(map(int, one)) for one in sets]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "there are no items"),
        ("# only\n", "there are no items"),
        ("1 1:2\nx 1:1\n", "line 2: expected label numbers, got 'x'"),
        ("1.5 1:1\n", "line 1: expected label numbers"),
        ("1 a:1\n", "line 1: expected features as number:value"),
        ("1 1:2:3\n", "line 1: expected features"),
        ("1 1:0.52:3\n", "line 1: expected features"),
        ("1 12\n", "line 1: expected features"),
        ("1 1:2\n1 1:x\n", "line 2: the feature '1:x' is not a number"),
        ("1 1:nan\n", "line 1: the feature '1:nan' is not a number"),
        ("1 1:1 1:2\n", "line 1: feature 1 stands twice"),
        ("1\n", "no item has a feature"),
        ("3 2 2\n0 0:1\n", "line 1: the first line promises 3 items, but there are 1"),
        ("1 2 1\n0 5:1\n", ""),
    ],
)
def test_bad_files_are_one_sentence(tmp_path: Path, content: str, words: str) -> None:
    path = write(tmp_path, content)
    if not words:
        # The header is a promise of at least so many features.
        assert read_svmlight(path).X.shape == (1, 6)
        return
    with pytest.raises(FormatError, match=rf"f\.svm.*{words}"):
        read_svmlight(path)


def test_outside_of_what_was_said(tmp_path: Path) -> None:
    path = write(tmp_path, "0 1:1\n4 9:1\n")
    with pytest.raises(FormatError, match="line 2: feature 9 is outside of the 3 features counted"):
        read_svmlight(path, n_features=3)
    with pytest.raises(FormatError, match="line 1: feature 0 is outside"):
        read_svmlight(write(tmp_path, "0 0:1\n", "zero.svm"), zero_based=False)
    with pytest.raises(FormatError, match="line 2: the label 4 is not among the 2 labels"):
        read_svmlight(path, labels=["a", "b"])
    with pytest.raises(InputError, match="has a label"):
        read_svmlight(write(tmp_path, " 1:1\n", "none.svm"))


def test_parts_share_labels_and_features(tmp_path: Path) -> None:
    train = write(tmp_path, "0,5 1:1\n2 2:1\n", "train")
    test = write(tmp_path, "7 3:1\n", "test")
    parts = svmlight_parts(train, test, zero_based=False, n_features=4)
    assert parts.train.labels == parts.test.labels == ("0", "2", "5", "7")
    assert parts.train.X.shape[1] == parts.test.X.shape[1] == 4
    assert parts.test.Y.tolist() == [[0, 0, 0, 1]]
