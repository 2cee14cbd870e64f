from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.preprocessing import FunctionTransformer

from prevalens.experiments.cache import ScoreCache, content_checksum, identity


@pytest.fixture
def cache(tmp_path: Path) -> ScoreCache:
    return ScoreCache(tmp_path / "scores")


def test_arrays_come_back_bit_for_bit(cache: ScoreCache) -> None:
    arrays = {
        "posteriors": np.random.default_rng(0).random((5, 3)),
        "votes": np.eye(3, dtype=np.int8),
    }
    assert cache.get("ab") is None
    cache.put("ab", arrays)
    entry = cache.get("ab")
    assert entry is not None
    for name, values in arrays.items():
        assert entry[name].dtype == values.dtype
        np.testing.assert_array_equal(entry[name], values)
    assert (cache.hits, cache.misses) == (1, 1)


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "pickled"])
def test_a_damaged_entry_is_a_miss(cache: ScoreCache, damage: str) -> None:
    cache.put("ab", {"votes": np.arange(100)})
    (path,) = cache.folder.rglob("*.npz")
    content = path.read_bytes()
    if damage == "pickled":
        with path.open("wb") as file:
            np.savez(file, votes=np.array([{"a": 1}], dtype=object))
    else:
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        path.write_bytes({"empty": b"", "cut": content[:middle], "flipped": flipped}[damage])
    assert cache.get("ab") is None
    cache.put("ab", {"votes": np.arange(100)})
    assert cache.get("ab") is not None


def test_objects_are_never_written(cache: ScoreCache) -> None:
    with pytest.raises(ValueError, match="pickle"):
        cache.put("ab", {"votes": np.array([{}], dtype=object)})
    assert list(cache.folder.rglob("*.*")) == []


def test_trim_keeps_what_was_used_last(cache: ScoreCache) -> None:
    for age, key in enumerate(["aa", "bb", "cc"]):
        cache.put(key, {"votes": np.zeros(1000)})
        os.utime(cache._path(key), (age, age))
    cache.get("aa")
    cache.limit = 2 * cache._path("aa").stat().st_size
    cache.trim()
    assert cache.get("aa") is not None
    assert cache.get("bb") is None
    assert cache.get("cc") is not None


arrays = hnp.arrays(
    st.sampled_from([np.int8, np.int64, np.float64]),
    hnp.array_shapes(max_dims=2, max_side=3),
    elements=st.integers(0, 3),
)


@given(arrays, arrays)
def test_digests_are_equal_for_equal_arrays_only(left: Any, right: Any) -> None:
    same = left.dtype == right.dtype and np.array_equal(left, right)
    assert (content_checksum(left) == content_checksum(right)) == same
    assert content_checksum(left) == content_checksum(left.copy())


def test_the_order_in_memory_counts(cache: ScoreCache) -> None:
    """As the last digits of products depend on it."""
    rows = np.arange(6.0).reshape(2, 3)
    columns, gaps = np.asfortranarray(rows), np.repeat(rows, 2, axis=1)[:, ::2]
    assert len({content_checksum(rows), content_checksum(columns), content_checksum(gaps)}) == 3
    assert content_checksum(np.asfortranarray(rows)) == content_checksum(columns)
    cache.put("ab", {"rows": rows, "columns": columns})
    entry = cache.get("ab")
    assert entry is not None
    assert entry["rows"].flags.c_contiguous
    assert entry["columns"].flags.f_contiguous


def test_digest_of_every_form_of_items() -> None:
    dense = np.eye(3)
    forms = [
        dense,
        sp.csr_matrix(dense),
        sp.csr_matrix(np.eye(3)[::-1]),
        np.array(["a", "bc"], dtype=object),
        np.array(["ab", "c"], dtype=object),
        "abc",
    ]
    checksums = [content_checksum(form) for form in forms]
    assert None not in checksums
    assert len(set(checksums)) == len(forms)
    assert content_checksum(sp.csr_matrix(dense)) == checksums[1]
    assert content_checksum("a", "b") != content_checksum("ab")


def test_what_has_no_digest() -> None:
    assert content_checksum(object()) is None
    assert content_checksum(np.array([object()])) is None


def test_identity_follows_the_parameters_at_any_depth() -> None:
    def tree(C: float, n_jobs: int | None = None) -> Any:
        return MultiOutputClassifier(LogisticRegression(C=C), n_jobs=n_jobs)

    assert identity(tree(1.0)) == identity(tree(1.0, n_jobs=2))
    assert identity(tree(1.0)) != identity(tree(2.0))
    assert identity(LogisticRegression()) != identity(RandomForestClassifier())
    weights = [LogisticRegression(class_weight={0: 1, 1: weight}) for weight in (1, 2)]
    assert identity(weights[0]) != identity(weights[1])


def test_what_cannot_be_told_apart_has_no_identity() -> None:
    assert identity(RandomForestClassifier(random_state=np.random.RandomState(0))) is None
    assert identity(FunctionTransformer(lambda x: x)) is None
    assert identity(FunctionTransformer(np.testing.assert_allclose)) is not None
