from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.experiments.specs import canonical, checksum, method_tree, read_value
from prevalens.validation import InputError

values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("None", None),
        ("balanced", "balanced"),
        ("0.1", 0.1),
        ("1e3", 1000.0),
        ("[1,None]", [1, None]),
        ('"None"', "None"),
        (True, True),
        (10, 10),
        ([1, "None"], [1, None]),
    ],
)
def test_texts_are_read_in_the_grammar_of_expressions(text: Any, value: Any) -> None:
    built = read_value(text)
    assert built == value
    assert type(built) is type(value)


@pytest.mark.parametrize("text", ["", "1,2", "a=1", "(", None])
def test_what_is_not_one_value_is_refused(text: Any) -> None:
    with pytest.raises(InputError):
        read_value(text)


@given(st.dictionaries(st.text(max_size=4), values, max_size=4), st.randoms())
def test_order_of_keys_does_not_matter(content: dict[str, Any], random: Any) -> None:
    names = list(content)
    random.shuffle(names)
    shuffled = {name: content[name] for name in names}
    assert canonical(shuffled) == canonical(content)
    assert checksum(shuffled) == checksum(content)


@given(values, values)
def test_different_contents_differ(left: Any, right: Any) -> None:
    same = repr(left) == repr(right)
    assert not same or checksum({"a": left}) == checksum({"a": right})
    if canonical({"a": left}) != canonical({"a": right}):
        assert checksum({"a": left}) != checksum({"a": right})


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("lr+pcc", " lr + pcc "),
        ("lr(C=10,class_weight=balanced)+pcc", "lr( class_weight = balanced, C = 10)+pcc"),
        ("stack(lr)+rq(pcc,svr)@holdout(0.4)", "stack( lr ) + rq( pcc, svr ) @ holdout(0.40)"),
    ],
)
def test_how_an_expression_is_written_does_not_matter(left: str, right: str) -> None:
    assert method_tree(left) == method_tree(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("forest(max_features=1)+pcc", "forest(max_features=1.0)+pcc"),
        ("lr+pcc", "lr+cc"),
        ("lr+pcc", "pcc"),
        ("lr+pcc", "lr+pcc@holdout"),
        ("lr+rq(pcc,svr)", "lr+rq(svr,pcc)"),
        ("lr(class_weight=None)+cc", 'lr(class_weight="None")+cc'),
    ],
)
def test_what_it_says_does(left: str, right: str) -> None:
    assert canonical({"a": method_tree(left)}) != canonical({"a": method_tree(right)})
