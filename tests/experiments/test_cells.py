from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.experiments import Cell, DataSource, MethodSpec, ProtocolSpec, read_plan

SHA = "ab" * 32

numbers = st.integers(0, 100) | st.floats(0, 100)
cells = st.builds(
    Cell,
    source=st.builds(DataSource, st.sampled_from(["synthetic", "emotions"])),
    method=st.builds(
        MethodSpec,
        label=st.text(min_size=1, max_size=5),
        expression=st.sampled_from(["lr+cc", "lr+pcc", "lr(C=10)+rq(pcc,svr)"]),
        grid=st.dictionaries(
            st.sampled_from(["classifier__C", "classifier__class_weight"]),
            st.lists(numbers | st.sampled_from(["None", "balanced"]), min_size=1).map(tuple),
        ),
        selection=st.dictionaries(st.sampled_from(["validation"]), numbers),
        variant=st.text(max_size=5),
    ),
    protocol=st.builds(
        ProtocolSpec,
        name=st.text(min_size=1, max_size=5),
        kind=st.sampled_from(["ml-app", "natural"]),
        parameters=st.dictionaries(st.sampled_from(["size", "grid"]), numbers),
    ),
    seed=st.integers(0, 5),
    metrics=st.sampled_from([("ae",), ("ae", "rae")]),
    interval=st.sampled_from([None, 0.9]),
)


@given(cells)
def test_key_survives_every_journey(cell: Cell) -> None:
    key = cell.key(SHA)
    assert pickle.loads(pickle.dumps(cell)).key(SHA) == key
    # The store writes names in order; that of a grid is not theirs.
    sorted_names = json.dumps(cell.to_dict(), sort_keys=True)
    assert Cell.from_dict(json.loads(sorted_names)).key(SHA) == key
    assert Cell.from_dict(cell.to_dict()) == cell


def test_the_order_of_a_grid_survives_a_file(make_cell: Callable[..., Cell]) -> None:
    cell = make_cell(method=MethodSpec("RQ", "lr+rq(pcc,svr)", {"zeta": (1,), "alpha": (2, 3)}))
    content = json.dumps(cell.to_dict(), sort_keys=True)
    assert list(Cell.from_dict(json.loads(content)).method.grid) == ["zeta", "alpha"]


@given(cells)
def test_names_do_not_change_the_key(cell: Cell) -> None:
    renamed = replace(
        cell,
        method=replace(cell.method, label="other", variant="one"),
        protocol=replace(cell.protocol, name="other"),
    )
    assert renamed.key(SHA) == cell.key(SHA)


CHANGES = ["seed", "metrics", "source", "expression", "grid", "parameters", "time", "interval"]


@given(cells, st.sampled_from(CHANGES))
def test_everything_else_does(cell: Cell, what: str) -> None:
    other = {
        "seed": lambda: replace(cell, seed=cell.seed + 1),
        "metrics": lambda: replace(cell, metrics=("se",)),
        "source": lambda: replace(cell, source=DataSource("yeast")),
        "expression": lambda: replace(cell, method=replace(cell.method, expression="lr+acc")),
        "time": lambda: replace(cell, method=replace(cell.method, time=True)),
        "interval": lambda: replace(cell, interval=0.8),
        "grid": lambda: replace(cell, method=replace(cell.method, grid={"classifier__C": (7e3,)})),
        "parameters": lambda: replace(
            cell, protocol=replace(cell.protocol, parameters={"repeats": 2})
        ),
    }[what]()
    assert other.key(SHA) != cell.key(SHA)
    assert cell.key(SHA) != cell.key("cd" * 32)


def test_key_is_the_same_in_every_process(make_cell: Callable[..., Cell]) -> None:
    cell = make_cell()
    code = (
        "from prevalens.experiments import *\n"
        "print(Cell(DataSource('synthetic'), MethodSpec('lr+pcc', 'lr+pcc'), "
        "ProtocolSpec('ml-app', 'ml-app', {'grid': 5, 'size': 50}), 0).key('ab' * 32))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert output.strip() == cell.key(SHA)


def test_keys_of_earlier_results_still_hold() -> None:
    # Of the first cell of examples/plan.toml before plans knew times, cuts and intervals.
    cell = read_plan(Path(__file__).parents[2] / "examples" / "plan.toml").cells()[0]
    assert cell.key(SHA) == "c475e8a4c0a5a3bc2f7c09cc4e8655ef"
    earlier = cell.to_dict()
    del earlier["interval"], earlier["method"]["time"]
    assert Cell.from_dict(earlier) == cell


def test_each_cut_has_results_of_its_own(make_cell: Callable[..., Cell]) -> None:
    sources = [DataSource.registered(name, {}) for name in ("un", "un@1970", "un@1985")]
    sources.append(DataSource.registered("un@1985", {"max_train": 9}))
    keys = {make_cell(source=source).key(SHA) for source in sources}
    assert len(keys) == 4


@pytest.mark.parametrize(
    ("left", "right"), [("lr+pcc", " lr + pcc "), ("lr(C=10)+pcc", "lr( C = 10 )+pcc")]
)
def test_blanks_in_an_expression_do_not_matter(
    make_cell: Callable[..., Cell], left: str, right: str
) -> None:
    assert make_cell(expression=left).key(SHA) == make_cell(expression=right).key(SHA)


def test_equal_values_of_a_grid_are_equal(make_cell: Callable[..., Cell]) -> None:
    def with_grid(*values: Any) -> str:
        return make_cell(method=MethodSpec("a", "lr+pcc", {"classifier__C": values})).key(SHA)

    assert with_grid(1, 10) == with_grid("1", " 10")
    assert with_grid(1, 10) != with_grid(1.0, 10)
    assert with_grid(1, 10) != with_grid(10, 1)


def test_cells_that_differ_in_the_protocol_share_their_training(
    make_cell: Callable[..., Cell],
) -> None:
    cell, other = make_cell(), make_cell(protocol=ProtocolSpec("natural", "natural"))
    assert cell.key(SHA) != other.key(SHA)
    assert cell.training_key() == other.training_key()
    assert make_cell(seed=1).training_key() != cell.training_key()


def test_cells_that_differ_in_the_aggregator_share_their_scores(
    make_cell: Callable[..., Cell],
) -> None:
    cc, pcc = make_cell(expression="lr+cc"), make_cell(expression="lr+pcc")
    assert cc.scores_key() == pcc.scores_key()
    assert cc.training_key() != pcc.training_key()
    assert make_cell(expression="lr(C=10)+cc").scores_key() != cc.scores_key()


def test_where_files_lie_does_not_matter(make_cell: Callable[..., Cell]) -> None:
    here = make_cell(source=DataSource("mine", "/here/train.csv", "/here/test.csv", {"tags": "t"}))
    there = make_cell(
        source=DataSource("mine", "/there/train.csv", "/there/test.csv", {"tags": "t"})
    )
    other = make_cell(source=DataSource("mine", "/here/train.csv", "/here/test.csv", {"tags": "u"}))
    assert here.key(SHA) == there.key(SHA) != other.key(SHA)
    assert "/here" not in json.dumps(here.to_dict())
