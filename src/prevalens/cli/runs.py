"""Running a plan from the command line: warnings in one line each, and where to go on."""

from __future__ import annotations

from typing import Any

import click

from prevalens.cli.speaking import said_warnings
from prevalens.experiments.plan import Plan
from prevalens.experiments.runner import Summary, run_plan
from prevalens.experiments.store import Store

__all__ = ["run_told"]


def run_told(plan: Plan, store: Store, **options: Any) -> Summary:
    """`run_plan`; stopped by hand, it says that nothing is lost."""
    try:
        with said_warnings():
            return run_plan(plan, store, **options)
    except KeyboardInterrupt:
        click.echo(
            f"\nStopped. Finished cells are in {store.folder}; the same command goes on there.",
            err=True,
        )
        raise
