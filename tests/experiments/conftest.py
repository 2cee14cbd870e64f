"""Small plans, cells and made-up results."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prevalens.experiments import (
    Cell,
    CellResult,
    DataSource,
    MethodSpec,
    Plan,
    ProtocolSpec,
    Store,
)
from prevalens.experiments.run import Usage

SHA = "0" * 64


@pytest.fixture
def content() -> dict[str, Any]:
    """A plan of two methods on built-in data that takes about a second."""
    return {
        "name": "small",
        "datasets": ["synthetic"],
        "protocols": [{"name": "ml-app", "size": 50, "grid": 5}],
        "methods": [{"expression": "lr+cc"}, {"expression": "lr+pcc"}],
    }


@pytest.fixture(scope="session")
def wait_for() -> Callable[[Callable[[], Any]], Any]:
    """Waits up to a minute until a condition holds, and returns its value."""

    def wait(condition: Callable[[], Any]) -> Any:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if value := condition():
                return value
            time.sleep(0.02)
        raise TimeoutError

    return wait


@pytest.fixture
def plan(content: dict[str, Any]) -> Plan:
    return Plan.from_dict(content)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


@pytest.fixture
def make_cell() -> Callable[..., Cell]:
    def make(
        dataset: str = "synthetic", expression: str = "lr+pcc", seed: int = 0, **changes: Any
    ) -> Cell:
        method = MethodSpec(expression, expression)
        protocol = ProtocolSpec("ml-app", "ml-app", {"size": 50, "grid": 5})
        given = {
            "source": DataSource(dataset),
            "method": method,
            "protocol": protocol,
            "seed": seed,
        }
        return Cell(**{**given, **changes})

    return make


@pytest.fixture
def make_result(make_cell: Callable[..., Cell]) -> Callable[..., CellResult]:
    """Results as a run would give them, with random numbers inside."""

    def make(seed: int = 0, n_samples: int = 12, **changes: Any) -> CellResult:
        cell = make_cell(seed=seed, **changes)
        rng = np.random.default_rng(seed)
        reals = ("ae", "rae", "prevalence", "true", "estimated")
        columns = {name: rng.random(n_samples).astype(np.float32) for name in reals}
        columns["shift"] = np.arange(n_samples) / n_samples
        columns["size"] = np.full(n_samples, 50, dtype=np.int32)
        columns["target"] = np.arange(n_samples, dtype=np.int32) % 2
        labels = {name: [0.25, 0.5] for name in ("training", "error", "bias")}
        return CellResult(
            cell=cell,
            key=cell.key(SHA),
            data_sha=SHA,
            versions={"prevalens": "0"},
            chosen={"classifier__C": [1, 10], "classifier__class_weight": None},
            columns=columns,
            labels={"name": ["a", "b"], **labels},
            usage=Usage(1.0, 0.5, 1.5, 100.0, 2, 3, ("odd",)),
            validation_loss=0.0625 if seed else None,
        )

    return make
