"""The dataset table of Moreo et al., recomputed and held against the printed figures.

The rule that gives their figures: drop labels with fewer than five positive training items, drop
no item; count labelsets over training and test items together, the empty one included; divide
PUniq and PMax by the number of training items, although they count over all.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from pathlib import Path

from prevalens.datasets.dataset import Dataset
from prevalens.datasets.loading import load
from prevalens.datasets.registry import Figures, lookup, names
from prevalens.validation import InputError

__all__ = ["COLUMNS", "DatasetComparison", "compare", "figures", "printed_names", "shown"]

#: The columns of the table, by the names of `Figures`.
COLUMNS = {
    "classes": "#Classes",
    "train": "#Train",
    "test": "#Test",
    "features": "#Features",
    "card": "Card",
    "dens": "Dens",
    "div": "Div",
    "norm_div": "NormDiv",
    "puniq": "PUniq",
    "pmax": "PMax",
}


@dataclass(frozen=True)
class DatasetComparison:
    """Printed and recomputed figures of one dataset."""

    name: str
    printed: Figures
    computed: Figures

    @property
    def differences(self) -> tuple[str, ...]:
        """The columns in which the two differ as printed, that is to three decimals."""
        printed, computed = asdict(self.printed), asdict(self.computed)
        return tuple(
            column for column in printed if shown(printed[column]) != shown(computed[column])
        )

    @property
    def agreeing(self) -> int:
        """How many of the ten cells agree."""
        return len(fields(Figures)) - len(self.differences)


def shown(value: float) -> str:
    """A figure as the paper prints it."""
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def figures(dataset: Dataset) -> Figures:
    """The row of the table for a prepared dataset."""
    statistics = dataset.statistics()
    return Figures(
        classes=dataset.train.n_labels,
        train=dataset.train.n_items,
        test=dataset.test.n_items,
        features=dataset.train.n_features or 0,
        card=statistics.cardinality,
        dens=statistics.density,
        div=statistics.diversity,
        norm_div=statistics.normalised_diversity,
        puniq=statistics.puniq,
        pmax=statistics.pmax,
    )


def printed_names() -> tuple[str, ...]:
    """Names of the datasets for which the paper prints figures."""
    return tuple(name for name in names() if lookup(name).printed is not None)


def compare(
    name: str, *, home: str | Path | None = None, download: bool = True, mirror: str | None = None
) -> DatasetComparison:
    """Load a dataset and hold its figures against the printed ones.

    Parameters
    ----------
    name : str
        One of `printed_names`.
    home, download, mirror
        As for `load`.
    """
    entry = lookup(name)
    if entry.printed is None:
        raise InputError(f"The paper prints no figures for {entry.name!r}.")
    dataset = load(name, home=home, download=download, mirror=mirror)
    return DatasetComparison(entry.name, entry.printed, figures(dataset))
