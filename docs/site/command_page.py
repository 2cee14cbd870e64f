"""The page of commands, made from the commands themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from prevalens.__main__ import cli

_INTRODUCTION = """\
# Commands

Every command with all its options, as `prevalens COMMAND --help` prints them.
[From files to prevalences](../command-line.md) explains them with examples.
"""


def page() -> str:
    """A section per command."""
    context = click.Context(cli, info_name="prevalens")
    sections = [_INTRODUCTION, *_section(cli, context)]
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        sections += _section(command, click.Context(command, info_name=name, parent=context))
    return "\n".join(sections)


def _section(command: click.Command, context: click.Context) -> Iterator[str]:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"\n## {context.command_path}\n"
    yield f"```text\n{usage}\n```\n"
    yield inspect.cleandoc(command.help or "").replace("\b\n", "").partition("\f")[0] + "\n"
    records = [p.get_help_record(context) for p in command.params if isinstance(p, click.Option)]
    yield "| option | meaning |\n|---|---|"
    for record in records:
        if record is not None:
            yield f"| `{_cell(record[0])}` | {_cell(record[1])} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
