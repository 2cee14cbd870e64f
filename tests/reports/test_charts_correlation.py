from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from prevalens.collection import label_correlation
from prevalens.reports.charts import correlation_map
from prevalens.validation import InputError

SVG = "{http://www.w3.org/2000/svg}"


def cells(root: Any) -> dict[str, Any]:
    cells = (rect for rect in root.iter(f"{SVG}rect") if rect.find(f"{SVG}title") is not None)
    return {rect.find(f"{SVG}title").text: rect for rect in cells}


def names(root: Any) -> list[str]:
    group = next(g for g in root.findall(f"{SVG}g") if g.attrib["text-anchor"] == "end")
    return [text.text for text in group]


def test_cells_are_coloured_by_sign_and_strength(read_xml: Callable[[str], Any]) -> None:
    phi = np.array([[1, 0.64, -0.25], [0.64, 1, 0.01], [-0.25, 0.01, 1]])
    drawn = cells(read_xml(correlation_map(phi, ["a", "b", "c"])))
    # The diagonal and what is too faint to see are left out.
    assert set(drawn) == {"a, b: +0.64", "b, a: +0.64", "a, c: -0.25", "c, a: -0.25"}
    assert drawn["a, b: +0.64"].attrib["fill-opacity"] == "0.80"
    assert drawn["a, b: +0.64"].attrib["fill"] != drawn["a, c: -0.25"].attrib["fill"]


def test_related_labels_stand_side_by_side(read_xml: Callable[[str], Any]) -> None:
    rng = np.random.default_rng(0)
    base = rng.integers(0, 2, (300, 2))
    # Copies of two labels, alternating, with a little noise.
    Y = base[:, [0, 1, 0, 1, 0, 1]] ^ (rng.random((300, 6)) < 0.05)
    shown = names(read_xml(correlation_map(label_correlation(Y), list("aAbBcC"))))
    assert "".join(shown).isalpha()
    kinds = [name.isupper() for name in shown]
    assert kinds in ([True] * 3 + [False] * 3, [False] * 3 + [True] * 3)


def test_only_the_strongest_labels_are_shown_and_the_title_says_so(
    read_xml: Callable[[str], Any],
) -> None:
    phi = np.eye(5)
    phi[1, 3] = phi[3, 1] = 0.5
    phi[0, 4] = phi[4, 0] = -0.9
    root = read_xml(correlation_map(phi, list("abcde"), title="Own", most=4))
    assert root.attrib["aria-label"] == "Own: 4 of 5 labels"
    assert set(names(root)) == set("abde")


def test_long_and_strange_names(read_xml: Callable[[str], Any]) -> None:
    root = read_xml(correlation_map([[1, 0.5], [0.5, 1]], ["<a&b>", "x" * 50]))
    assert set(names(root)) == {"<a&b>", "x" * 19 + "…"}


@pytest.mark.parametrize("n", [1, 2])
def test_few_labels(read_xml: Callable[[str], Any], n: int) -> None:
    assert names(read_xml(correlation_map(np.eye(n)))) == [f"label_{j}" for j in range(n)]


def test_matrices_are_checked() -> None:
    with pytest.raises(InputError, match="must be a square matrix"):
        correlation_map(np.zeros((2, 3)))
    with pytest.raises(InputError, match="must lie between -1 and 1"):
        correlation_map([[1, np.nan], [0, 1]])
    with pytest.raises(InputError, match="most must be at least 1"):
        correlation_map(np.eye(2), most=0)
