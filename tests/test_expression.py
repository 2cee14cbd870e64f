"""The grammar of methods' names: round trips, and errors that point at the character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

from prevalens.expression import Call, Method, expression_of, parse_method, to_text
from prevalens.validation import InputError

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,6}", fullmatch=True)
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1000, 1000),
    st.floats(0.001, 1000).map(lambda x: float(f"{x:.3g}")).filter(lambda x: x != int(x)),
    st.text("abc ,()+@", min_size=1).filter(lambda s: not s.isalpha()),
)


def calls(inner: st.SearchStrategy[object]) -> st.SearchStrategy[Call]:
    values = st.one_of(PLAIN, inner, st.lists(PLAIN, max_size=2))
    return st.builds(
        Call,
        NAMES,
        st.lists(values, max_size=2).map(tuple),
        st.dictionaries(NAMES, values, max_size=2),
    )


PARTS = st.recursive(st.builds(Call, NAMES), calls, max_leaves=6)
METHODS = st.builds(Method, PARTS, st.one_of(st.none(), PARTS), st.one_of(st.none(), PARTS))


@given(METHODS)
def test_text_and_back(method: Method) -> None:
    assert parse_method(to_text(method)) == method


def test_blanks_do_not_matter() -> None:
    spaced = parse_method(" stack( lr ( C = 10 ) ) + rq( pcc , svr ) @ holdout( 0.4 ) ")
    assert to_text(spaced) == "stack(lr(C=10))+rq(pcc,svr)@holdout(0.4)"


def test_a_whole_method_as_an_argument() -> None:
    outer = parse_method("rq(lr(C=10)+acc@holdout(0.4),svr)").aggregator
    inner = outer.args[0]
    assert isinstance(inner, Method)
    assert to_text(inner) == "lr(C=10)+acc@holdout(0.4)"
    assert outer.args[1] == Call("svr")


@pytest.mark.parametrize(
    ("text", "sentence", "character"),
    [
        ("lr+", "The text ends too early. Expected the name", 4),
        ("lr++cc", "Expected the name of a method's part", 4),
        ("lr(C=10", r"The text ends too early. Expected '\)'", 8),
        ("lr(C=10))", r"Did not expect '\)'", 9),
        ("lr(C=1,C=2)+cc", "The argument 'C' stands twice", 8),
        ("lr(C=1,2)+cc", "cannot follow one with a name", 8),
        ("lr;cc", "';' does not belong", 3),
        ("lr + %", "'%' does not belong", 6),
        ("rq(pcc,[1,2)", r"Expected '\]'", 12),
        ("lr+pcc+cc", r"Did not expect '\+'", 7),
    ],
)
def test_errors_point_at_the_character(text: str, sentence: str, character: int) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        parse_method(text)
    message = str(caught.value)
    assert message.endswith(f"^ character {character}")
    assert text in message


@pytest.mark.parametrize("text", ["", "   ", 3, None])
def test_not_a_name(text: object) -> None:
    with pytest.raises(InputError, match="must be a text such as 'lr\\+pcc'"):
        parse_method(text)  # type: ignore[arg-type]


class Inner(BaseEstimator):
    code = "in"

    def __init__(self, power: float = 1.0) -> None:
        self.power = power


class Outer(BaseEstimator):
    def __init__(self, first: object = None, second: object = "x", *, flag: bool = False) -> None:
        self.first = first
        self.second = second
        self.flag = flag


def test_a_part_names_what_was_changed() -> None:
    assert to_text(expression_of(Inner())) == "in"
    assert to_text(expression_of(Inner(2.5))) == "in(power=2.5)"
    assert to_text(expression_of(Outer(Inner(), Inner(3)))) == "<Outer>(in,in(power=3))"
    assert to_text(expression_of(Outer(None, Inner(), flag=True))) == "<Outer>(second=in,flag=True)"
