"""`prevalens inspect` reads the manifest of a model and nothing else."""

from __future__ import annotations

import json
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
    said = " ".join(done.stdout.split())
    assert "Intervals allow for drift: 1.8 points for a label of 10 %, 3.0 points for a" in said
    assert "times" not in said.split("drift")[0]


def test_what_the_backtest_found(tmp_path: Path) -> None:
    X, Y = [[float(i % 7), float(i % 5)] for i in range(240)], [[i % 7 > 3] for i in range(240)]
    path = tmp_path / "m.prevalens"
    years = [1990 + i // 8 for i in range(240)]
    Model.fit(X, Y, labels=["x"], method="lr+pcc", time=years).save(path)
    done = CliRunner().invoke(program.cli, ["inspect", str(path)])
    said = " ".join(done.stdout.split())
    assert "times 1990 to 2019" in said
    assert "In a backtest over 4 origins, estimates were off" in said
    drift = json.loads(CliRunner().invoke(program.cli, ["inspect", str(path), "--json"]).stdout)
    assert drift["drift"]["source"] == "backtest"
    assert drift["drift"]["allowance"].startswith("Intervals allow for drift: ")


def test_no_estimator_is_imported() -> None:
    code = (
        "import sys, prevalens.cli.inspect\n"
        "print([name for name in ('sklearn', 'pandas', 'skops') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
