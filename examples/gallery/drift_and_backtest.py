# %% [markdown]
# # Drift and a backtest
#
# Labelled items are from the past, batches come later, and what a label looks like may change in between. If the
# time of each labelled item is known, `fit(..., time=...)` runs a backtest: it learns from earlier items, estimates
# later ones, and makes the intervals as wide as these errors demand. [The guide](../guides/drift.md) has the details.

# %%
import numpy as np
from matplotlib import pyplot as plt

from prevalens import Quantifier
from prevalens.aggregators import PACC
from prevalens.classifiers import PerLabel

# %% tags=["parameters"]
n_train, n_per_month, n_labels = 2400, 200, 5

# %% [markdown]
# Generated items: the label mix moves, and so does the mean of the items that have a label, a little every month.
# The second change breaks the assumption that all methods make. The first 24 months are labelled.

# %%
rng = np.random.default_rng(0)
signal, slope = rng.normal(size=(2, n_labels, 12))


def items(times):
    """Items and labels that arise at given times, in months."""
    phases = times[:, None] / 9 + np.arange(n_labels)
    Y = (rng.random((len(times), n_labels)) < 0.25 + 0.15 * np.sin(phases)).astype(int)
    looks = signal + 0.035 * times[:, None, None] * slope
    X = np.einsum("ij,ijk->ik", Y, looks) + rng.normal(scale=1.2, size=(len(times), 12))
    return X, Y


train_times = np.sort(rng.uniform(0, 24, n_train))
later_times = np.sort(rng.uniform(24, 36, 12 * n_per_month))
X, Y = items(train_times)
Z, truth = items(later_times)
months = np.floor(later_times).astype(int)
true = np.array([truth[months == month].mean(axis=0) for month in np.unique(months)])

# %% [markdown]
# The same method twice: without times, intervals allow for a fixed drift; with times, for what the backtest found.

# %%
without = Quantifier(PerLabel(), PACC()).fit(X, Y)
informed = Quantifier(PerLabel(), PACC()).fit(X, Y, time=train_times)
for ahead, error in informed.backtest_.errors:
    print(f"backtest, {ahead:4.1f} months ahead: off by {100 * error:.1f} points")

# %%
fixed = without.quantify_many(Z, months, interval=0.9)
grown = informed.quantify_many(Z, months, interval=0.9, time=later_times)


def coverage(estimate):
    """Share of the intervals that contain the truth."""
    return ((estimate.lower <= true) & (true <= estimate.upper)).mean()


print(f"without times: {coverage(fixed):.0%} of the 90 % intervals contain the truth")
print(f"with a backtest: {coverage(grown):.0%}")

# %% alt="Width of the intervals and error by months since training: errors grow; the intervals of the backtest grow with them, the fixed ones do not"
ahead = np.unique(months) - 23
fig, axes = plt.subplots()
for name, estimate in (("fixed drift", fixed), ("backtest", grown)):
    width = (estimate.upper - estimate.lower).mean(axis=1)
    axes.plot(ahead, 50 * width, marker="o", markersize=3, label=f"half a width: {name}")
axes.plot(ahead, 100 * np.abs(fixed.point - true).max(axis=1), "x", label="largest error")
axes.set(xlabel="months after the last labelled item", ylabel="percentage points", ylim=(0, None))
axes.legend()
