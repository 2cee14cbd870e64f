from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.experiments.plan import to_toml
from prevalens.validation import InputError

text = st.text(st.characters(codec="utf-8"), max_size=6)
scalars = (
    text
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=True)
)
tables = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(text, tables, max_size=5))
def test_what_is_written_is_read_back(content: dict[str, Any]) -> None:
    assert tomllib.loads(to_toml(content)) == content


def test_what_toml_cannot_say_is_refused() -> None:
    with pytest.raises(InputError, match="got None"):
        to_toml({"a": [None]})
