"""Install a wheel into fresh environments and try it: ``python release/try_wheel.py dist``.

For every interpreter, two environments in a temporary folder: one with the wheel alone, one with
its extra ``all``. Each runs the tests of ``release/smoke`` in a folder without the sources. The
first also shows how much the wheel and its dependencies add to an installation of scikit-learn.
``--lowest`` takes the lowest versions that ``pyproject.toml`` allows instead; it needs uv and the
oldest supported Python.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
SMOKE = ROOT / "release" / "smoke"
SUPPORTED = ("python3.11", "python3.12", "python3.13")
#: The lowest versions are those of the oldest Python; newer ones lack wheels of old packages.
OLDEST = "3.11"
#: The most that the core may add to scikit-learn, in MB.
CORE_LIMIT = 60
#: The most that the wheel may have, in MB.
WHEEL_LIMIT = 1


def main() -> None:
    """Try the wheel with every interpreter and print a line per environment."""
    options = arguments()
    wheel = found_wheel(options.wheel)
    size = wheel.stat().st_size / 1e6
    print(f"{wheel.name}: {size:.2f} MB")
    check(size < WHEEL_LIMIT, f"The wheel has {size:.2f} MB; the limit is {WHEEL_LIMIT} MB.")
    interpreters = options.python or present(SUPPORTED[:1] if options.lowest else SUPPORTED)
    check(bool(interpreters), f"None of {', '.join(SUPPORTED)} is on the path; name one: --python.")
    for interpreter in interpreters:
        for extra in ("", "all"):
            with tempfile.TemporaryDirectory() as folder:
                try_one(wheel, interpreter, extra, Path(folder), lowest=options.lowest)


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path, help="a wheel, or a folder with one")
    parser.add_argument("--python", action="append", help="an interpreter; may be repeated")
    parser.add_argument("--lowest", action="store_true", help="the lowest versions of everything")
    return parser.parse_args()


def found_wheel(path: Path) -> Path:
    """The wheel itself, or the only one in a folder."""
    wheels = sorted(path.glob("*.whl")) if path.is_dir() else [path]
    check(len(wheels) == 1, f"{path} should have one wheel; it has {len(wheels)}: make dist.")
    return wheels[0].resolve()


def present(names: Sequence[str]) -> list[str]:
    """The interpreters among some that can be started here."""
    return [name for name in names if shutil.which(name) and starts(name)]


def starts(interpreter: str) -> bool:
    """Whether it runs; a version manager may have a launcher for a version it does not have."""
    return subprocess.run([interpreter, "-V"], capture_output=True).returncode == 0


def try_one(wheel: Path, interpreter: str, extra: str, folder: Path, *, lowest: bool) -> None:
    """Install the wheel into a new environment and run the smoke tests there."""
    run(interpreter, "-m", "venv", folder / "env")
    python = folder / "env" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    limits = ("-c", lowest_versions(extra, folder)) if lowest else ()
    install(python, "scikit-learn", *limits)
    before = megabytes(folder / "env")
    install(python, f"{wheel}[{extra}]" if extra else wheel, *limits)
    added = megabytes(folder / "env") - before
    install(python, "pytest", *limits)
    elsewhere = folder / "elsewhere"
    shutil.copytree(SMOKE, elsewhere, ignore=None if extra else shutil.ignore_patterns("*extras*"))
    run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", ".", folder=elsewhere)
    versions = "lowest versions" if lowest else "newest versions"
    print(f"{interpreter}, {versions}, {extra or 'core'}: passed; ", end="")
    print(f"{added:.1f} MB on top of scikit-learn", flush=True)
    if not extra:
        check(added < CORE_LIMIT, f"The core adds {added:.1f} MB; the limit is {CORE_LIMIT} MB.")


def lowest_versions(extra: str, folder: Path) -> Path:
    """A file of the lowest versions that ``pyproject.toml`` allows."""
    path = folder / "lowest.txt"
    command = ("uv", "pip", "compile", "-q", "--resolution", "lowest-direct")
    extras = ("--extra", extra) if extra else ()
    run(*command, *extras, "--python-version", OLDEST, ROOT / "pyproject.toml", "-o", path)
    return path


def install(python: Path, *words: str | Path) -> None:
    """Install packages into the environment of an interpreter."""
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *words)


def megabytes(folder: Path) -> float:
    """Size of all files below a folder, without the byte code that Python adds."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return sum(path.stat().st_size for path in files) / 1e6


def run(*words: str | Path, folder: Path | None = None) -> None:
    """Run a command; if it fails, end with what it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    check(done.returncode == 0, f"{' '.join(map(str, words))}\n{done.stdout}")


def check(fine: bool, message: str) -> None:
    """End with a message unless all is fine."""
    if not fine:
        sys.exit(message)


if __name__ == "__main__":
    main()
