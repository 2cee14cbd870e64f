"""Headlines say what bands and the alarm support, and no more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from prevalens.catalogue import ENTRIES
from prevalens.model.result import BatchResult, Notice
from prevalens.reports.headline import (
    headline,
    in_plain_words,
    method_in_words,
)
from prevalens.reports.render import CAPTIONS
from prevalens.uncertainty.goodness_of_fit import misfit_sentence

POINT = np.array([[0.2, 0.3, 0.5], [0.2, 0.3, 0.6]])


def _report(**more: object) -> BatchResult:
    given = {
        "lower": POINT - 0.05,
        "upper": POINT + 0.05,
        "band_lower": POINT - 0.1,
        "band_upper": POINT + 0.1,
        "level": 0.9,
        "p_value": [0.9, 0.9],
    }
    return BatchResult(
        ["a", "b", "c"], ["May", "June"], [100, 200], POINT, [0.2, 0.37, 0.2], **{**given, **more}
    )


def test_a_move_is_told_with_its_band_never_by_its_estimate_alone() -> None:
    found = str(headline(_report()))
    assert found.startswith("In June, 1 of 3 labels has clearly moved since training: ")
    assert "c rose from 20.0 % to 60.0 % (50.0 to 70.0 %)." in found
    assert found.endswith("In brackets: the 90 % band over all labels.")


def test_a_move_within_the_band_is_not_told() -> None:
    # The training prevalence of b is outside the interval, but inside the band of all labels.
    assert "b " not in str(headline(_report()))
    still = replace(_report(), training=np.array([0.2, 0.37, 0.55]))
    assert "no label has clearly moved" in str(headline(still))


def test_without_intervals_nothing_is_clear() -> None:
    bare = BatchResult(["a"], ["May"], [100], [[0.9]], [0.1])
    assert "no move can be called clear" in str(headline(bare))


def test_the_batch_that_is_shown_and_fails_the_alarm_comes_first() -> None:
    found = headline(_report(p_value=[0.9, 0.001]))
    assert found.is_alarm
    assert str(found).startswith("June differs from the training data in more than its label mix")
    assert "prevalens sample MODEL BATCH -n 50" in found.alarm
    assert "In May, 1 of 3" in found.text


def test_an_alarm_elsewhere_comes_second() -> None:
    found = headline(_report(p_value=[0.001, 0.9]))
    assert not found.is_alarm
    assert str(found).index("In June") < str(found).index("May differs")


def test_if_most_batches_alarm_the_headline_is_the_alarm() -> None:
    found = headline(_report(p_value=[0.001, 0.001]))
    assert found.is_alarm
    assert found.text == ""
    assert str(found).startswith("2 of 2 batches (June, May) differ")


def test_many_p_values_that_are_a_little_too_large_are_an_alarm_together() -> None:
    point = np.tile(POINT[:1], (8, 1))
    names = [f"2026-0{k + 1}" for k in range(8)]
    sizes = [100] * 8
    report = BatchResult(["a", "b", "c"], names, sizes, point, [0.9] * 3, lower=point, upper=point)
    assert not replace(report, p_value=[0.05, *[0.6] * 7]).unusual.any()
    assert replace(report, p_value=None).judged.all()
    together = replace(report, p_value=[0.02, 0.03, 0.04, 0.05, 0.02, 0.03, 0.05, 0.06])
    assert not together.alarms.any()
    assert together.unusual.all()
    assert not together.moved.any()
    assert headline(together).is_alarm


def test_groups_are_told_without_words_of_time() -> None:
    found = str(headline(replace(_report(), ordered=False)))
    assert found.startswith("2 of 2 groups have labels that differ clearly from training.")
    assert "In the largest, June (200 items), 1 of 3 labels differs clearly" in found
    assert "c is higher, 60.0 % instead of 20.0 % (50.0 to 70.0 %)" in found
    assert "since" not in found


@pytest.mark.parametrize(("size", "verdict"), [(1, False), (9, False), (10, True)])
def test_tiny_batches_get_no_verdict(size: int, verdict: bool) -> None:
    report = replace(_report(), sizes=[100, size])
    assert bool(report.moved[1].any()) == verdict
    assert ("too few for a verdict" in str(headline(report))) != verdict


def test_where_alarms_are_more_than_chance_unusual_batches_get_no_verdict() -> None:
    point = np.tile([[0.6]], (6, 1))
    ends = {"lower": point - 0.1, "upper": point + 0.1, "level": 0.9}
    names = [str(k) for k in range(6)]
    report = BatchResult(["a"], names, [100] * 6, point, [0.2], **ends)
    drifting = replace(report, p_value=[0.9, 0.001, 0.001, 0.002, 0.6, 0.3])
    assert drifting.judged.tolist() == [True, False, False, False, True, False]
    assert "too unusual to call any move clear" in str(headline(replace(drifting, p_value=[
        0.9, 0.001, 0.002, 0.7, 0.6, 0.3])))  # fmt: skip
    # One small p-value among six is chance; that batch alone gets no verdict.
    single = replace(report, p_value=[0.9, 0.8, 0.7, 0.02, 0.6, 0.3])
    assert single.judged.tolist() == [True, True, True, False, True, True]


def test_the_farthest_band_is_named_first_and_the_rest_is_counted() -> None:
    point = np.array([[0.5, 0.6, 0.7, 0.8, 0.9]])
    # The highest estimate has the widest band.
    half = np.array([[0.1, 0.1, 0.1, 0.1, 0.6]])
    report = BatchResult(
        list("vwxyz"), ["May"], [100], point, [0.2] * 5, lower=point - half, upper=point + half
    )
    found = str(headline(report))
    assert found.index("y rose") < found.index("x rose") < found.index("w rose")
    assert "and 2 more" in found
    assert "z rose" not in found


def test_plain_words_have_no_commands_and_no_p_values() -> None:
    alarm = misfit_sentence(0.001, ["June"])
    folded = "3 groups stand together at the end; --min-items 1 shows each by name."
    notices = (Notice(folded, "note"), Notice(alarm), Notice("Odd."), Notice("Odd."))
    calm = _report(notices=notices)
    plain = in_plain_words(calm)[1]
    assert plain[0].endswith("drawn at random, to find out.")
    assert plain[1:] == ["Odd.", "3 groups stand together at the end."]
    assert "(chance alone " not in plain[0]
    # What the headline says is not said again.
    loud = _report(notices=notices, p_value=[0.9, 0.001])
    said, notes = in_plain_words(loud)
    assert notes == plain[1:]
    assert "prevalens sample" in headline(loud).alarm
    assert said.alarm.endswith("before you rely on them.")


def test_every_part_has_words() -> None:
    roles = ("classifier", "aggregator", "quantifier")
    codes = {code for code, entry in ENTRIES.items() if entry.role in roles}
    assert codes <= set(CAPTIONS["parts"])


def test_a_part_without_words_is_named_by_its_code() -> None:
    assert method_in_words("lr+own") == "Logistic regression for each label; own"
    assert method_in_words("br(<GaussianNB>)+pcc") == "br(<GaussianNB>)+pcc"
