# %% [markdown]
# # A method of your own
#
# A method is a pair: a classifier that scores items, and an aggregator that turns the scores of a batch into
# prevalences. A new aggregator needs a name, what it reads, and two functions. [How to add a
# method](../develop/add-a-method.md) explains each line.

# %%
import numpy as np
from matplotlib import pyplot as plt

from prevalens import evaluate, parse, register
from prevalens.aggregators import Aggregator
from prevalens.datasets import synthetic
from prevalens.protocols import MLAPP

# %% tags=["parameters"]
n_items, n_samples = 2000, 2000

# %% [markdown]
# The mean posterior (`pcc`) is drawn towards the training prevalence. `pacc` undoes that: it divides the deviation by the
# difference of the mean posteriors of items with and without the label, which removes the bias and enlarges the noise.
# This aggregator divides by the square root of the difference: half a correction, half the noise. It was picked among a
# few ideas on the samples that are shown below, so its lead is an illustration, not a result.


# %%
@register
class HalfAdjusted(Aggregator):
    """The mean posterior, moved half of the way that PACC would move it."""

    code = "half"
    consumes = "posteriors"
    joint = False

    def __init__(self, smallest=0.05):
        self.smallest = smallest

    def _fit(self, scores, Y):
        positive = (scores.values * Y).sum(axis=0) / Y.sum(axis=0)
        negative = (scores.values * (1 - Y)).sum(axis=0) / (1 - Y).sum(axis=0)
        self.gain_ = np.sqrt(np.maximum(positive - negative, self.smallest))

    def _aggregate(self, scores, samples):
        moved = samples.mean(scores.values) - self.prevalence_
        return np.clip(self.prevalence_ + moved / self.gain_, 0, 1)


# %% [markdown]
# Its name works wherever the name of a method does: in `parse`, in plans, and, with `prevalens --with FILE`, on the
# command line. Intervals come with it.

# %%
data = synthetic(n_items, n_items, n_labels=6, random_state=0)
own = parse("lr+half").fit(data.train.X, data.train.Y, labels=data.train.labels)
print(own.name, own.group)
own.quantify(data.test.X, interval=0.9)

# %% [markdown]
# Is it any good? Samples whose label mix has moved tell, the same ones for every method.

# %% alt="Mean error by shift of four methods: all errors grow with the shift, that of counting most; the own method lies below the mean posterior"
protocol = MLAPP(more_than=n_samples)
errors = {}
fig, axes = plt.subplots()
for name in ("lr+cc", "lr+pcc", "lr+half", "lr+pacc"):
    quantifier = parse(name).set_params(uncertainty=None).fit(data.train.X, data.train.Y)
    evaluation = evaluate(quantifier, data.test, protocol)
    errors[name] = evaluation.errors("ae").mean()
    far = np.quantile(evaluation.shift, np.linspace(0, 1, 9))
    bins = np.clip(np.searchsorted(far, evaluation.shift) - 1, 0, 7)
    means = [100 * evaluation.errors("ae")[bins == i].mean() for i in range(8)]
    axes.plot(100 * (far[1:] + far[:-1]) / 2, means, marker="o", markersize=3, label=name)
axes.set(xlabel="shift in points", ylabel="mean absolute error in points", ylim=(0, None))
axes.legend()
for name, error in errors.items():
    print(f"{name:14} {100 * error:.2f} points")
