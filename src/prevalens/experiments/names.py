"""The catalogue of experiments: besides the parts of methods, whole methods that are tuned.

``tuned(lr+pcc,grid=lr-grid,choose=per-label)`` is a search over a named grid inside a larger
method, as in ``rq(tuned(lr+pcc,grid=lr-grid),svr)``. The variants of the paper's code are known
here too.
"""

from __future__ import annotations

from typing import Any

from prevalens import catalogue
from prevalens.catalogue import Entry
from prevalens.experiments.variant_draws import CoarseAPP, InOrder
from prevalens.experiments.variants import VARIANTS, RejoinedSearch
from prevalens.model_selection import GridSearch
from prevalens.validation import check_choice

__all__ = ["GRIDS", "parse"]

#: The paper's range of C, and of class weights, in the order its code tries them.
_C = [1.0, 10.0, 100.0, 1000.0, 0.1]
_WEIGHTS = ["balanced", None]

#: Grids by name: the paper's for logistic regression and for its stacked classifier, and small
#: ones for a smoke run.
GRIDS: dict[str, dict[str, list[Any]]] = {
    "lr-grid": {"classifier__C": _C, "classifier__class_weight": _WEIGHTS},
    "stack-grid": {
        "classifier__meta__C": _C,
        "classifier__meta__class_weight": _WEIGHTS,
        "classifier__normalize": [True, False],
    },
    "lr-small": {"classifier__C": [1.0, 100.0]},
    "stack-small": {"classifier__meta__C": [1.0, 100.0]},
}


def tuned(
    quantifier: Any,
    grid: str = "lr-grid",
    choose: str = "auto",
    *,
    min_positives: int = 0,
    order: int = 1,
    seed: int = 0,
) -> GridSearch:
    """Search over a named grid.

    Parameters
    ----------
    quantifier : Quantifier
    grid : str
        One of `GRIDS`.
    choose : {"auto", "together", "per-label", "binary-app"}
    min_positives, order, seed : int
        As in `GridSearch`.
    """
    return GridSearch(
        quantifier,
        _grid(grid),
        choose=choose,
        min_positives=min_positives,
        order=order,
        seed=seed,
        progress=False,
    )


def rejoined(
    quantifier: Any, grid: str = "stack-grid", *, order: int = 2, seed: int = 0
) -> RejoinedSearch:
    """Search over a named grid, all labels together; the winner is fitted on the parts in turn.

    Parameters
    ----------
    quantifier : Quantifier
    grid : str
        One of `GRIDS`.
    order, seed : int
        As in `GridSearch`.
    """
    return RejoinedSearch(
        quantifier, _grid(grid), choose="together", order=order, seed=seed, progress=False
    )


def _grid(name: str) -> dict[str, list[Any]]:
    return GRIDS[check_choice(name, "grid", tuple(GRIDS))]


MORE = {
    "tuned": Entry("tuned", "quantifier", tuned),
    "rejoined": Entry("rejoined", "quantifier", rejoined),
    **{code: Entry(code, "quantifier", made) for code, made in VARIANTS.items()},
    InOrder.code: Entry(InOrder.code, "folds", InOrder),
    CoarseAPP.name: Entry(CoarseAPP.name, "protocol", CoarseAPP),
}


def parse(text: str) -> Any:
    """The quantifier that a name stands for, tuned inside where it says so.

    Examples
    --------
    >>> parse("rq(tuned(lr+pcc,grid=lr-grid),svr)").aggregator.base.choose
    'auto'
    """
    return catalogue.parse(text, more=MORE)
