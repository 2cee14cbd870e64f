from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from prevalens.datasets import synthetic
from prevalens.experiments import MethodSpec, ProtocolSpec
from prevalens.experiments.specs import PlanTable
from prevalens.protocols import MLAPP
from prevalens.protocols.families import FAMILIES
from prevalens.validation import InputError, PrevalensWarning


def read_protocol(**values: Any) -> ProtocolSpec:
    return ProtocolSpec.read(PlanTable(values, "plan.toml"))


def test_a_protocol_may_have_another_name_than_its_kind() -> None:
    spec = read_protocol(name="few", kind="ml-app", size=7)
    assert spec == ProtocolSpec("few", "ml-app", {"size": 7})
    assert isinstance(spec.protocol(), MLAPP)
    assert spec.protocol().size == 7
    assert read_protocol(**spec.to_table()) == spec


@pytest.mark.parametrize("kind", [kind for kind in FAMILIES if kind not in ("windows", "periods")])
def test_every_protocol_draws(kind: str) -> None:
    data = synthetic(n_train=20, n_test=200, n_labels=3)
    protocol = read_protocol(name=kind, size=10).protocol(data).with_items(data.test.X)
    assert len(protocol.draw(data.test.Y, 0)) > 0


@pytest.mark.parametrize("kind", ["windows", "periods"])
def test_protocols_by_time_are_told_the_times(kind: str) -> None:
    moving = synthetic(n_train=20, n_test=200, n_labels=3, periods=4)
    samples = read_protocol(name=kind).protocol(moving).draw(moving.test.Y, 0)
    assert np.all(np.diff([moving.test_times[rows].min() for rows in samples]) >= 0)
    still = synthetic(n_train=20, n_test=200, n_labels=3)
    with pytest.raises(InputError, match="goes by time, but the dataset 'synthetic' does not"):
        read_protocol(name=kind).protocol(still)


def test_what_comes_from_the_data_is_no_parameter() -> None:
    with pytest.raises(InputError, match="times is not known"):
        read_protocol(name="periods", times=[1])


def test_a_method_is_named_by_its_variant_too() -> None:
    assert MethodSpec("PCC", "lr+pcc").name == "PCC"
    assert MethodSpec("PCC", "lr+pcc", variant="as printed").name == "PCC [as printed]"


def test_selection_protocols_are_read_like_others() -> None:
    content = {
        "expression": "lr+pcc",
        "grid": {"classifier__C": [1]},
        "selection": {"protocol": {"name": "ml-app", "gird": 3}},
    }
    with pytest.raises(InputError, match=r"selection.protocol.gird is not known; did you mean 'gr"):
        MethodSpec.read(PlanTable(content, "plan.toml"))


def test_a_search_takes_its_seed_from_the_cell_alone() -> None:
    table = {
        "expression": "lr+pcc",
        "grid": {"classifier__C": [1, 2]},
        "selection": {"random_state": 3},
    }
    with pytest.raises(InputError, match=r"selection\.random_state is not known"):
        MethodSpec.read(PlanTable(table, "plan.toml"))


def test_another_name_of_a_protocol_is_accepted_with_a_note() -> None:
    with pytest.warns(PrevalensWarning, match="'tilt' is called 'label-tilt'"):
        spec = read_protocol(name="tilt")
    assert (spec.name, spec.kind) == ("tilt", "label-tilt")
