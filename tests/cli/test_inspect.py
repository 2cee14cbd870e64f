"""`prevalens inspect` reads the manifest of a model and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from prevalens import __main__ as program
from prevalens.model import Model


def test_a_model_is_described(tmp_path: Path) -> None:
    Model.fit([[0.0], [1.0]] * 10, [[0], [1]] * 10, labels=["x"], method="lr+pcc").save(
        tmp_path / "m.prevalens"
    )

    done = CliRunner().invoke(program.cli, ["inspect", str(tmp_path / "m.prevalens")])
    assert done.exit_code == 0
    assert "1 features as they are" in done.stdout
    assert "arrays or texts" in done.stdout


def test_no_estimator_is_imported() -> None:
    code = (
        "import sys, prevalens.cli.inspect\n"
        "print([name for name in ('sklearn', 'pandas', 'skops') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
