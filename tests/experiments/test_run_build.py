from __future__ import annotations

from pathlib import Path

import pytest

from prevalens.experiments import MethodSpec
from prevalens.experiments.cache import CachedClassifier, ScoreCache
from prevalens.experiments.run import build
from prevalens.protocols import MLAPP
from prevalens.selection.grid_search import GridSearch


def test_without_a_grid_it_is_the_quantifier_of_the_expression() -> None:
    built = build(MethodSpec("a", "lr(C=3)+pacc"), seed=4)
    assert built.classifier.get_params()["C"] == 3
    assert built.scheme.random_state == 4


@pytest.mark.parametrize(
    ("expression", "path"),
    [
        ("lr+pacc@holdout(0.3)", "scheme__random_state"),
        ("stack+pcc", "classifier__random_state"),
        ("forest+pcc", "classifier__random_state"),
        ("lr+rq", "aggregator__random_state"),
    ],
)
def test_every_seed_is_that_of_the_cell_unless_named(expression: str, path: str) -> None:
    assert build(MethodSpec("a", expression), seed=5).get_params()[path] == 5
    name = path.rpartition("__")[2]
    half = "scheme" if path.startswith("scheme") else path.partition("__")[0]
    named = {
        "scheme": "lr+pacc@holdout(0.3,random_state=9)",
        "classifier": f"{expression.partition('+')[0]}({name}=9)+pcc",
        "aggregator": f"lr+rq({name}=9)",
    }[half]
    assert build(MethodSpec("a", named), seed=5).get_params()[path] == 9


def test_a_grid_makes_a_search_with_values_read() -> None:
    method = MethodSpec(
        "a",
        "lr+pcc",
        {"classifier__C": (0.1, "10"), "classifier__class_weight": ("None", "balanced")},
        {"choose": "together", "validation": 0.3, "protocol": {"name": "ml-app", "grid": 7}},
    )
    built = build(method, seed=2)
    assert isinstance(built, GridSearch)
    assert built.grid == {
        "classifier__C": [0.1, 10],
        "classifier__class_weight": [None, "balanced"],
    }
    assert (built.choose, built.validation, built.random_state) == ("together", 0.3, 2)
    assert isinstance(built.protocol, MLAPP)
    assert built.protocol.grid == 7


def test_methods_inside_others_are_seeded_and_remembered_too(tmp_path: Path) -> None:
    inner = build(MethodSpec("a", "rq(lr+pcc,ridge)"), 4, ScoreCache(tmp_path)).aggregator.base
    assert inner.scheme.random_state == 4
    assert isinstance(inner.classifier, CachedClassifier)


def test_the_classifier_is_remembered_if_there_is_one(tmp_path: Path) -> None:
    cache = ScoreCache(tmp_path)
    assert isinstance(build(MethodSpec("a", "lr+pcc"), 0, cache).classifier, CachedClassifier)
    assert not isinstance(build(MethodSpec("a", "lr+pcc"), 0).classifier, CachedClassifier)
    assert build(MethodSpec("a", "naive"), 0, cache).classifier is None
