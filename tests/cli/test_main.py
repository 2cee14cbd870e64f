"""The command line as a user types it: help at once, refusals in one sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from prevalens import __main__ as program
from prevalens.__main__ import COMMANDS


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from prevalens.__main__ import main; main()", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_every_command_has_a_file_and_a_help() -> None:
    for name in COMMANDS:
        result = CliRunner().invoke(program.cli, [name, "--help"])
        assert result.exit_code == 0, result.output
        assert "Usage:" in result.output


def loaded_by(*words: str, of: set[str]) -> tuple[str, list[str]]:
    """What a command prints, and which of some modules it loads."""
    code = (
        f"import sys; sys.argv = {['prevalens', *words]!r}\n"
        "from prevalens.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print('LOADED', *sorted({of!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    printed, _, names = done.stdout.partition("LOADED")
    return printed + done.stderr, names.split()


def test_help_loads_no_heavy_library() -> None:
    printed, heavy = loaded_by("--help", of={"numpy", "scipy", "sklearn", "numba"})
    assert heavy == []
    assert all(name in printed for name in COMMANDS)


HEAVY = {"sklearn", "numba", "scipy", "skops", "pandas", "prevalens.quantifier"}


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("fit", "--min-positives"),
        ("quantify", "--labelled"),
        ("evaluate", "--protocol"),
        ("summarise", "--min-group"),
        ("watch", "--every"),
        ("compare-batches", "--between"),
        ("adjust", "--sensitivity"),
    ],
)
def test_help_loads_no_estimators(name: str, option: str) -> None:
    # SciPy comes with the figures of trust reports.
    printed, heavy = loaded_by(name, "--help", of=HEAVY - {"scipy"})
    assert heavy == []
    assert option in printed


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--text", "txt", "--labels", "a"), "has no column 'txt'"),
        (("--text", "text", "--labels", "a,c"), "has no column 'c'"),
        (("--features", "text,age", "--tags", "a"), "has no column 'age'"),
        (("--text", "text", "--labels", "a", "--group", "author"), "has no column 'author'"),
        (("--text", "text", "--labels", "a", "--time", "date"), "has no column 'date'"),
        (("--text", "text"), "No labels named"),
    ],
)
def test_a_wrong_column_is_refused_before_the_estimators_are_loaded(
    words: tuple[str, ...], sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "train.csv").write_text("text,a,b\nhello,0,1\n")
    printed, heavy = loaded_by("fit", str(tmp_path / "train.csv"), *words, of=HEAVY)
    assert heavy == []
    assert sentence in printed


def test_a_refusal_is_one_sentence_and_exit_code_two() -> None:
    done = run("datasets", "nosuch")
    assert done.returncode == 2
    assert done.stderr.startswith("prevalens: There is no dataset 'nosuch'")
    assert "Traceback" not in done.stderr


def test_bad_options_and_commands() -> None:
    done = run("demo", "--nosuch")
    assert done.returncode == 2
    assert "No such option" in done.stderr
    done = run("nosuch")
    assert done.returncode == 2
    assert "No such command" in done.stderr


def test_interrupt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def stop(**_: object) -> None:
        raise click.Abort

    monkeypatch.setattr(program, "cli", stop)
    with pytest.raises(SystemExit) as caught:
        program.main()
    assert caught.value.code == 130
    assert "interrupted" in capsys.readouterr().err


def test_version() -> None:
    done = run("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("prevalens, version 0.")


def test_methods_as_json() -> None:
    done = run("methods", "--json")
    rows = json.loads(done.stdout)
    assert {"lr", "pcc", "rq", "svr", "crossfit"} <= {row["name"] for row in rows}
