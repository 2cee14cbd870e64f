"""Summary: the sums that a quantifier needs of batches, instead of their items.

Sums add: the summary of a month is the sum of those of its days, that of a study the sum of those
of its sites. A summary is as large for a billion items as for ten, and holds no item.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from prevalens._version import __version__
from prevalens.batches import Batches, Statistic
from prevalens.errors import FormatError, InputError
from prevalens.files import writing
from prevalens.samples import Samples
from prevalens.scores import KINDS, Scores
from prevalens.types import Floats, Ints

#: The format of summary files that this version writes and reads.
FORMAT = 1
_HEADER = "header.json"
#: Name of the array of sizes, and of the sums of times and numbers of items that have one.
_SIZES, _TIMES = "sizes", "times"
#: A file may hold so many bytes when it is unpacked.
_MOST_BYTES = 2**32


class _Sums(NamedTuple):
    """Sums, shape (n_batches, n_sums), and what rounding has cut off them."""

    total: Floats
    rest: Floats

    def plus(self, other: _Sums) -> _Sums:
        """The sum, exact to twice the precision (Knuth's two-sum)."""
        total = self.total + other.total
        part = total - self.total
        error = (self.total - (total - part)) + (other.total - part)
        return _Sums(total, self.rest + other.rest + error)

    def rows(self, rows: Any) -> _Sums:
        return _Sums(self.total[rows], self.rest[rows])


class Summary(Batches):
    """Sums over the items of batches, made by `Quantifier.summarise`; ``+`` adds them.

    Attributes
    ----------
    names : tuple of str
        The batches; a batch of the same name in two summaries is one batch in their sum.
    sizes : array of int, shape (n_batches,)
        Number of items.
    kind : {"votes", "posteriors", "features"}
        Of the scores that were summed.
    fingerprint : str
        Of the quantifier that scored the items; summaries of different ones do not add.
    sources : dict of str to str
        Names of the files whose items are in it, by the digests of their content; summaries that
        share a file do not add, so that nothing is counted twice.

    Notes
    -----
    Addition is associative and commutative up to a relative error of about 1e-16, however many
    parts there are: what rounding cuts off is carried along. The order of the batches is that in
    which they first occur.

    A summary holds no item, but sums of few items say much about them: leave out small batches
    (`without_small`) before you pass a summary on. It is not differentially private.

    Examples
    --------
    >>> from prevalens import datasets, parse
    >>> data = datasets.load("synthetic")
    >>> quantifier = parse("lr+pcc").fit(data.train.X, data.train.Y)
    >>> a, b = (quantifier.summarise(X) for X in (data.test.X[:100], data.test.X[100:]))
    >>> bool(np.allclose(quantifier.estimate(a + b).point, quantifier.quantify(data.test.X).point))
    True
    """

    def __init__(
        self,
        sums: Mapping[str, _Sums],
        sizes: Ints,
        names: Sequence[str],
        *,
        kind: str,
        fingerprint: str,
        times: _Sums,
        sources: Mapping[str, str] | None = None,
    ) -> None:
        self._sums, self._times = dict(sums), times
        self.sources = dict(sources or {})
        self.sizes, self.names = sizes, tuple(names)
        self.kind, self.fingerprint = kind, fingerprint

    @classmethod
    def of(
        cls,
        scores: Scores,
        samples: Samples,
        names: Sequence[str],
        statistics: Iterable[Statistic],
        *,
        fingerprint: str,
        times: Floats | None = None,
    ) -> Summary:
        """Sum the scores of some items.

        Parameters
        ----------
        scores : Scores
        samples : Samples
            The batches.
        names : sequence of str, one per batch
        statistics : iterable of Statistic
        fingerprint : str
        times : array of float, shape (n_items,), optional
            When the items arose; NaN where that is not known.
        """
        summed: dict[str, Floats] = {}
        for statistic in statistics:
            known = statistic.from_sums(summed)
            sums = statistic.sums(scores, samples) if known is None else known
            summed[statistic.name] = sums
        sums_of_times = None
        if times is not None and (dated := ~np.isnan(times)).any():
            sums_of_times = samples.sums(np.column_stack([np.where(dated, times, 0.0), dated]))
        return cls.of_sums(summed, samples.sizes, names, scores.kind, fingerprint, sums_of_times)

    @classmethod
    def of_sums(
        cls,
        sums: Mapping[str, Floats],
        sizes: Ints,
        names: Sequence[str],
        kind: str,
        fingerprint: str,
        times: Floats | None = None,
    ) -> Summary:
        """From sums that are known, by the names of the statistics.

        Parameters
        ----------
        sums : mapping of str to array of float, shape (n_batches, n_sums)
        sizes, names, kind, fingerprint : as the attributes
        times : array of float, shape (n_batches, 2), optional
            Sums of the times of items, and number of the items that have one.
        """
        begun = {name: _begin(own) for name, own in sums.items()}
        known = _begin(np.zeros((len(sizes), 2)) if times is None else times)
        return cls(begun, sizes, names, kind=kind, fingerprint=fingerprint, times=known)

    @property
    def n_items(self) -> int:
        """Number of items in all batches."""
        return int(self.sizes.sum())

    @property
    def times(self) -> Floats:
        """Mean time of the items of each batch that have one, as a number; NaN where none has."""
        total = self._times.total + self._times.rest
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(total[:, 0] / total[:, 1])

    def mean(self, statistic: Statistic) -> Floats:
        """See `Batches`."""
        sums = self._sums.get(statistic.name)
        if sums is None:
            raise InputError(
                f"The summary has no sums of {statistic.name}; it was made for another method. "
                "Summarise the items again with this quantifier."
            )
        return np.asarray((sums.total + sums.rest) / self.sizes[:, np.newaxis])

    def __getitem__(self, rows: npt.NDArray[np.intp]) -> Summary:
        chosen = np.arange(len(self))[rows]
        return Summary(
            {name: sums.rows(chosen) for name, sums in self._sums.items()},
            self.sizes[chosen],
            [self.names[row] for row in chosen],
            kind=self.kind,
            fingerprint=self.fingerprint,
            times=self._times.rows(chosen),
            sources=self.sources,
        )

    def __repr__(self) -> str:
        batches = "1 batch" if len(self) == 1 else f"{len(self):,} batches"
        return f"Summary({batches}, {self.n_items:,} items)"

    def __add__(self, other: Summary) -> Summary:
        if not isinstance(other, Summary):
            return NotImplemented
        return add_up([self, other])

    def __radd__(self, other: object) -> Summary:
        # So that the built-in sum works, which starts at 0.
        return self if other == 0 else NotImplemented

    def renamed(self, names: Sequence[str]) -> Summary:
        """With other names of the batches; those of the same name are added."""
        alone = [self[np.array([row])] for row in range(len(self))]
        for part, name in zip(alone, names, strict=True):
            part.names, part.sources = (name,), {}
        whole = add_up(alone)
        whole.sources = self.sources
        return whole

    def without_small(self, least: int) -> Summary:
        """The batches of at least so many items."""
        kept = self[np.flatnonzero(self.sizes >= least)]
        if not len(kept):
            raise InputError(f"No batch has {least:,} items or more; nothing is left.")
        return kept

    def save(self, path: str | Path) -> None:
        """Write the summary to one file, which appears when it is complete."""
        with writing(path) as file:
            file.write(self.to_bytes())

    def to_bytes(self) -> bytes:
        """The content of the file that `save` writes, the same whenever it is written."""
        header = {
            "format": FORMAT,
            "prevalens": __version__,
            "fingerprint": self.fingerprint,
            "kind": self.kind,
            "batches": self.names,
            "sums": list(self._sums),
            "sources": self.sources,
        }
        arrays: dict[str, npt.NDArray[Any]] = {_SIZES: self.sizes}
        for number, sums in enumerate([self._times, *self._sums.values()]):
            arrays |= {f"{number}-total": sums.total, f"{number}-rest": sums.rest}
        contents = {_HEADER: json.dumps(header, ensure_ascii=False).encode()}
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array, allow_pickle=False)
            contents[f"{name}.npy"] = content.getvalue()
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for name, data in contents.items():
                # An entry made of its name alone has no time of its own.
                entry = zipfile.ZipInfo(name)
                archive.writestr(entry, data, zipfile.ZIP_DEFLATED, compresslevel=3)
        return file.getvalue()

    @classmethod
    def load(cls, path: str | Path) -> Summary:
        """Read a summary from a file; no code of it is run."""
        return cls.from_bytes(Path(path).read_bytes(), str(path))

    @classmethod
    def from_bytes(cls, content: bytes, name: str = "the summary") -> Summary:
        """As `load`, of the content of a file; `name` is for messages."""
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                header = _header(archive, name)
                arrays = {
                    name.removesuffix(".npy"): np.load(
                        io.BytesIO(archive.read(name)), allow_pickle=False
                    )
                    for name in archive.namelist()
                    if name != _HEADER
                }
            return _rebuilt(header, arrays)
        except FormatError:
            raise
        # A damaged file can make the readers fail in any way.
        except Exception as error:
            raise FormatError(
                f"{name}: it is no summary that prevalens wrote, or it is damaged; make it again "
                "with prevalens summarise."
            ) from error


