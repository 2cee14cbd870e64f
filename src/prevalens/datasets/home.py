"""The data home: the folder of all datasets; missing ones are downloaded into it."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import platformdirs

from prevalens.datasets.fetch import DownloadError, NotFoundError, download
from prevalens.datasets.formats.corpora import download_rcv1
from prevalens.datasets.registry import DatasetFacts, File, Layout, RegistryEntry, lookup
from prevalens.files import locate
from prevalens.validation import PrevalensError

#: Download functions for data that is not fetched file by file.
_FETCHERS = {"scikit-learn": download_rcv1}


class DataNotFoundError(PrevalensError, FileNotFoundError):
    """A dataset is not in the data home and cannot be downloaded."""


@dataclass(frozen=True)
class FoundFiles:
    """The files of a dataset on disk, in the order of the layout."""

    layout: Layout
    paths: tuple[Path, ...]

    def arguments(self) -> dict[str, Any]:
        """The reader's arguments: one path or a list of paths per role, and the options."""
        paths: dict[str, list[Path]] = {}
        for file, path in zip(self.layout.files, self.paths, strict=True):
            paths.setdefault(file.role, []).append(path)
        lists = self.layout.lists
        chosen = {role: own if role in lists else own[0] for role, own in paths.items()}
        return chosen | self.layout.options


def data_home(home: str | Path | None = None) -> Path:
    """The folder of all datasets: `home`, else ``PREVALENS_DATA``, else the user's cache."""
    if home is None:
        home = os.environ.get("PREVALENS_DATA") or platformdirs.user_cache_dir("prevalens")
    return Path(home).expanduser()


def find(entry: RegistryEntry, home: Path) -> FoundFiles | None:
    """The first layout of which all files are in the dataset's folder, or None."""
    for layout in entry.layouts:
        paths = [locate(home / entry.folder, file.name) for file in layout.files]
        present = tuple(path for path in paths if path is not None)
        if len(present) == len(paths):
            return FoundFiles(layout, present)
    return None


def acquire(
    entry: RegistryEntry, home: Path, *, download_missing: bool = True, mirror: str | None = None
) -> FoundFiles:
    """Find the files of a dataset, or download them.

    Parameters
    ----------
    entry : RegistryEntry
    home : Path
    download_missing : bool
    mirror : str, optional
        Address of a copy of the data home to fetch from; else ``PREVALENS_MIRROR``, else the
        public source.

    Raises
    ------
    DataNotFoundError
        One sentence: the dataset, the folder that was searched, the source, and what to do.
    """
    files = find(entry, home)
    mirror = mirror or os.environ.get("PREVALENS_MIRROR") or None
    why = "" if download_missing else "and downloading is switched off"
    if files is None and download_missing:
        why = _download(entry, home, mirror)
        files = find(entry, home)
    if files is None:
        raise DataNotFoundError(_sentence(entry, home, why))
    return files


def _download(entry: RegistryEntry, home: Path, mirror: str | None) -> str:
    """Download the first layout that is complete; return why none is, or an empty text."""
    why: list[str] = []
    for layout in entry.layouts:
        try:
            if layout.fetcher is not None:
                _FETCHERS[layout.fetcher](home / entry.folder)
            elif mirror or all(file.url for file in layout.files):
                for file in layout.files:
                    _fetch(entry, file, home / entry.folder, mirror)
            else:
                continue
        except DownloadError as error:
            why.append(str(error).rstrip("."))
        else:
            return ""
    return (
        f"and could not be downloaded ({'; '.join(why)})" if why else "and has no public download"
    )


def _fetch(entry: RegistryEntry, file: File, folder: Path, mirror: str | None) -> None:
    if locate(folder, file.name) is not None:
        return
    if mirror is None:
        assert file.url is not None  # checked by the caller
        download(file.url, folder / file.name, sha256=file.sha256)
        return
    address = f"{mirror.rstrip('/')}/{entry.folder}/{file.name}"
    try:
        download(address, folder / file.name, sha256=file.sha256)
    except NotFoundError:
        # A mirror may keep its files compressed; checksums are of the contents.
        download(f"{address}.gz", folder / f"{file.name}.gz", sha256=file.sha256)


def _sentence(entry: RegistryEntry, home: Path, why: str) -> str:
    layout = next((layout for layout in entry.layouts if layout.origin), entry.layouts[0])
    wanted = [file.name for file in layout.files]
    shown = ", ".join(wanted) if len(wanted) <= 4 else f"{wanted[0]} ... {wanted[-1]}"
    reason = f" {why}" if why else ""
    return (
        f"The dataset {entry.name!r} is not in {home / entry.folder}{reason}; get {shown} from "
        f"{entry.origin} and put them there, or set PREVALENS_DATA to the folder that holds "
        f"{entry.folder}/."
    )


@dataclass(frozen=True, kw_only=True)
class DatasetDescription(DatasetFacts):
    """The facts on a dataset, and where its files are expected.

    Attributes
    ----------
    origin : str
        Where the data come from.
    folder : Path or None
        Folder of its files; None for built-in data.
    files : tuple of str
        Names of the files in that folder.
    available : bool
        Whether it can be loaded without a download.
    """

    origin: str
    folder: Path | None
    files: tuple[str, ...]
    available: bool


def describe(name: str, *, home: str | Path | None = None) -> DatasetDescription:
    """Describe a dataset without loading it.

    Parameters
    ----------
    name : str
        One of `names`.
    home : str or Path, optional
        The data home; else ``PREVALENS_DATA``, else the user's cache folder.

    Examples
    --------
    >>> describe("yeast").shape
    Shape(labels=14, train=1500, test=917, features=103)
    """
    entry = lookup(name)
    place = data_home(home)
    built_in = entry.kind == "built-in"
    present = find(entry, place)
    layout = present.layout if present else next(iter(entry.layouts), None)
    return DatasetDescription(
        **{field.name: getattr(entry, field.name) for field in fields(DatasetFacts)},
        origin=entry.origin,
        folder=None if built_in else place / entry.folder,
        files=tuple(file.name for file in layout.files) if layout else (),
        available=built_in or present is not None,
    )
