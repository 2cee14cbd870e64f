"""PrevalenceEstimate: what a quantifier answers, with the names of the labels on it."""

from __future__ import annotations

import html
import importlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from prevalens.validation import InputError, check_choice, check_label_names

__all__ = ["PrevalenceEstimate"]


class PrevalenceEstimate(NDArrayOperatorsMixin):
    """Estimated prevalences of one sample, or of several.

    It is read like a numpy array (arithmetic, comparison, ``np.asarray``) and knows the names
    of its labels.

    Parameters
    ----------
    point : array of float, shape (n_labels,) or (n_samples, n_labels)
    labels : sequence of str
    index : sequence, optional
        A name per sample; for several samples only.

    Examples
    --------
    >>> estimate = PrevalenceEstimate([0.25, 0.5], ["spam", "urgent"])
    >>> estimate["urgent"]
    0.5
    >>> (estimate * 100).tolist()
    [25.0, 50.0]
    """

    def __init__(
        self, point: npt.ArrayLike, labels: Sequence[str], *, index: Sequence[Any] | None = None
    ) -> None:
        self.point: npt.NDArray[np.float64] = np.asarray(point, dtype=np.float64)
        if self.point.ndim not in (1, 2):
            raise InputError(f"An estimate has one or two dimensions; got {self.point.ndim}.")
        self.labels = check_label_names(labels, self.point.shape[-1])
        self.index = self._index(index)

    def _index(self, index: Sequence[Any] | None) -> list[Any] | None:
        if self.point.ndim == 1:
            return None
        names = list(range(len(self.point)) if index is None else index)
        if len(names) != len(self.point):
            raise InputError(f"There are {len(self.point)} samples but {len(names)} names.")
        return [name.item() if isinstance(name, np.generic) else name for name in names]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.point, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = [x.point if isinstance(x, PrevalenceEstimate) else x for x in inputs]
        return getattr(ufunc, method)(*plain, **kwargs)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the estimate: (n_labels,) or (n_samples, n_labels)."""
        return self.point.shape

    @property
    def ndim(self) -> int:
        """1 for one sample, 2 for several."""
        return self.point.ndim

    def __len__(self) -> int:
        return len(self.point)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.point)

    def __getitem__(self, key: Any) -> Any:
        """By label name: that label's prevalence; else as numpy does it."""
        if isinstance(key, str):
            if key not in self.labels:
                raise InputError(f"There is no label {key!r} in this estimate.")
            column = self.point[..., self.labels.index(key)]
            return float(column) if column.ndim == 0 else column
        return self.point[key]

    def to_dict(self) -> dict[Any, Any]:
        """``{label: prevalence}``; for several samples ``{sample: {label: prevalence}}``."""
        if self.index is None:
            return dict(zip(self.labels, self.point.tolist(), strict=True))
        rows = (dict(zip(self.labels, row.tolist(), strict=True)) for row in self.point)
        return dict(zip(self.index, rows, strict=True))

    def to_frame(self, backend: str = "pandas") -> Any:
        """A pandas or polars frame.

        One sample: a row per label with columns ``label`` and ``prevalence``. Several: a row
        per sample (column ``sample``) and a column per label.
        """
        check_choice(backend, "backend", ("pandas", "polars"))
        try:
            library = importlib.import_module(backend)
        except ImportError as error:
            raise InputError(
                f'to_frame needs {backend}: pip install "prevalens[frames]".'
            ) from error
        return library.DataFrame(self._columns())

    def _columns(self) -> dict[str, list[Any]]:
        if self.index is None:
            return {"label": list(self.labels), "prevalence": self.point.tolist()}
        columns: dict[str, list[Any]] = {"sample": list(self.index)}
        columns.update({name: self.point[:, j].tolist() for j, name in enumerate(self.labels)})
        return columns

    def __repr__(self) -> str:
        if self.index is not None:
            return f"PrevalenceEstimate({len(self)} samples, {len(self.labels)} labels)"
        shown = ", ".join(
            f"{name}={p:.4f}" for name, p in zip(self.labels[:8], self.point, strict=False)
        )
        more = f", ... {len(self.labels)} labels" if len(self.labels) > 8 else ""
        return f"PrevalenceEstimate({shown}{more})"

    def _repr_html_(self) -> str:
        columns = self._columns()
        head = "".join(f"<th>{html.escape(str(name))}</th>" for name in columns)
        rows = zip(*columns.values(), strict=True)
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    text = f"{value:.4f}" if isinstance(value, float) else html.escape(str(value))
    return f"<td>{text}</td>"
