"""Options that commands share: what the help shows, and what the command gets."""

from __future__ import annotations

from typing import Any

import click
from click.testing import CliRunner

from prevalens.cli.console import json_option
from prevalens.cli.options import (
    item_options,
    labelled_options,
    listed,
    protocol_option,
    sample_options,
    together,
)
from prevalens.tables.opening import Reading


def command_with(*options: Any) -> tuple[click.Command, dict[str, Any]]:
    """A command with these options, and what it was given when it ran."""
    given: dict[str, Any] = {}

    @click.command()
    @together(*options)
    def command(**settings: Any) -> None:
        given.update(settings)

    return command, given


def run(command: click.Command, *words: str) -> str:
    done = CliRunner().invoke(command, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_names_may_be_repeated_and_divided_by_commas() -> None:
    assert listed(["a, b", "c"]) == ["a", "b", "c"]
    assert listed([]) is None
    assert listed([" ,"]) is None


def test_options_are_shown_in_their_order() -> None:
    command, _ = command_with(item_options, labelled_options, protocol_option, json_option)
    said = run(command, "--help")
    names = ("text", "features", "labels", "tags", "sep", "delimiter", "encoding", "sheet",
             "protocol", "json")  # fmt: skip
    places = [said.index(f"  --{name} ") for name in names]
    assert places == sorted(places)


def test_the_command_gets_lists_and_one_reading() -> None:
    command, given = command_with(item_options, labelled_options)
    run(command, "--labels", "a,b", "--labels", "c", "--delimiter", "|", "--sheet", "May")
    assert given == {
        "text": None,
        "features": None,
        "id": None,
        "group": None,
        "labels": ["a", "b", "c"],
        "tags": None,
        "sep": ",",
        "reading": Reading(delimiter="|", sheet="May"),
    }


def test_samples_have_their_own_number_and_words() -> None:
    command, given = command_with(sample_options(70, size="Of a sample.", samples="How many."))
    run(command, "--seed", "3")
    assert given == {"size": None, "n_samples": 70, "seed": 3}
    said = run(command, "--help")
    assert "Of a sample." in said
    assert "How many.  [default: 70]" in said
