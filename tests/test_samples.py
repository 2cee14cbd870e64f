"""Samples as a linear operator: means, choosing, blocks, and the refusals."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from prevalens.samples import Samples, index_type
from prevalens.validation import InputError


@st.composite
def many(draw: st.DrawFn, *, min_samples: int = 1) -> Samples:
    """Samples of unequal sizes, with repeated indices, some of them steered."""
    n_items = draw(st.integers(1, 30))
    bag = st.lists(st.integers(0, n_items - 1), min_size=1, max_size=12)
    bags = draw(st.lists(bag, min_size=min_samples, max_size=8))
    width = draw(st.integers(1, 2))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    return Samples.from_indices(
        bags,
        n_items=n_items,
        target=rng.integers(-1, 5, (len(bags), width)),
        prevalence=rng.random((len(bags), width)),
    )


def values_for(samples: Samples, seed: int, n_columns: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(samples.n_items, n_columns))


def loop_mean(samples: Samples, values: np.ndarray) -> np.ndarray:
    return np.array([values[bag].mean(axis=0) for bag in samples])


def same(left: Samples, right: Samples) -> None:
    assert left.n_items == right.n_items
    np.testing.assert_array_equal(left.flat, right.flat)
    np.testing.assert_array_equal(left.offsets, right.offsets)
    np.testing.assert_array_equal(left.targets, right.targets)
    np.testing.assert_array_equal(left.prevalences, right.prevalences)


class TestMean:
    @given(many(), st.integers(0, 99))
    def test_is_the_mean_of_each_bag(self, samples: Samples, seed: int) -> None:
        values = values_for(samples, seed)
        np.testing.assert_allclose(samples.mean(values), loop_mean(samples, values), atol=1e-12)

    @given(many(), st.integers(0, 99))
    def test_is_linear(self, samples: Samples, seed: int) -> None:
        left, right = values_for(samples, seed), values_for(samples, seed + 1)
        together = samples.mean(2 * left - 3 * right)
        apart = 2 * samples.mean(left) - 3 * samples.mean(right)
        np.testing.assert_allclose(together, apart, atol=1e-12)

    @given(many(), st.integers(0, 99))
    def test_of_the_whole_pool_is_the_mean(self, samples: Samples, seed: int) -> None:
        values = values_for(samples, seed)
        whole = Samples.whole(samples.n_items)
        np.testing.assert_allclose(whole.mean(values)[0], values.mean(axis=0), atol=1e-12)

    @given(many(), st.integers(0, 99), st.sampled_from([np.int8, np.bool_, np.float32, np.float64]))
    def test_of_zeros_and_ones_is_an_exact_share(
        self, samples: Samples, seed: int, dtype: type
    ) -> None:
        Y = (values_for(samples, seed) > 0).astype(dtype)
        counts = np.array([np.count_nonzero(Y[bag], axis=0) for bag in samples])
        np.testing.assert_array_equal(samples.mean(Y), counts / samples.sizes[:, np.newaxis])

    @given(many(), st.integers(0, 99), st.sampled_from([sp.csr_matrix, sp.csr_array, sp.csc_array]))
    def test_of_sparse_values_is_that_of_dense_ones(
        self, samples: Samples, seed: int, sparse: type
    ) -> None:
        values = np.where(values_for(samples, seed) > 0, values_for(samples, seed + 1), 0.0)
        means = samples.mean(sparse(values))
        assert isinstance(means, np.ndarray)
        np.testing.assert_allclose(means, samples.mean(values), atol=1e-12)

    def test_of_a_memory_mapped_float32_matrix_is_summed_in_float64(self, tmp_path: Path) -> None:
        path = tmp_path / "scores.f32"
        stored = np.memmap(path, dtype=np.float32, mode="w+", shape=(5000, 3))
        stored[:] = np.random.default_rng(0).random((5000, 3), dtype=np.float32)
        stored.flush()
        mapped = np.memmap(path, dtype=np.float32, mode="r", shape=(5000, 3))
        samples = Samples.whole(5000)
        exact = np.asarray(mapped, dtype=np.float64).mean(axis=0)
        np.testing.assert_allclose(samples.mean(mapped)[0], exact, rtol=1e-14)

    def test_goes_through_columns_in_chunks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        values = np.random.default_rng(0).random((50, 7)).astype(np.float32)
        samples = Samples.from_indices([[0, 3, 3], [49]], n_items=50)
        at_once = samples.mean(values)
        monkeypatch.setattr("prevalens.samples._BYTES_PER_CHUNK", 8 * 50 * 2)
        np.testing.assert_array_equal(samples.mean(values), at_once)

    def test_of_a_vector_is_a_vector_and_of_a_list_an_array(self) -> None:
        samples = Samples.from_indices([[0, 1], [2]], n_items=3)
        np.testing.assert_array_equal(samples.mean(np.array([0.0, 1.0, 5.0])), [0.5, 5.0])
        np.testing.assert_array_equal(samples.mean([[0, 1], [1, 1], [0, 0]]), [[0.5, 1], [0, 0]])

    def test_refuses_values_of_another_pool(self) -> None:
        with pytest.raises(InputError, match="over 3 items, but the values have 4 rows"):
            Samples.whole(3).mean(np.zeros((4, 2)))


class TestChoosing:
    @given(many(), st.integers(-10, 10), st.integers(-10, 10), st.sampled_from([None, 1, 2, -1]))
    def test_by_slice(self, samples: Samples, start: int, stop: int, step: int | None) -> None:
        key = slice(start, stop, step)
        chosen = samples[key]
        expected = list(samples)[key]
        assert len(chosen) == len(expected)
        assert all(np.array_equal(a, b) for a, b in zip(chosen, expected, strict=True))
        np.testing.assert_array_equal(chosen.targets, samples.targets[key])
        np.testing.assert_array_equal(chosen.prevalences, samples.prevalences[key])

    @given(many(), st.integers(0, 99))
    def test_by_mask_and_by_positions_agree(self, samples: Samples, seed: int) -> None:
        mask = np.random.default_rng(seed).random(len(samples)) < 0.5
        same(samples[mask], samples[np.flatnonzero(mask).tolist()])
        assert [bag.tolist() for bag in samples[mask]] == [
            bag.tolist() for bag, keep in zip(samples, mask, strict=True) if keep
        ]

    @given(many())
    def test_by_one_position_gives_row_numbers(self, samples: Samples) -> None:
        bags: Iterator[np.ndarray] = iter(samples)
        for position, bag in enumerate(bags):
            np.testing.assert_array_equal(samples[position], bag)
            np.testing.assert_array_equal(samples[position - len(samples)], bag)
        with pytest.raises(IndexError):
            samples[len(samples)]

    def test_none_leaves_an_empty_set(self) -> None:
        nothing = Samples.whole(3)[[]]
        assert len(nothing) == 0
        assert nothing.mean(np.ones((3, 2))).shape == (0, 2)
        assert repr(nothing) == "Samples(0 of 0 from 3 items)"

    @given(many(), st.integers(1, 40))
    def test_blocks_are_a_partition_within_the_limit(self, samples: Samples, limit: int) -> None:
        blocks = list(samples.blocks(limit))
        assert [row for rows, _ in blocks for row in range(rows.start, rows.stop)] == list(
            range(len(samples))
        )
        for rows, block in blocks:
            same(block, samples[rows])
            assert len(block.flat) <= limit or len(block) == 1
        same(Samples.concat([block for _, block in blocks]), samples)


class TestMaking:
    @given(many())
    def test_lists_round_trip(self, samples: Samples) -> None:
        again = Samples.from_indices(
            [bag.tolist() for bag in samples],
            n_items=samples.n_items,
            target=samples.targets,
            prevalence=samples.prevalences,
        )
        same(again, samples)
        same(pickle.loads(pickle.dumps(samples)), samples)

    def test_indices_of_equal_sizes_are_one_array(self) -> None:
        array = np.array([[0, 1], [2, 2]])
        samples = Samples.from_indices(array, n_items=3)
        assert isinstance(samples.indices, np.ndarray)
        np.testing.assert_array_equal(samples.indices, array)
        assert isinstance(Samples.from_indices([[0], [1, 2]], n_items=3).indices, list)

    def test_memory_is_four_bytes_per_index(self) -> None:
        assert Samples.whole(10).flat.dtype == np.int32
        assert index_type(2**31 - 1) is np.int32
        assert index_type(2**31) is np.int64

    def test_by_group_has_each_item_once(self) -> None:
        samples, names = Samples.by_group(["b", "a", "b", "c"])
        assert names.tolist() == ["a", "b", "c"]
        assert [bag.tolist() for bag in samples] == [[1], [0, 2], [3]]

    def test_steered_labels_have_a_first_and_all(self) -> None:
        first = Samples.from_indices([[0]], n_items=2, target=[1], prevalence=[0.5])
        two = Samples.from_indices([[1]], n_items=2, target=[[0, 1]], prevalence=[[0.2, 0.3]])
        none = Samples.whole(2)
        together = Samples.concat([first, two, none])
        assert together.target.tolist() == [1, 0, -1]
        assert together.targets.tolist() == [[1, -1], [0, 1], [-1, -1]]
        np.testing.assert_array_equal(
            together.prevalences, [[0.5, np.nan], [0.2, 0.3], [np.nan, np.nan]]
        )
        np.testing.assert_array_equal(together.prevalence, [0.5, 0.2, np.nan])

    @pytest.mark.parametrize(
        ("make", "sentence"),
        [
            (lambda: Samples([0], [0, 1], n_items=0), "n_items must be at least 1"),
            (lambda: Samples([0, 3], [0, 2], n_items=3), "names item 3, but the pool has 3"),
            (lambda: Samples([0, -1], [0, 2], n_items=3), "names item -1, but the pool has 3"),
            (lambda: Samples([2**32], [0, 1], n_items=3), "names item 4294967296"),
            (lambda: Samples([0.5], [0, 1], n_items=3), "row numbers; got values of type float64"),
            (lambda: Samples([[0]], [0, 1], n_items=3), "flat list of indices"),
            (lambda: Samples([0], [], n_items=3), "list of offsets"),
            (lambda: Samples([0, 1], [0, 1], n_items=3), "end at the last index"),
            (lambda: Samples([0, 1], [0, 0, 2], n_items=3), "Sample 0 is empty"),
            (lambda: Samples.from_indices([[0], []], n_items=3), "Sample 1 is empty"),
            (lambda: Samples([0], [0, 1], n_items=3, target=[1, 2]), "target must have one entry"),
            (
                lambda: Samples([0], [0, 1], n_items=3, prevalence=[[]], target=[[]]),
                "target must have one entry",
            ),
            (
                lambda: Samples([0], [0, 1], n_items=3, target=[[1, 2]], prevalence=[0.5]),
                "as many labels per sample; got 2 and 1",
            ),
            (lambda: Samples.concat([]), "nothing to concatenate"),
            (lambda: Samples.concat([Samples.whole(2), Samples.whole(3)]), "different pools"),
            (lambda: list(Samples.whole(2).blocks(0)), "max_indices must be at least 1"),
        ],
    )
    def test_refusals_are_one_sentence(self, make: object, sentence: str) -> None:
        with pytest.raises(InputError, match=sentence):
            make()  # type: ignore[operator]
