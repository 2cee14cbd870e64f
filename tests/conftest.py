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


@pytest.fixture
def parquet_sources(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What Arrow is asked to read from, as the test goes on.

    Reading from a Python file, one run in fifty was aborted when it ended
    (https://github.com/apache/arrow/issues/34314, /33975, /50482).
    """
    parquet = pytest.importorskip("pyarrow.parquet")
    sources: list[object] = []
    opened = parquet.ParquetFile

    def noted(source: object, *args: object, **named: object) -> object:
        sources.append(source)
        return opened(source, *args, **named)

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("read_table leaves threads behind; use ParquetFile")

    monkeypatch.setattr(parquet, "ParquetFile", noted)
    monkeypatch.setattr(parquet, "read_table", refused)
    return sources