class _Growing:
    """Sums of batches that become more, added row by row in place."""

    def __init__(self, width: int) -> None:
        self._held = _Sums(np.zeros((1, width)), np.zeros((1, width)))

    def add(self, sums: _Sums, places: Ints) -> None:
        n_held, needed = len(self._held.total), int(places.max()) + 1
        if needed > n_held:
            more = ((0, max(needed, 2 * n_held) - n_held), (0, 0))
            self._held = _Sums(*(np.pad(part, more) for part in self._held))
        total, rest = self._held.rows(places).plus(sums)
        self._held.total[places], self._held.rest[places] = total, rest

    def first(self, number: int) -> _Sums:
        return self._held.rows(slice(0, number))


def add_up(parts: Iterable[Summary]) -> Summary:
    """The sum of many summaries; memory and time of each step are those of the part added."""
    growing: dict[str, _Growing] = {}
    places: dict[str, int] = {}
    sizes: list[int] = []
    first: Summary | None = None
    sources: dict[str, str] = {}
    for part in parts:
        first = first or part
        _check_alike(first, part)
        _check_new(sources, part.sources)
        sources |= part.sources
        rows = np.array([places.setdefault(name, len(places)) for name in part.names])
        sizes += [0] * (len(places) - len(sizes))
        for row, size in zip(rows.tolist(), part.sizes.tolist(), strict=True):
            sizes[row] += size
        for name, sums in (*part._sums.items(), (_TIMES, part._times)):
            growing.setdefault(name, _Growing(sums.total.shape[1])).add(sums, rows)
    if first is None:
        raise InputError("There is nothing to add up: give at least one summary.")
    summed = {name: each.first(len(sizes)) for name, each in growing.items()}
    times = summed.pop(_TIMES)
    return Summary(
        summed,
        np.array(sizes, dtype=np.int64),
        list(places),
        kind=first.kind,
        fingerprint=first.fingerprint,
        times=times,
        sources=sources,
    )


