"""`prevalens methods` lists and explains."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from prevalens.catalogue import ENTRIES
from prevalens.cli.methods import command
from prevalens.validation import InputError


def test_the_list_names_every_part() -> None:
    result = CliRunner().invoke(command, [])
    assert result.exit_code == 0
    for code in ENTRIES:
        assert f" {code} " in result.output or f"\n{code} " in result.output


def test_one_part_is_explained_with_its_parameters() -> None:
    result = CliRunner().invoke(command, ["acc"])
    assert result.output.startswith("acc(guard=")
    assert "aggregator" in result.output
    assert "Forman" in result.output


def test_json() -> None:
    rows = json.loads(CliRunner().invoke(command, ["lr", "--json"]).output)
    assert rows[0]["role"] == "classifier"
    assert rows[0]["parameters"]["C"] == "1.0"


def test_an_unknown_part_is_named() -> None:
    with pytest.raises(InputError, match="There is no part called 'nosuch'"):
        CliRunner().invoke(command, ["nosuch"], catch_exceptions=False)


def test_an_aggregator_says_when_to_use_it() -> None:
    output = CliRunner().invoke(command, ["sld"]).output
    assert "Assumes: only the label mix has moved, and posteriors are calibrated" in output
    assert "lr+sld, error by that of the best method on" in output
    assert "When to use it" not in CliRunner().invoke(command, ["lr"]).output
    assert "Not measured" in CliRunner().invoke(command, ["hdx"]).output
    # Every aggregator that reads scores has figures.
    assert re.search(r"on \d+ datasets: \S+ \d", CliRunner().invoke(command, ["edy"]).output)


def test_every_aggregator_has_its_guide() -> None:
    rows = json.loads(CliRunner().invoke(command, ["--json"]).output)
    aggregators = [row for row in rows if row["role"] == "aggregator"]
    assert all(row["assumes"] and row["cost"] for row in aggregators)
    best = [min(r.values()) for row in aggregators for r in row["measured"].values()]
    assert min(best) >= 1.0
