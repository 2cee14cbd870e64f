"""Independent tasks give the same results wherever they are computed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from prevalens import parallel
from prevalens.catalogue import parse
from prevalens.datasets import synthetic
from prevalens.model.compare import compare_methods
from prevalens.parallel import compute, computing_on, is_elsewhere


def power(base: int, exponent: int) -> int:
    if exponent > 3:
        warnings.warn(f"{exponent} is large", UserWarning, stacklevel=1)
    if exponent < 0:
        raise ValueError("negative")
    return base**exponent


def nested(base: int, exponent: int) -> tuple[list[int], bool, int]:
    threads = max((each["num_threads"] for each in threadpool_info()), default=1)
    return compute(power, [base], [[exponent]]), is_elsewhere(), threads


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    # One thread, as Python keeps the filters of warnings for all threads together; workers in
    # other processes are tested in tests/engines/test_dask.py.
    with ThreadPoolExecutor(1) as pool:
        yield pool


def test_results_are_in_order_and_warnings_are_passed_on(executor: Executor) -> None:
    told: list[int] = []
    with computing_on(executor), pytest.warns(UserWarning, match="4 is large"):
        found = compute(power, [2], [[3], [4], [1]], progress=told.append)
    assert found == [8, 16, 2]
    assert not is_elsewhere()
    assert told[0] == 0
    assert told == sorted(told)
    assert told[-1] < 3
    with computing_on(executor):
        assert compute(power, [2], []) == []


def test_tasks_compute_their_own_parts_on_one_thread(executor: Executor) -> None:
    with computing_on(executor):
        assert compute(nested, [2], [[3], [2]]) == [([8], False, 1), ([4], False, 1)]


def test_an_error_or_a_cancellation_ends_the_work(executor: Executor) -> None:
    with computing_on(executor), pytest.raises(ValueError, match="negative"):
        compute(power, [2], [[1], [-1]])

    def cancel() -> None:
        raise KeyboardInterrupt

    with computing_on(executor, waiting=cancel), pytest.raises(KeyboardInterrupt):
        compute(power, [2], [[1]])
    assert not is_elsewhere()


def test_values_are_shared_once_and_the_oldest_are_given_up() -> None:
    sent: list[int] = []

    def share(value: int) -> int:
        sent.append(value)
        return value

    values = [1000 + number for number in range(parallel._MOST_SHARED + 1)]
    with ThreadPoolExecutor(1) as pool, computing_on(pool, share=share):
        for value in (*values[:-1], values[0], values[-1], values[0], values[1]):
            assert compute(power, [value], [[1]]) == [value]
    # The second value was the oldest when there were too many.
    assert sent == [*values, values[1]]


@pytest.mark.parametrize("method", ["lr+pacc", "auto(time_budget=3)"])
def test_a_fit_is_the_same(method: str) -> None:
    data = synthetic(n_train=150, n_test=60, n_labels=3, random_state=0)
    expected = parse(method).fit(data.train.X, data.train.Y)
    with ThreadPoolExecutor(1) as pool, computing_on(pool):
        found = parse(method).fit(data.train.X, data.train.Y)
    np.testing.assert_array_equal(
        found.quantify(data.test.X).point, expected.quantify(data.test.X).point
    )


def test_a_comparison_is_the_same_and_tells_failures_once() -> None:
    data = synthetic(n_train=150, n_labels=3, random_state=0).train
    how = {"methods": "lr+pcc;naive;lr+pacc;lr(C=-1)+pcc", "folds": 2, "n_samples": 20}
    expected = compare_methods(data.X, data.Y, **how)
    with ThreadPoolExecutor(1) as pool, computing_on(pool):
        found = compare_methods(data.X, data.Y, **how)
    assert found.methods == expected.methods
    np.testing.assert_array_equal(found.errors, expected.errors)
    assert found.failures == expected.failures
    assert list(found.failures) == ["lr(C=-1)+pcc"]
