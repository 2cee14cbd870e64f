"""Labelsets as points whose distances are costs: weighted multidimensional scaling with mirrors.

Every labelset is embedded twice, once as a truth and once as an answer, so that a cost that
differs when the two are exchanged has a distance of its own. Only pairs of a truth and an answer
count, each weighted by the frequency of the truth. In this bipartite case the step of SMACOF has a
closed form: no matrix is inverted, and nothing of the size labelsets x labelsets is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.validation import InputError

__all__ = ["COSTS", "cost_blocks", "embed", "starting_points"]

#: Entries of the labelsets x labelsets matrices that are worked on at a time.
_BLOCK = 2**22

Blocks = Callable[[], Iterator[tuple[slice, npt.NDArray[np.float64]]]]


def _overlap(truths: Any, answers: Any) -> tuple[Any, Any, Any]:
    """Labels in both, labels in the truth, labels in the answer."""
    return truths @ answers.T, truths.sum(axis=1)[:, np.newaxis], answers.sum(axis=1)


def _hamming(truths: Any, answers: Any) -> Any:
    both, true, answered = _overlap(truths, answers)
    return (true + answered - 2 * both) / truths.shape[1]


def _f1(truths: Any, answers: Any) -> Any:
    both, true, answered = _overlap(truths, answers)
    total = true + answered
    return 1 - np.divide(2 * both, total, out=np.ones_like(both), where=total > 0)


def _jaccard(truths: Any, answers: Any) -> Any:
    both, true, answered = _overlap(truths, answers)
    union = true + answered - both
    return 1 - np.divide(both, union, out=np.ones_like(both), where=union > 0)


def _rank(truths: Any, answers: Any) -> Any:
    """Pairs of a true and a false label that the answer puts in the wrong order; ties are half."""
    both, true, answered = _overlap(truths, answers)
    missed, invented = true - both, answered - both
    neither = truths.shape[1] - true - invented
    return missed * invented + 0.5 * (both * invented + missed * neither)


COSTS: dict[str, Callable[[Any, Any], Any]] = {
    "hamming": _hamming,
    "f1": _f1,
    "jaccard": _jaccard,
    "rank": _rank,
}


def cost_blocks(states: npt.NDArray[Any], cost: str | Callable[[Any, Any], float]) -> Blocks:
    """Square roots of the costs, some rows of truths at a time, made anew in each run.

    Parameters
    ----------
    states : 0/1 array, shape (n_states, n_labels)
    cost : name in `COSTS`, or function of a true and an answered row of 0/1
    """
    step = max(1, _BLOCK // len(states))
    slices = [slice(start, start + step) for start in range(0, len(states), step)]
    if callable(cost):
        matrix = np.array([[cost(truth, answer) for answer in states] for truth in states])
        if not np.all(matrix >= 0):
            raise InputError("The cost of an answer must be a number that is not below 0.")
        roots = np.sqrt(matrix)
        return lambda: ((rows, roots[rows]) for rows in slices)
    if cost not in COSTS:
        raise InputError(
            f"cost must be a function or one of {', '.join(map(repr, COSTS))}; got {cost!r}."
        )
    named, points = COSTS[cost], states.astype(np.float64)
    # Rounding must not make a cost of nothing negative.
    return lambda: (
        (rows, np.sqrt(np.maximum(named(points[rows], points), 0.0))) for rows in slices
    )


def starting_points(
    states: npt.NDArray[Any], weights: npt.NDArray[Any], n_components: int
) -> npt.NDArray[np.float64]:
    """The labelsets themselves, or their weighted principal components if fewer are wanted.

    The square root of the Hamming cost is the distance of labelsets over sqrt(n_labels): in full
    dimension this start is the solution for that cost, and a good one for others.
    """
    n_labels = states.shape[1]
    points = states / np.sqrt(n_labels)
    points = points - np.average(points, axis=0, weights=weights)
    if n_components >= n_labels:
        return np.pad(points, ((0, 0), (0, n_components - n_labels)))
    _, _, axes = np.linalg.svd(points.T * weights @ points)
    return np.asarray(points @ axes[:n_components].T)


def embed(
    blocks: Blocks,
    weights: npt.NDArray[Any],
    start: npt.NDArray[np.float64],
    *,
    max_iter: int = 300,
    tol: float = 1e-6,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], list[float]]:
    """Move truths and answers until their distances are the roots of the costs.

    Parameters
    ----------
    blocks : function that yields (rows, target distances of these truths to all answers)
    weights : array, shape (n_states,)
        Frequency of each labelset as truth.
    start : array, shape (n_states, n_components)
    max_iter : int
    tol : float
        Stop when the stress sinks by less than this share, or lies below this share of its greatest
        possible value.

    Returns
    -------
    truths, answers, stress
        Two arrays of shape (n_states, n_components), and the weighted squared error before
        each step and after the last. It never rises.

    Notes
    -----
    O(n_states**2 x n_components) time per step and O(n_states x n_components) memory.
    """
    truths = answers = start
    scale = sum(float(weights[rows] @ (goal**2).sum(axis=1)) for rows, goal in blocks())
    history: list[float] = []
    for _ in range(max_iter + 1):
        stress, pulled_truths, pulled_answers = _pull(blocks, weights, truths, answers)
        history.append(stress)
        slow = len(history) > 1 and history[-2] - stress <= tol * history[-2]
        if slow or stress <= tol * scale or len(history) > max_iter:
            break
        answers = pulled_answers / weights.sum()
        truths = pulled_truths / len(weights) + answers.mean(axis=0)
    return truths, answers, history


def _pull(
    blocks: Blocks,
    weights: npt.NDArray[Any],
    truths: npt.NDArray[np.float64],
    answers: npt.NDArray[np.float64],
) -> tuple[float, npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Stress, and the right-hand side of the Guttman transform for both roles.

    With weight w_i for truth x_i against each of n answers y_j, the transform asks for::

        n x_i - sum_j y_j     = sum_j     r_ij (x_i - y_j)
        s y_j - sum_i w_i x_i = sum_i w_i r_ij (y_j - x_i)

    where r = goal / distance and s = sum_i w_i. Putting the weighted mean of x at 0 solves both.
    """
    stress = 0.0
    pulled_truths = np.empty_like(truths)
    pulled_answers = np.zeros_like(answers)
    for rows, goal in blocks():
        distance = _distances(truths[rows], answers)
        stress += float(weights[rows] @ ((distance - goal) ** 2).sum(axis=1))
        ratio = np.divide(goal, distance, out=np.zeros_like(goal), where=distance > 0)
        pulled_truths[rows] = truths[rows] * ratio.sum(axis=1, keepdims=True) - ratio @ answers
        ratio *= weights[rows, np.newaxis]
        pulled_answers += answers * ratio.sum(axis=0)[:, np.newaxis] - ratio.T @ truths[rows]
    return stress, pulled_truths, pulled_answers


def _distances(
    left: npt.NDArray[np.float64], right: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    squares = -2.0 * (left @ right.T)
    squares += (left**2).sum(axis=1)[:, np.newaxis]
    squares += (right**2).sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))
