"""Multi-label quantification: how frequent each label is in a batch whose mix has moved.

Train on labelled items, then estimate the prevalence of every label in
unlabelled batches.

    from prevalens import Quantifier, datasets

    data = datasets.load("synthetic")
    quantifier = Quantifier().fit(data.train.X, data.train.Y)
    quantifier.quantify(data.test.X)

Names are loaded when they are first used, so that ``import prevalens`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from prevalens._version import __version__

if TYPE_CHECKING:
    from prevalens import aggregators, classifiers, datasets, metrics, protocols
    from prevalens.catalogue import parse, register
    from prevalens.collection import Collection
    from prevalens.engines.anywhere import quantify
    from prevalens.estimate import PrevalenceEstimate
    from prevalens.evaluation import evaluate
    from prevalens.quantifier import Quantifier
    from prevalens.samples import Samples
    from prevalens.scores import Scores

#: The module that defines each public name; it is imported when the name is first used.
_MODULE_OF = {
    "Collection": "prevalens.collection",
    "PrevalenceEstimate": "prevalens.estimate",
    "Quantifier": "prevalens.quantifier",
    "Samples": "prevalens.samples",
    "Scores": "prevalens.scores",
    "evaluate": "prevalens.evaluation",
    "parse": "prevalens.catalogue",
    "quantify": "prevalens.engines.anywhere",
    "register": "prevalens.catalogue",
}
#: Modules and subpackages that are public as a whole.
_PUBLIC_MODULES = ("aggregators", "classifiers", "datasets", "metrics", "protocols")

__all__ = [
    "Collection",
    "PrevalenceEstimate",
    "Quantifier",
    "Samples",
    "Scores",
    "__version__",
    "aggregators",
    "classifiers",
    "datasets",
    "evaluate",
    "metrics",
    "parse",
    "protocols",
    "quantify",
    "register",
]


def __getattr__(name: str) -> object:
    if name in _MODULE_OF:
        return getattr(import_module(_MODULE_OF[name]), name)
    if name in _PUBLIC_MODULES:
        return import_module(f"prevalens.{name}")
    raise AttributeError(f"module 'prevalens' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
