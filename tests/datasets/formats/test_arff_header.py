from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.datasets.formats.arff import (
    Attribute,
    is_content,
    parse_header,
    short,
    split_cells,
    unquoted,
)
from prevalens.validation import FormatError

PATH = Path("small.arff")


def header(*attributes: str) -> tuple[Attribute, ...]:
    return parse_header(PATH, ["@relation r", *attributes, "@data"])[1]


def test_keywords_in_any_case_and_comments() -> None:
    lines = [
        "% c",
        "@RELATION 'a b: -C 2'",
        "",
        "@ATTRIBUTE x NUMERIC",
        "@Attribute y real",
        "@DATA\r",
    ]
    relation, attributes, start = parse_header(PATH, lines)
    assert relation == "a b: -C 2"
    assert [one.name for one in attributes] == ["x", "y"]
    assert start == 6


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("@attribute plain numeric", "plain"),
        (r"@attribute 'Swainson\'s Thrush' {0,1}", "Swainson's Thrush"),
        ('@attribute "double quotes" {0,1}', "double quotes"),
        ("@attribute TAG_?? {0,1}", "TAG_??"),
        ("@attribute tight{0,1}", "tight"),
        ("@attribute\ttabs\tnumeric", "tabs"),
        ("@attribute 0 {0, 1}", "0"),
    ],
)
def test_names(line: str, name: str) -> None:
    assert header(line)[0].name == name


@pytest.mark.parametrize(
    ("declared", "codes"),
    [
        ("{0,1}", {"0": 0, "1": 1}),
        ("{YES,NO}", {"YES": 1, "NO": 0}),
        ("{no, yes}", {"no": 0, "yes": 1}),
        ("{t,f}", {"t": 1, "f": 0}),
        ("{2,10,1}", {"2": 2, "10": 10, "1": 1}),
        ("{red,green,blue}", {"red": 0, "green": 1, "blue": 2}),
        ("{1,one}", {"1": 0, "one": 1}),
        ("{1,1.0}", {"1": 0, "1.0": 1}),
        ("{'a,b',c}", {"a,b": 0, "c": 1}),
    ],
)
def test_numbers_of_nominal_values(declared: str, codes: dict[str, float]) -> None:
    (attribute,) = header(f"@attribute a {declared}")
    assert attribute.codes == codes
    assert attribute.default == next(iter(codes.values()))
    for value, code in codes.items():
        assert attribute.number_of(value) == code
    assert attribute.number_of("another") is None


def test_only_values_written_as_their_number_are_in_numbers() -> None:
    attributes = header(
        "@attribute a {0,1}", "@attribute b {YES,NO}", "@attribute c real", "@attribute d string"
    )
    assert [one.in_numbers for one in attributes] == [True, False, True, False]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["@relation r"], "no line @data"),
        (["@data"], "no @attribute is declared"),
        (["@attribute lonely"], "line 1: an attribute needs a name and a type"),
        (["@attribute a {0,1"], "line 1: .*'a' lack a closing brace"),
        (["@attribute a {0,0}"], "line 1: .*declares a value twice"),
        (["@attribute a {}"], "line 1: .*cannot be read"),
        (["@attribute a {'x}"], "line 1: .*cannot be read"),
        (["@attribute a date yyyy"], "line 1: .*unknown type 'date yyyy'"),
        (["", "1,2,3"], "line 2: expected @relation"),
        (["@attribute a real", "@attribute a real", "@data"], "'a' is declared twice"),
    ],
)
def test_bad_headers_are_one_sentence(lines: list[str], words: str) -> None:
    with pytest.raises(FormatError, match=rf"small\.arff.*{words}"):
        parse_header(PATH, lines)


def quoted(cell: str) -> str:
    escaped = cell.replace("\\", "\\\\").replace("'", "\\'")
    for white, letter in (("\n", "n"), ("\r", "r"), ("\t", "t")):
        escaped = escaped.replace(white, f"\\{letter}")
    return f"'{escaped}'"


@given(st.lists(st.text(), min_size=1))
def test_quoted_cells_round_trip(cells: list[str]) -> None:
    assert split_cells(", ".join(map(quoted, cells))) == cells


@given(st.lists(st.text(alphabet="ab1. "), min_size=1))
def test_plain_cells_are_stripped(cells: list[str]) -> None:
    assert split_cells(",".join(cells)) == [cell.strip() for cell in cells]


@pytest.mark.parametrize("row", ["'open", "'a'b,c", "a,'b", "a'b'"])
def test_quotes_out_of_order(row: str) -> None:
    assert split_cells(row) is None


def test_small_helpers() -> None:
    assert unquoted("'") == "'"
    assert unquoted("\"a'") == "\"a'"
    assert short("x" * 100) == repr("x" * 40 + "...")
    assert [is_content(line) for line in ("", " % no", " yes")] == [False, False, True]
