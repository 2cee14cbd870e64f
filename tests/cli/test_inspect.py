"""`prevalens inspect` rebuilds nothing of a model."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from prevalens import __main__ as program
from prevalens.model import Model


def test_nothing_is_rebuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Model.fit([[0.0], [1.0]] * 10, [[0], [1]] * 10, labels=["x"], method="lr+pcc").save(
        tmp_path / "m.prevalens"
    )

    def forbidden(*_: object) -> None:
        raise AssertionError("the parts were rebuilt")

    monkeypatch.setattr("prevalens.model.model.read_parts", forbidden)
    done = CliRunner().invoke(program.cli, ["inspect", str(tmp_path / "m.prevalens")])
    assert done.exit_code == 0
    assert "1 features as they are" in done.stdout
    assert "arrays or texts" in done.stdout
