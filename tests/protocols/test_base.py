"""What every protocol inherits."""

from __future__ import annotations

import numpy as np
import pytest

from prevalens.protocols import Natural, Protocol
from prevalens.protocols.base import check_size
from prevalens.validation import InputError


def test_a_protocol_must_say_how_it_draws_and_counts() -> None:
    with pytest.raises(TypeError, match="_count"):
        Protocol()


def test_labels_are_checked_at_the_door() -> None:
    with pytest.raises(InputError, match=r"0 or 1 everywhere; got .*2.* at row 0, column 1"):
        Natural(size=1).draw([[0, 2]], 0)
    with pytest.raises(InputError, match="seed must be a whole number"):
        Natural(size=1).draw([[0, 1]], "today")


def test_items_are_looked_at_by_none_but_the_covariate_tilt() -> None:
    protocol = Natural(size=1)
    assert protocol.with_items(np.zeros((2, 2))) is protocol


@pytest.mark.parametrize(
    ("size", "sentence"),
    [
        (0, "size must be at least 1; got 0"),
        (2.0, "size must be a whole number; got 2.0"),
        (11, "A sample of 11 items cannot be drawn without replacement from a pool of 10"),
    ],
)
def test_sizes_the_pool_cannot_serve_are_refused(size: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        check_size(size, 10)


def test_a_sample_may_be_the_whole_pool() -> None:
    assert check_size(np.int64(10), 10) == 10
