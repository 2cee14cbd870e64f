from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from prevalens.collection import Collection
from prevalens.records import Result
from prevalens.reports.page import Gallery, Section, page
from prevalens.reports.sections import (
    correlation_section,
    curves_section,
    estimates_section,
    prevalence_section,
    shift_section,
)


def gallery(section: Section) -> Gallery:
    (part,) = section.parts
    assert isinstance(part, Gallery)
    assert part.caption.endswith(".")
    return part


def names(section: Section) -> list[str]:
    return [figure.name for figure in gallery(section).figures]


def test_a_curve_per_dataset(paper_like: Callable[..., list[Result]]) -> None:
    section = curves_section(paper_like())
    assert names(section) == [
        f"error-against-shift-ae-{name}" for name in ("emotions", "scene", "genbase")
    ]
    assert all("<polygon" in figure.svg for figure in gallery(section).figures)


def test_many_curves_have_no_bands(paper_like: Callable[..., list[Result]]) -> None:
    (figure, *_) = gallery(curves_section(paper_like("mlc"))).figures
    assert "<polygon" not in figure.svg


def test_a_histogram_per_dataset() -> None:
    section = prevalence_section({"scene": [0.1, 0.2], "own": [0.5]})
    assert names(section) == ["prevalence-scene", "prevalence-own"]
    assert "<title>Scene</title>" in gallery(section).figures[0].svg


def test_a_distribution_of_shift_per_dataset() -> None:
    section = shift_section({"scene": {"ML-APP": [0.0, 0.2], "uniform sampling": [0.0, 0.01]}})
    assert names(section) == ["shift-scene"]
    assert "uniform sampling" in gallery(section).figures[0].svg


def test_a_map_of_labels_per_dataset() -> None:
    data = Collection(np.eye(4), [[1, 0], [0, 1], [1, 0], [0, 1]], ["a", "b"])
    section = correlation_section({"own": data})
    assert "a, b: -1.00" in gallery(section).figures[0].svg


@pytest.mark.parametrize(("name", "title"), [("scene", "Estimates on Scene"), ("", "Estimates")])
def test_estimates_as_diagonal_and_bias(name: str, title: str) -> None:
    true = np.linspace(0, 1, 20).reshape(10, 2)
    section = estimates_section({"CC": (true, true**2)}, true.mean(axis=1), name=name)
    assert section.title == title
    assert [name.split("-")[0] for name in names(section)] == ["diagonal", "bias"]
    assert page("Title", [section]).count("<svg") == 2
