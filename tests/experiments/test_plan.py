from __future__ import annotations

import copy
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.experiments import DataSource, Plan, read_plan
from prevalens.validation import FormatError, InputError

EXAMPLE = Path(__file__).parents[2] / "examples" / "plan.toml"

grids = st.dictionaries(
    st.sampled_from(["classifier__C", "classifier__class_weight"]),
    st.lists(
        st.integers(1, 9) | st.floats(0.1, 9) | st.sampled_from(["None", "balanced", "0.5"]),
        min_size=1,
        max_size=3,
    ),
    min_size=1,
)
names = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1)
methods = st.fixed_dictionaries(
    {"label": names, "expression": st.sampled_from(["lr+cc", "lr+pcc"])},
    optional={"variant": names, "grid": grids} | {"time": st.just(False)},
)
plans = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["a", "b-1.2"]),
        "datasets": st.lists(
            st.sampled_from(["emotions", "synthetic", "yeast"]), min_size=1, unique=True
        ),
        "methods": st.lists(
            methods, min_size=1, max_size=3, unique_by=lambda m: (m["label"], m.get("variant"))
        ),
    },
    optional={
        "seeds": st.lists(st.integers(0, 99), min_size=1, max_size=3, unique=True),
        "metrics": st.lists(st.sampled_from(["ae", "rae", "se"]), min_size=1, unique=True),
        "protocols": st.just([{"name": "few", "kind": "natural", "n_samples": 3}]),
        "intervals": st.just(0.9),
        "max_train": st.integers(1, 99),
    },
)


@given(plans)
def test_a_plan_survives_the_way_through_its_file(content: dict[str, Any]) -> None:
    plan = Plan.from_dict(content)
    again = Plan.from_dict(tomllib.loads(plan.to_toml()))
    assert again == plan
    assert again.cells() == plan.cells()
    assert Plan.from_dict(plan.to_dict()) == plan


@given(plans)
def test_cells_are_all_combinations_once(content: dict[str, Any]) -> None:
    plan = Plan.from_dict(content)
    cells = plan.cells()
    per_dataset = len(plan.methods) * len(plan.protocols) * len(plan.seeds)
    assert len(cells) == len(plan.sources) * per_dataset
    assert len(set(map(str, cells))) == len(cells)


def test_the_example_is_a_plan() -> None:
    plan = read_plan(EXAMPLE)
    assert len(plan.cells()) == 20
    assert plan.methods[2].grid["classifier__class_weight"] == ("None", "balanced")


def test_defaults_are_the_papers_protocol(content: dict[str, Any]) -> None:
    del content["protocols"]
    plan = Plan.from_dict(content)
    (protocol,) = plan.protocols
    assert (protocol.kind, protocol.parameters) == ("ml-app", {"more_than": 10_000})
    assert plan.seeds == (0,)
    assert plan.metrics == ("ae", "rae")


def test_an_override_may_name_one_variant(content: dict[str, Any]) -> None:
    content["datasets"] = ["synthetic", "emotions"]
    content["methods"] = [
        {"label": "count", "variant": variant, "expression": "lr+pcc"}
        for variant in ("plain", "coarse")
    ]
    content["overrides"] = {
        "emotions": {
            "methods": {
                "count": {"grid": {"classifier__C": [5]}},
                "count [coarse]": {"expression": "lr(tol=0.01)+pcc"},
            }
        }
    }
    plan = Plan.from_dict(content)
    methods = {(cell.dataset, cell.method.variant): cell.method for cell in plan.cells()}
    assert methods["synthetic", "coarse"].expression == "lr+pcc"
    assert methods["emotions", "plain"].expression == "lr+pcc"
    assert methods["emotions", "coarse"].expression == "lr(tol=0.01)+pcc"
    assert methods["emotions", "plain"].grid == methods["emotions", "coarse"].grid
    assert Plan.from_dict(tomllib.loads(plan.to_toml())) == plan


def test_an_override_changes_one_dataset_only(content: dict[str, Any]) -> None:
    content["datasets"] = ["synthetic", "emotions"]
    content["methods"][1] |= {
        "grid": {"classifier__C": [1, 10]},
        "selection": {"validation": 0.3, "protocol": {"name": "ml-app", "repeats": 2}},
    }
    content["overrides"] = {
        "emotions": {
            "protocols": {"ml-app": {"grid": 21}},
            "methods": {
                "lr+cc": {"skip": True},
                "lr+pcc": {
                    "grid": {"classifier__C": [5]},
                    "selection": {"protocol": {"grid": 21}},
                },
            },
        }
    }
    plan = Plan.from_dict(content)
    cells = {(cell.dataset, cell.method.label): cell for cell in plan.cells()}
    assert ("emotions", "lr+cc") not in cells
    usual, other = cells["synthetic", "lr+pcc"], cells["emotions", "lr+pcc"]
    assert usual.protocol.parameters == {"size": 50, "grid": 5}
    assert other.protocol.parameters == {"size": 50, "grid": 21}
    assert usual.method.grid["classifier__C"] == (1, 10)
    assert other.method.grid["classifier__C"] == (5,)
    assert other.method.selection == {
        "validation": 0.3,
        "protocol": {"name": "ml-app", "repeats": 2, "grid": 21},
    }
    assert Plan.from_dict(tomllib.loads(plan.to_toml())) == plan


