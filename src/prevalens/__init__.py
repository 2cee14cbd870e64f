"""Multi-label quantification: how frequent each label is in a batch whose mix has moved.

Train on labelled items, then estimate the prevalence of every label in
unlabelled batches.

    from prevalens import Quantifier, datasets

    data = datasets.load("synthetic")
    quantifier = Quantifier().fit(data.train.X, data.train.Y)
    quantifier.quantify(data.test.X)

Names are loaded when they are first used, so that ``import prevalens`` costs next to nothing.
"""

from typing import TYPE_CHECKING

from prevalens.lazy import lazy_names

if TYPE_CHECKING:
    from prevalens import aggregators, classifiers, datasets, metrics, protocols
    from prevalens._version import __version__
    from prevalens.catalogue import parse, register
    from prevalens.collection import Collection
    from prevalens.engines.anywhere import quantify
    from prevalens.estimate import PrevalenceEstimate
    from prevalens.evaluation import evaluate
    from prevalens.quantifier import Quantifier
    from prevalens.samples import Samples
    from prevalens.scores import Scores

#: The module of each public name, or that is public; it is imported when the name is first used.
_MODULE_OF = {
    "Collection": "prevalens.collection",
    "PrevalenceEstimate": "prevalens.estimate",
    "Quantifier": "prevalens.quantifier",
    "Samples": "prevalens.samples",
    "Scores": "prevalens.scores",
    "__version__": "prevalens._version",
    "aggregators": "prevalens.aggregators",
    "classifiers": "prevalens.classifiers",
    "datasets": "prevalens.datasets",
    "evaluate": "prevalens.evaluation",
    "metrics": "prevalens.metrics",
    "parse": "prevalens.catalogue",
    "protocols": "prevalens.protocols",
    "quantify": "prevalens.engines.anywhere",
    "register": "prevalens.catalogue",
}

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

__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
