from __future__ import annotations

from collections.abc import Callable

import pytest

from prevalens.records import Result
from prevalens.reports.summarise import (
    column_of,
    in_order,
    of_one_protocol,
    ordered_columns,
    ordered_datasets,
)
from prevalens.validation import InputError

Make = Callable[..., Result]


def test_a_variant_is_part_of_the_name(make_result: Make) -> None:
    assert column_of(make_result("CC")) == "CC"
    assert column_of(make_result("CC", variant="as printed")) == "CC [as printed]"


def test_results_come_in_a_fixed_order(make_result: Make) -> None:
    given = [make_result("PCC", seed=1), make_result("CC", seed=1), make_result("CC")]
    ordered = of_one_protocol(given, "ae")
    assert [(result.method, result.seed) for result in ordered] == [
        ("CC", 0),
        ("CC", 1),
        ("PCC", 1),
    ]


def test_one_protocol_is_chosen(make_result: Make) -> None:
    given = [make_result(protocol="ml-app"), make_result(protocol="natural")]
    assert [result.protocol for result in of_one_protocol(given, "ae", "natural")] == ["natural"]
    with pytest.raises(InputError, match="under 2 protocols, ml-app, natural; choose one"):
        of_one_protocol(given, "ae")
    with pytest.raises(InputError, match="no results under the protocol 'tilt'"):
        of_one_protocol(given, "ae", "tilt")


def test_no_results_are_refused() -> None:
    with pytest.raises(InputError, match="There are no results"):
        of_one_protocol([], "ae")


def test_an_unknown_measure_is_named(make_result: Make) -> None:
    with pytest.raises(InputError, match="PCC on scene, seed 0, has no errors by 'rae'; it has ae"):
        of_one_protocol([make_result()], "rae")


def test_errors_and_shifts_must_match(make_result: Make) -> None:
    with pytest.raises(InputError, match=r"errors of shape \(2,\) but shifts of shape \(3,\)"):
        of_one_protocol([make_result(errors=[0, 1], shift=[0, 1, 2])], "ae")


def test_errors_must_be_finite(make_result: Make) -> None:
    with pytest.raises(InputError, match="no finite ae or shift in sample 1"):
        of_one_protocol([make_result(errors=[0, float("nan")], shift=[0, 1])], "ae")


def test_two_results_of_one_name_are_refused(make_result: Make) -> None:
    given = [make_result(expression="lr+pcc"), make_result(expression="lr+sld")]
    with pytest.raises(InputError, match=r"two results for PCC on scene.*'lr\+pcc' and 'lr\+sld'"):
        of_one_protocol(given, "ae")


def test_the_paper_s_methods_come_first_in_its_order(make_result: Make) -> None:
    names = ["zzz", "MLC+MLA", "aaa", "BC+BA", "MLC+BA", "BC+MLA"]
    given = [make_result(name) for name in names] + [make_result("BC+BA", variant="as printed")]
    assert ordered_columns(given) == (
        "BC+BA",
        "BC+BA [as printed]",
        "MLC+BA",
        "BC+MLA",
        "MLC+MLA",
        "aaa",
        "zzz",
    )


def test_datasets_come_in_the_order_of_the_registry_with_twins_together(make_result: Make) -> None:
    names = ["own", "enron", "tmc2007_500_paper", "emotions", "tmc2007_500"]
    ordered = ordered_datasets([make_result(dataset=name) for name in names])
    assert ordered == ("emotions", "tmc2007_500", "tmc2007_500_paper", "enron", "own")


def test_wanted_names_are_taken_in_their_order() -> None:
    assert in_order(("a", "b", "c"), ["c", "a"], "method") == ("c", "a")
    assert in_order(("a", "b"), None, "method") == ("a", "b")
    with pytest.raises(InputError, match="no method 'd' in the results; there are a, b"):
        in_order(("a", "b"), ["d"], "method")
