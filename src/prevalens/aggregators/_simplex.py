"""Least squares among shares that sum to one, for many samples at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["minimise_on_simplex"]

_Floats = npt.NDArray[np.float64]
#: Largest product of a share and its price at which a problem is solved.
_TOLERANCE = 1e-14
_MAX_STEPS = 60
#: Part of the way to the boundary that a step may take, and of the products it aims for.
_BACK_OFF = 0.995
_CENTRING = 0.05
#: Entries of the systems that are solved at a time.
_BLOCK = 2**21


def minimise_on_simplex(curve: _Floats, pull: _Floats) -> _Floats:
    """Shares p (not negative, sum 1) that minimise ``0.5 p curve p - pull p``, for each `pull`.

    A primal-dual interior-point method, all problems side by side. Its number of steps (10 to 25)
    does not depend on how well the problem is conditioned.

    Parameters
    ----------
    curve : array, shape (n, n)
        Symmetric, without negative eigenvalues.
    pull : array, shape (n_problems, n)

    Notes
    -----
    O(n^3) per problem and step.

    References: Nocedal and Wright, "Numerical optimization", 2nd edition, 2006, chapter 16.6.
    """
    size = max(1, _BLOCK // curve.size)
    parts = [_minimise(curve, pull[i : i + size]) for i in range(0, len(pull), size)]
    return np.concatenate([np.empty((0, len(curve))), *parts])


def _minimise(curve: _Floats, pull: _Floats) -> _Floats:
    n = len(curve)
    found = np.full(pull.shape, 1.0 / n)
    live = np.arange(len(pull))
    shares = found.copy()
    prices = np.full(pull.shape, max(1.0, float(np.abs(curve).max())))
    level = np.zeros((len(pull), 1))
    for _ in range(_MAX_STEPS):
        shares, prices, level = _step(curve, pull[live], shares, prices, level)
        found[live] = shares
        going = (shares * prices).max(axis=1) > _TOLERANCE
        live, shares, prices, level = live[going], shares[going], prices[going], level[going]
        if len(live) == 0:
            break
    return found / found.sum(axis=1, keepdims=True)


def _step(
    curve: _Floats, pull: _Floats, shares: _Floats, prices: _Floats, level: _Floats
) -> tuple[_Floats, _Floats, _Floats]:
    """One Newton step towards ``shares * prices`` equal and smaller, within the boundary."""
    target = _CENTRING * (shares * prices).mean(axis=1, keepdims=True)
    wanted = pull - shares @ curve - level + target / shares
    systems = curve + (prices / shares)[:, :, np.newaxis] * np.eye(len(curve))
    sides = np.stack([wanted, np.ones_like(wanted)], axis=2)
    moves, per_level = np.moveaxis(np.linalg.solve(systems, sides), 2, 0)
    lift = (moves.sum(axis=1) + shares.sum(axis=1) - 1.0) / per_level.sum(axis=1)
    by_shares = moves - lift[:, np.newaxis] * per_level
    by_prices = (target - prices * by_shares) / shares - prices
    length = np.minimum(_reach(shares, by_shares), _reach(prices, by_prices))[:, np.newaxis]
    return (
        shares + length * by_shares,
        prices + length * by_prices,
        level + length * lift[:, np.newaxis],
    )


def _reach(values: _Floats, moves: _Floats) -> _Floats:
    """How far each row may go, 1 at most, until one of its values is nearly zero."""
    ratios = np.divide(-values, moves, out=np.full_like(values, np.inf), where=moves < 0)
    return np.minimum(1.0, _BACK_OFF * ratios.min(axis=1))
