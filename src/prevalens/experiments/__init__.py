"""Experiments: a plan in a file, cells that are computed once, and a store of their results.

    plan = read_plan("plan.toml")
    store = Store("results")
    run_plan(plan, store, n_jobs=2)
    store.records()

A plan is a grid of datasets, methods, seeds and protocols. Each point of the grid is a cell, a
value whose key says all that its result depends on. The runner computes the cells that the store
does not have yet and can be killed at any moment; `prevalens bench` is its command.
"""

from prevalens.experiments.cache import ScoreCache
from prevalens.experiments.cells import Cell, DataSource
from prevalens.experiments.plan import Plan, read_plan
from prevalens.experiments.run import CellResult, Failure, run_cell
from prevalens.experiments.runner import (
    FailedCell,
    RunOutcome,
    plan_records,
    plan_results,
    run_plan,
)
from prevalens.experiments.specs import MethodSpec, ProtocolSpec
from prevalens.experiments.store import Store
from prevalens.experiments.workers import dask_executor

__all__ = [
    "Cell",
    "CellResult",
    "DataSource",
    "FailedCell",
    "Failure",
    "MethodSpec",
    "Plan",
    "ProtocolSpec",
    "RunOutcome",
    "ScoreCache",
    "Store",
    "dask_executor",
    "plan_records",
    "plan_results",
    "read_plan",
    "run_cell",
    "run_plan",
]
