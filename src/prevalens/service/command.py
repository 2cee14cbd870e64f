"""`prevalens serve`: the local page and the HTTP interface."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from prevalens.errors import InputError

# This module is loaded only when `prevalens serve` is called.
try:
    from prevalens.service.server import serve
    from prevalens.service.settings import Limits, Settings, parse_size
except ModuleNotFoundError as error:
    raise InputError(
        f'The page needs {error.name}, which is not installed: pip install "prevalens[serve]".'
    ) from error

_DEFAULTS = Limits()


def _limit(option: str, field: str, meaning: str) -> Callable[[Any], Any]:
    """An option for one of the `Limits`, with its default."""
    default = vars(_DEFAULTS)[field]
    kind = click.IntRange(1) if isinstance(default, int) else click.FloatRange(1)
    return click.option(option, field, default=default, show_default=True, type=kind, help=meaning)


@click.command()
@click.argument("models", nargs=-1, type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=8321,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0 chooses a free one.",
)
@click.option(
    "--token",
    envvar="PREVALENS_TOKEN",
    help="Secret that every request must carry; safer to set as PREVALENS_TOKEN. If omitted, one "
    "is generated for any address other than loopback.",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Further host name under which the server may be called. May be repeated.",
)
@click.option(
    "--keep",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Folder for models trained here; if omitted, they are removed when the server stops.",
)
@click.option(
    "--max-upload",
    "upload_bytes",
    default="500MB",
    show_default=True,
    callback=lambda _context, _option, value: parse_size(value),
    help="Maximum size of one request.",
)
@click.option(
    "--max-memory",
    "worker_bytes",
    default=f"{_DEFAULTS.worker_bytes}",
    show_default="8GB, or half of the machine's memory",
    callback=lambda _context, _option, value: parse_size(value),
    help="Maximum memory of a worker.",
)
@_limit("--max-rows", "rows", "Maximum rows per file.")
@_limit("--max-columns", "columns", "Maximum columns per file.")
@_limit("--max-seconds", "quantify_seconds", "Time limit per estimate, in seconds.")
@_limit("--max-training", "train_seconds", "Time limit per training, in seconds.")
@click.option(
    "--workers",
    default=_DEFAULTS.workers,
    show_default="2, or 1 on a single core",
    type=click.IntRange(1, 64),
    help="Maximum number of estimates at the same time.",
)
@click.option("--open/--no-open", "browse", default=False, help="Open the page in a browser.")
def command(
    models: tuple[Path, ...],
    host: str,
    port: int,
    token: str | None,
    hosts: tuple[str, ...],
    keep: Path | None,
    browse: bool,
    **limits: Any,
) -> None:
    """Open a local page, and answer programs over HTTP.

    MODELS are model files, or folders of them. Without any, train one in the page, or try the
    built-in data. Stop the server with Ctrl-C.
    """

    def ready(address: str) -> None:
        click.echo(f"prevalens is at {address}", err=True)
        click.echo("Stop it with Ctrl-C.", err=True)
        if browse:
            webbrowser.open(address)

    settings = Settings(host, port, token or None, hosts, models, keep, Limits(**limits))
    serve(settings, ready, lambda sentence: click.echo(sentence, err=True))