TIMELINES = EXAMPLE.with_name("timelines.toml")


def test_the_example_of_timelines_has_one_protocol_per_dataset() -> None:
    plan = read_plan(TIMELINES)
    cells = plan.cells()
    pairs = {(cell.dataset.partition("@")[0], cell.protocol.name) for cell in cells}
    assert pairs == {("un", "periods"), ("arxiv", "windows"), ("goemotions", "natural")}
    assert len(cells) == len(plan.sources) * len(plan.methods) - 1
    timed = [cell for cell in cells if cell.method.time]
    assert {cell.method.name for cell in timed} == {"auto, time"}
    assert "goemotions" not in {cell.dataset for cell in timed}
    assert all(cell.interval == 0.9 for cell in cells)
    assert Plan.from_dict(tomllib.loads(plan.to_toml())) == plan


def test_a_cut_and_limits_are_part_of_the_data(content: dict[str, Any]) -> None:
    content |= {"datasets": ["un@1985", "un", "synthetic"], "max_train": 40}
    cut, whole, other = Plan.from_dict(content).sources
    assert cut == DataSource("un@1985", options={"cut": "1985", "max_train": 40})
    assert cut.registry_name == whole.registry_name == "un"
    assert whole.options == other.options == {"max_train": 40}


def test_overrides_by_pattern(content: dict[str, Any]) -> None:
    content["datasets"] = ["un@1970", "un@1985", "synthetic"]
    content["overrides"] = {
        "un@*": {"protocols": {"ml-app": {"size": 7}}, "methods": {"lr+cc": {"skip": True}}},
        "un@1985": {"protocols": {"ml-app": {"grid": 3}}},
        "synthetic": {"protocols": {"ml-app": {"skip": True}}},
    }
    cells = {(cell.dataset, cell.method.name): cell for cell in Plan.from_dict(content).cells()}
    assert set(cells) == {("un@1970", "lr+pcc"), ("un@1985", "lr+pcc")}
    assert cells["un@1970", "lr+pcc"].protocol.parameters == {"size": 7, "grid": 5}
    assert cells["un@1985", "lr+pcc"].protocol.parameters == {"size": 7, "grid": 3}


def test_seeds_of_one_dataset(content: dict[str, Any]) -> None:
    content |= {"datasets": ["un", "synthetic"], "seeds": [0, 1]}
    content["overrides"] = {"un": {"seeds": [7]}}
    plan = Plan.from_dict(content)
    seeds = {
        name: {c.seed for c in plan.cells() if c.dataset == name} for name in ("un", "synthetic")
    }
    assert seeds == {"un": {7}, "synthetic": {0, 1}}
    assert Plan.from_dict(tomllib.loads(plan.to_toml())) == plan


def test_files_of_ones_own_lie_beside_the_plan(content: dict[str, Any], tmp_path: Path) -> None:
    content["datasets"] = ["mine"]
    content["sources"] = {"mine": {"train": "a.csv", "test": "b.csv", "tags": "topics"}}
    plan = Plan.from_dict(content, folder=tmp_path)
    folder = str(tmp_path)
    expected = DataSource("mine", f"{folder}/a.csv", f"{folder}/b.csv", {"tags": "topics"})
    assert plan.sources == (expected,)
    assert Plan.from_dict(tomllib.loads(plan.to_toml())) == plan


