"""`prevalens methods` lists and explains."""

from __future__ import annotations

import json

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
