# %% [markdown]
# # A few labels of the batch
#
# No method can tell from unlabelled items alone that a label looks different than in training. Fifty labels of the
# batch, drawn at random, can. [The guide](../guides/few-labels.md) shows the commands that draw and read them.

# %%
import numpy as np
from matplotlib import pyplot as plt

from prevalens import Quantifier
from prevalens.aggregators import PACC
from prevalens.classifiers import PerLabel
from prevalens.datasets import synthetic

# %% tags=["parameters"]
n_train, n_batch, repeats = 2000, 1000, 40

# %% [markdown]
# Generated items whose label mix moves, and a batch that differs in more than that: ten of the features are a little
# larger, whatever the labels. The assumption of all methods is broken, and the change is too small for the alarm,
# which warns if the p-value is below 0.01: without labels, nothing shows that the estimates are off. The size of the
# change was chosen to show this case: a larger one made the model so wrong that labels alone were as good as both. How
# much labels help on real timelines is in [the guide](../guides/few-labels.md).

# %%
data = synthetic(n_train, n_batch, n_labels=6, shift=1.0, random_state=1)
quantifier = Quantifier(PerLabel(), PACC()).fit(
    data.train.X, data.train.Y, labels=data.train.labels
)
batch = data.test.X.copy()
batch[:, :10] += 0.1
truth = data.test.Y.mean(axis=0)

alone = quantifier.quantify(batch, interval=0.9)
print(f"off by {100 * np.abs(alone.point - truth).mean():.1f} points")
print(f"p-value {float(alone.p_value):.2g}")

# %% [markdown]
# Draw fifty items at random, label them, and say so. Items that were chosen because they seemed interesting would
# bias the estimate, and no interval would show it.

# %%
rows = np.random.default_rng(0).choice(n_batch, 50, replace=False)
helped = quantifier.quantify(batch, labelled=(rows, data.test.Y[rows]), interval=0.9)
helped

# %% alt="Per label the truth, the estimate without labels and the estimate with fifty labels: the second is nearer to the truth"
fig, axes = plt.subplots()
places = np.arange(len(truth))
shown = {"no labels of the batch": alone, "50 labels": helped}
for offset, (name, estimate) in zip((-0.12, 0.12), shown.items(), strict=True):
    sides = 100 * np.abs(np.array([estimate.lower, estimate.upper]) - estimate.point)
    axes.errorbar(places + offset, 100 * estimate.point, sides, fmt="o", markersize=4, label=name)
axes.plot(places, 100 * truth, "k_", markersize=22, label="truth")
axes.set_xticks(places, data.train.labels)
axes.set(ylabel="percent of the batch", ylim=(0, None))
axes.legend()

# %% [markdown]
# One draw may be lucky. Over many draws: the error of the labels alone, of the model alone, and of both together.

# %%
errors = []
for seed in range(repeats):
    rows = np.random.default_rng(seed).choice(n_batch, 50, replace=False)
    both = quantifier.quantify(batch, labelled=(rows, data.test.Y[rows]), interval=0.9)
    labels_alone = data.test.Y[rows].mean(axis=0)
    errors.append(
        [np.abs(found - truth).mean() for found in (labels_alone, alone.point, both.point)]
    )
of_labels, of_model, of_both = 100 * np.mean(errors, axis=0)
print(f"fifty labels alone {of_labels:.1f}, model alone {of_model:.1f}, both {of_both:.1f} points")
