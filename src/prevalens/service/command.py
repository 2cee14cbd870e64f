"""`prevalens serve`: the local page and the HTTP interface."""

from __future__ import annotations

import webbrowser
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from prevalens.errors import InputError

__all__ = ["command"]

# The service stands beside the command line, and is loaded like a command: by name, when called.
_SETTINGS, _SERVER = "prevalens.service.settings", "prevalens.service.server"


@click.command()
@click.argument("models", nargs=-1, type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8321, show_default=True, type=click.IntRange(0, 65535), help="0: a free one."
)
@click.option(
    "--token",
    envvar="PREVALENS_TOKEN",
    help="Secret that requests must show; better given as PREVALENS_TOKEN. On other addresses "
    "than loopback one is made if none is given.",
)
@click.option(
    "--allow-host", "hosts", multiple=True, metavar="NAME", help="Name the server may be asked by."
)
@click.option(
    "--keep",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Folder for models trained here; otherwise they go when the server stops.",
)
@click.option("--max-upload", default="500MB", show_default=True, help="Size of one request.")
@click.option(
    "--max-rows", default=2_000_000, show_default=True, type=click.IntRange(1), help="Of a file."
)
@click.option(
    "--max-columns", default=5_000, show_default=True, type=click.IntRange(1), help="Of a file."
)
@click.option(
    "--max-seconds",
    default=300.0,
    show_default=True,
    type=click.FloatRange(1),
    help="Of estimates.",
)
@click.option(
    "--max-training",
    default=3600.0,
    show_default=True,
    type=click.FloatRange(1),
    help="Seconds of a training.",
)
@click.option(
    "--workers", type=click.IntRange(1, 64), help="Estimates at one time; default: up to 2."
)
@click.option("--open/--no-open", "browse", default=False, help="Open the page in a browser.")
def command(models: tuple[Path, ...], browse: bool, **options: Any) -> None:
    """Open a local page, and answer programs over HTTP.

    MODELS are model files, or folders of them. Without any, train one in the page, or try the
    built-in data. Stop it with Ctrl-C.
    """
    settings = _settings(models, options)

    def ready(address: str) -> None:
        click.echo(f"prevalens is at {address}", err=True)
        click.echo("Stop it with Ctrl-C.", err=True)
        if browse:
            webbrowser.open(address)

    import_module(_SERVER).serve(settings, ready)


def _settings(models: tuple[Path, ...], options: dict[str, Any]) -> Any:
    try:
        room = import_module(_SETTINGS)
        import_module(_SERVER)
    except ModuleNotFoundError as error:
        raise InputError(
            f'The page needs {error.name}, which is not installed: pip install "prevalens[serve]".'
        ) from error
    limits = {
        "upload_bytes": room.parse_size(options["max_upload"]),
        "rows": options["max_rows"],
        "columns": options["max_columns"],
        "quantify_seconds": options["max_seconds"],
        "train_seconds": options["max_training"],
    }
    if options["workers"] is not None:
        limits["workers"] = options["workers"]
    return room.Settings(
        host=options["host"],
        port=options["port"],
        token=options["token"] or None,
        hosts=options["hosts"],
        models=models,
        keep=options["keep"],
        limits=room.Limits(**limits),
    )