def _check_new(known: Mapping[str, str], more: Mapping[str, str]) -> None:
    twice = [digest for digest in more if digest in known]
    if twice:
        first, again = known[twice[0]], more[twice[0]]
        name = first if first == again else f"{first} (also as {again})"
        raise InputError(
            f"The items of {name} are in two of the summaries and would be counted twice; leave "
            "one of them out."
        )


def _check_alike(first: Summary, other: Summary) -> None:
    if other.fingerprint != first.fingerprint:
        raise InputError(
            f"Summaries of different models cannot be added (fingerprints {first.fingerprint} "
            f"and {other.fingerprint}); summarise all items with the same model."
        )
    if first._sums.keys() != other._sums.keys():
        raise InputError(
            "The summaries hold different sums, though they name the same model; make both "
            "with the same version of prevalens."
        )


def _begin(sums: Floats) -> _Sums:
    return _Sums(sums, np.zeros_like(sums))


def _header(archive: zipfile.ZipFile, name: str) -> Any:
    if sum(member.file_size for member in archive.infolist()) > _MOST_BYTES:
        raise FormatError(f"{name}: it would take more than 4 GB to unpack.")
    header = json.loads(archive.read(_HEADER))
    if header["format"] != FORMAT:
        raise FormatError(
            f"{name}: summaries of format {header['format']} (prevalens {header['prevalens']}) are "
            f"not read by prevalens {__version__}, which has format {FORMAT}; summarise again."
        )
    return header


def _rebuilt(header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Summary:
    """The summary of a file; raises anything if its parts do not fit together."""
    names, sizes = tuple(map(str, header["batches"])), arrays[_SIZES]
    parts = []
    for number in range(len(header["sums"]) + 1):
        sums = _Sums(*(arrays[f"{number}-{part}"] for part in _Sums._fields))
        for part in sums:
            if part.dtype != np.float64 or part.ndim != 2 or len(part) != len(names):
                raise ValueError
            if part.shape != sums.total.shape or not np.isfinite(part).all():
                raise ValueError
        parts.append(sums)
    sound = sizes.dtype == np.int64 and sizes.shape == (len(names),) and bool(np.all(sizes > 0))
    if not sound or len(set(names)) < len(names) or header["kind"] not in KINDS:
        raise ValueError
    return Summary(
        dict(zip(header["sums"], parts[1:], strict=True)),
        sizes,
        names,
        kind=header["kind"],
        fingerprint=str(header["fingerprint"]),
        times=parts[0],
        sources={str(digest): str(name) for digest, name in header["sources"].items()},
    )
