"""The command line: a group of commands, each loaded when it is called."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import click

from prevalens._version import __version__
from prevalens.cli.wording import as_options
from prevalens.errors import PrevalensError

__all__ = ["cli", "main"]

#: Module and one-line help of each command, so that ``--help`` need not load them.
COMMANDS = {
    "adjust": (
        "prevalens.cli.adjust",
        "Correct counts by known sensitivity and specificity, without training.",
    ),
    "bench": ("prevalens.cli.bench", "Run a plan of experiments; finished cells are skipped."),
    "compare": ("prevalens.cli.compare", "Rank methods by their error on labelled files."),
    "compare-batches": (
        "prevalens.cli.compare_batches",
        "Compare how frequent labels are in two batches, with intervals.",
    ),
    "datasets": ("prevalens.cli.datasets", "List, describe and check the datasets."),
    "demo": (
        "prevalens.cli.demo",
        "Estimate months of generated tickets whose label mix drifts.",
    ),
    "evaluate": (
        "prevalens.cli.evaluate",
        "Measure whether a model can be trusted on labelled files.",
    ),
    "fit": ("prevalens.cli.fit", "Train a model on labelled files and write it to one file."),
    "inspect": ("prevalens.cli.inspect", "Describe a model file."),
    "methods": ("prevalens.cli.methods", "List the parts that methods are made of."),
    "paper": (
        "prevalens.cli.paper",
        "Run the paper's experiments and compare with its tables.",
    ),
    "plan": ("prevalens.cli.plan", "Forecast how many labels narrow intervals need."),
    "quantify": (
        "prevalens.cli.quantify",
        "Estimate how frequent each label is in batches of files.",
    ),
    "sample": ("prevalens.cli.sample", "Draw items of batches to label by hand."),
    "summarise": (
        "prevalens.cli.summarise",
        "Sum up batches of files, to be added and estimated elsewhere.",
    ),
    "watch": (
        "prevalens.cli.watch",
        "Estimate batches of a stream: new files of a folder, or lines of standard input.",
    ),
    "serve": ("prevalens.service.command", "Serve a local web page and an HTTP interface."),
}

#: Exit code of a refusal; click uses it for bad options too.
REFUSED = 2


class _Lazy(click.Group):
    """A group that imports a command's file only when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in sorted(COMMANDS.items())])


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="prevalens")
@click.option(
    "--with",
    "modules",
    multiple=True,
    metavar="FILE|MODULE",
    help="Load Python code that registers methods (see prevalens.register). May be repeated.",
)
def cli(modules: Sequence[str]) -> None:
    """Estimate how frequent each label is in batches whose label mix differs from training."""
    if modules:
        load_parts = import_module("prevalens.catalogue").load_parts
        for module in modules:
            load_parts(module)


def _refuse(sentence: str) -> NoReturn:
    # Standard error may be the full device.
    with contextlib.suppress(OSError):
        click.echo(f"prevalens: {as_options(sentence)}", err=True)
    sys.exit(REFUSED)


def _discard_output() -> None:
    """Discard buffered output, which Python would otherwise fail to print at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    """Run the command line; a refusal is one sentence on standard error and exit code 2."""
    # SIGTERM cleans up as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = cli(prog_name="prevalens", standalone_mode=False)
        # Writing the rest of the buffer may fail, too.
        sys.stdout.flush()
    except PrevalensError as error:
        _refuse(str(error))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of the pipe has closed it, so nothing more can be printed.
        _discard_output()
        sys.exit(0)
    except OSError as error:
        _discard_output()
        # Files that are read or written by name have sentences of their own, so this was printed.
        where = "The output" if error.filename is None else str(error.filename)
        _refuse(f"{where} cannot be written: {error.strerror or error}.")
    except MemoryError:
        _refuse("there is not enough memory for this.")
    except (click.Abort, KeyboardInterrupt):
        click.echo("prevalens: interrupted.", err=True)
        sys.exit(130)
    # Without its own exit, click hands back the code that a command asked for.
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
