"""Fixtures every room shares."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Runs are repeatable and do not fail because the machine is slow today.
settings.register_profile(
    "repo", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repo")


@pytest.fixture(scope="session")
def data_home() -> Path:
    """The folder with the public datasets; tests that need it are skipped without."""
    home = os.environ.get("PREVALENS_DATA")
    if not home or not Path(home).is_dir():
        pytest.skip("PREVALENS_DATA does not name the folder of the public datasets")
    return Path(home)


@pytest.fixture(autouse=True)
def _needs_data(request: pytest.FixtureRequest) -> None:
    """A test marked `data` is skipped where the public datasets are not at hand."""
    if request.node.get_closest_marker("data"):
        request.getfixturevalue("data_home")
