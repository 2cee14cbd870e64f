"""The code and the plans in the guide to experiments are what it says they are."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prevalens import catalogue
from prevalens.catalogue import parse
from prevalens.cli.bench import command
from prevalens.experiments.plan import Plan
from prevalens.metrics import MEASURES
from prevalens.protocols.families import FAMILIES

GUIDE = (Path(__file__).parents[1] / "docs" / "experiments.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


def test_the_plan_can_be_read_and_names_all_protocols_and_measures() -> None:
    text = blocks("toml")[0]
    plan = Plan.from_dict(tomllib.loads(text))
    grids = {(c.dataset, c.method.label): c.method.grid for c in plan.cells()}
    assert grids["emotions", "PCC, tuned"]["classifier__C"] == (0.1, 1)
    assert grids["synthetic", "PCC, tuned"]["classifier__C"] == (0.1, 1, 10)
    assert all(name in text for name in (*FAMILIES, *MEASURES))


def test_files_of_ones_own_can_be_named() -> None:
    content = tomllib.loads(blocks("toml")[1])
    plan = Plan.from_dict({"name": "own", "methods": [{"expression": "lr+pcc"}], **content})
    assert plan.sources[0].options == {"text": "text", "tags": "tags"}


def test_cuts_of_timelines_can_be_named() -> None:
    plan = Plan.from_dict({"name": "cuts", **tomllib.loads(blocks("toml")[2])})
    names = [method.name for method in plan.methods]
    assert names == ["auto", "auto, time"]
    assert plan.sources[0].options == {"cut": "1970", "max_train": 4000, "max_test": 10_000}
    assert {cell.protocol.parameters["unit"] for cell in plan.cells()} == {"Y", "M"}


def test_the_options_are_there() -> None:
    known = {name for option in command.params for name in option.opts}
    for line in re.findall(r"prevalens bench plan.toml (.*)", GUIDE):
        assert set(re.findall(r"--[a-z-]+", line)) <= known


@pytest.mark.slow
def test_the_code_runs() -> None:
    names: dict[str, Any] = {}
    for block in blocks("python"):
        if "read_plan" not in block:  # that one needs a plan in the folder
            exec(compile(block, "experiments.md", "exec"), names)
    try:
        assert set(names["search"].best_params_) == {
            "classifier__meta__C",
            "aggregator__regressor__C",
        }
        data = names["data"]
        found = parse("lr+stretched(factor=0)").fit(data.train.X, data.train.Y)
        np.testing.assert_allclose(found.quantify(data.test.X), data.train.Y.mean(axis=0))
        assert parse("boosting(learning_rate=0.3)+pcc").classifier.estimator.learning_rate == 0.3
    finally:
        for code in ("stretched", "boosting"):
            catalogue.unregister(code)


def test_the_map_of_the_package_is_that_of_the_import_graph() -> None:
    script = Path(__file__).parents[1] / "docs" / "draw_rooms.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_guide_to_methods_is_that_of_the_records() -> None:
    script = Path(__file__).parents[1] / "docs" / "draw_guide.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