def change(content: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(content)
    *way, last = [int(step) if step.isdecimal() else step for step in path.split("/")]
    inner: Any = changed
    for step in way:
        inner = inner[step] if isinstance(step, int) else inner.setdefault(step, {})
    inner[last] = value
    return changed


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("name", "a/b", "name must be letters, digits, dots, dashes and underscores; got 'a/b'."),
        ("name", 3, "name must be a text; got 3."),
        ("seed", [1], "seed is not known; did you mean 'seeds'?"),
        ("seeds", [0.5], "seeds must be a list of whole numbers; it holds 0.5."),
        ("datasets", "synthetic", "datasets must be a list of texts; got 'synthetic'."),
        ("datasets", ["emotion"], "datasets names 'emotion': There is no dataset 'emotion'; did"),
        (
            "datasets",
            ["un@soon"],
            "datasets names 'un@soon': a cut is a date, as in 'un@1985'; got",
        ),
        ("intervals", 90, "intervals must be a level between 0 and 1, such as 0.9; got 90."),
        ("max_train", 0, "max_train must be a whole number of items, 1 or more; got 0."),
        ("methods/0/time", 1, "methods[0].time must be true or false; got 1."),
        (
            "methods/0",
            {"expression": "lr+cc", "time": True, "grid": {"classifier__C": [1]}},
            "methods[0].time is true, but a search over a grid knows no times.",
        ),
        (
            "overrides/synthetic/protocols/ml-app",
            {"skip": "yes"},
            "overrides.synthetic.protocols.ml-app.skip must be true or false; got 'yes'.",
        ),
        ("overrides/un@*", {}, "overrides.un@* is not in the plan; known are synthetic."),
        (
            "overrides/synthetic",
            {"seeds": [-1]},
            "overrides.synthetic.seeds must hold no negative number; got -1.",
        ),
        ("metrics", ["mae"], "metrics names 'mae'; did you mean 'ae'?"),
        ("methods", [], "methods must be a list of tables, as in [[methods]]; got []."),
        ("methods/0/expression", 7, "methods[0].expression must be a text; got 7."),
        (
            "methods/0/expression",
            "lr+",
            "methods[0].expression is 'lr+', which is no method: The text ends too early.",
        ),
        (
            "methods/1/expression",
            "lr+pccc",
            "methods[1].expression is 'lr+pccc', which is no method: There is no",
        ),
        (
            "methods/0/exprssion",
            "a",
            "methods[0].exprssion is not known; did you mean 'expression'?",
        ),
        (
            "methods/0/grid",
            {"classifier__c": [1]},
            "methods[0].grid.classifier__c is no parameter of 'lr+cc'; did you mean 'classifier__",
        ),
        (
            "methods/0/grid",
            {"classifier__C": 1},
            "methods[0].grid.classifier__C must be a list of values to try; got 1.",
        ),
        (
            "methods/0/grid",
            {"classifier__C": ["1 2"]},
            "methods[0].grid.classifier__C holds '1 2', which is no value: Expected",
        ),
        (
            "methods/0/selection",
            {"validation": 0.4},
            "methods[0].selection is given, but there is no grid to select from.",
        ),
        ("methods/1", {"expression": "lr+cc"}, "methods has 'lr+cc' twice; give each another"),
        (
            "protocols/0/name",
            "mlapp",
            "protocols[0].name is 'mlapp', which is no protocol; did you",
        ),
        ("protocols/0/kind", "x", "protocols[0].kind is 'x', which is no protocol; known are"),
        ("protocols/0/sise", 5, "protocols[0].sise is not known; did you mean 'size'?"),
        ("sources/mine", {"train": "a", "test": "b"}, "sources.mine is not among the datasets"),
        ("sources/yeast", {}, "sources.yeast has the name of a known dataset; choose another."),
        ("overrides/yeast", {}, "overrides.yeast is not in the plan; known are synthetic."),
        (
            "overrides/synthetic/protocols/ml-ap",
            {},
            "overrides.synthetic.protocols.ml-ap is not in the plan; did you mean 'ml-app'?",
        ),
        (
            "overrides/synthetic/protocols/ml-app",
            {"sise": 3},
            "overrides.synthetic.protocols.ml-app.sise is not known; did you mean 'size'?",
        ),
        (
            "overrides/synthetic/protocols/ml-app",
            {"kind": "natural"},
            "overrides.synthetic.protocols.ml-app.kind cannot be different on one dataset;",
        ),
        (
            "overrides/synthetic/methods/lr+cc",
            {"skip": 1},
            "overrides.synthetic.methods.lr+cc.skip must be true or false; got 1.",
        ),
        (
            "overrides/synthetic/methods/lr+cc",
            {"expression": "lr+xx"},
            "overrides.synthetic.methods.lr+cc.expression is 'lr+xx', which is no method: There",
        ),
        (
            "overrides/synthetic/methods/lr+cc",
            {"grid": {"classifier__C": 5}},
            "overrides.synthetic.methods.lr+cc.grid.classifier__C must be a list of values to try;",
        ),
        (
            "overrides/synthetic/methods/lr+cc",
            {"label": "x"},
            "overrides.synthetic.methods.lr+cc.label is not known; known are",
        ),
        ("overrides", 3, "overrides must be a table; got 3."),
    ],
)
def test_a_bad_plan_gets_one_sentence_with_file_key_and_value(
    content: dict[str, Any], path: str, value: Any, sentence: str
) -> None:
    with pytest.raises(InputError) as caught:
        Plan.from_dict(change(content, path, value), where="plan.toml")
    assert str(caught.value).startswith(f"plan.toml: {sentence}")
    assert "\n" not in str(caught.value)


def test_limits_are_for_datasets_of_the_registry(content: dict[str, Any]) -> None:
    content |= {"datasets": ["mine"], "max_test": 9}
    content["sources"] = {"mine": {"train": "a.csv", "test": "b.csv", "tags": "topics"}}
    with pytest.raises(InputError, match="max_test cannot be used with sources of your own"):
        Plan.from_dict(content)


def test_a_file_that_is_not_toml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text("name = ]")
    with pytest.raises(FormatError, match=r"plan.toml: this is not a TOML file: .*line 1"):
        read_plan(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"The plan .*none.toml cannot be read: No such file"):
        read_plan(tmp_path / "none.toml")
