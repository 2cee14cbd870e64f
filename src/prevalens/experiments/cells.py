"""Cell: the unit of an experiment, one method on one dataset with one seed under one protocol.

A cell is a value. Its key is a checksum of everything the result depends on, so a result found
under it is the result, whichever plan it was made for and whatever the method is called there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from prevalens.experiments.data import Source
from prevalens.experiments.specs import MethodSpec, ProtocolSpec
from prevalens.experiments.values import (
    canonical,
    checksum,
    method_tree,
    names_in,
    value_tree,
)
from prevalens.extension import fingerprints

__all__ = ["FORMAT", "Cell"]

#: Number of the format of results; a new one makes every old result unknown.
FORMAT = 1


@dataclass(frozen=True)
class Cell:
    """What is to be computed, as a picklable value.

    Parameters
    ----------
    source : Source
        The data.
    method : MethodSpec
    protocol : ProtocolSpec
        How samples are drawn from the test items.
    seed : int
        Of the samples and of everything random in the method.
    metrics : tuple of str

    Examples
    --------
    >>> method, protocol = MethodSpec("PCC", "lr+pcc"), ProtocolSpec("ml-app", "ml-app")
    >>> print(Cell(Source("synthetic"), method, protocol, seed=0))
    synthetic, PCC, ml-app, seed 0
    """

    source: Source
    method: MethodSpec
    protocol: ProtocolSpec
    seed: int
    metrics: tuple[str, ...] = ("ae", "rae")

    def __str__(self) -> str:
        return f"{self.dataset}, {self.method.name}, {self.protocol.name}, seed {self.seed}"

    @property
    def dataset(self) -> str:
        """Name of the dataset."""
        return self.source.name

    def key(self, data_sha: str) -> str:
        """Checksum of all that the result depends on, given the checksum of the data."""
        content = self._training() | {
            "data": data_sha,
            "format": FORMAT,
            "metrics": list(self.metrics),
            "protocol": {"kind": self.protocol.kind, **self.protocol.parameters},
        }
        return checksum(content)[:32]

    def training_key(self) -> str:
        """The same for two cells that need the same fitted quantifier."""
        return canonical(self._training())

    def scores_key(self) -> str:
        """The same for two cells that share the scores of one classifier."""
        classifier = method_tree(self.method.expression).get("classifier")
        shared = {"source": self.source.content(), "classifier": classifier, "seed": self.seed}
        return canonical(shared)

    def _training(self) -> dict[str, Any]:
        content = self._method()
        own = fingerprints(names_in(content))
        return content | {"own": own} if own else content

    def _method(self) -> dict[str, Any]:
        grid = self.method.grid.items()
        return {
            "source": self.source.content(),
            "expression": method_tree(self.method.expression),
            # A list, as the first of equally good settings wins.
            "grid": [[name, list(map(value_tree, values))] for name, values in grid],
            "selection": dict(self.method.selection),
            "seed": self.seed,
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain values, to be written down; of files only the names, wherever they lie."""
        content = asdict(replace(self, source=self.source.without_folders()))
        # As pairs: their order matters to the key, and JSON is written with sorted names.
        content["method"]["grid"] = [[name, list(v)] for name, v in self.method.grid.items()]
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Cell:
        """The inverse of `to_dict`, also after a detour through JSON."""
        method = dict(content["method"])
        method["grid"] = {name: tuple(values) for name, values in dict(method["grid"]).items()}
        return cls(
            source=Source(**content["source"]),
            method=MethodSpec(**method),
            protocol=ProtocolSpec(**content["protocol"]),
            seed=content["seed"],
            metrics=tuple(content["metrics"]),
        )
