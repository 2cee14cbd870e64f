# %% [markdown]
# # Scores of your own
#
# A language model, rules or a vendor's service has labelled all items, and its counts are wrong. Some hundred labels
# of people say how it errs, and the counts are corrected; no texts are needed. [The guide](../guides/labellers.md)
# compares this with the alternatives on public data.

# %%
import numpy as np
from matplotlib import pyplot as plt

from prevalens import Quantifier
from prevalens.classifiers import Given
from prevalens.datasets import synthetic

# %% tags=["parameters"]
n_people, n_month = 300, 400

# %% [markdown]
# The labels of six months, whose mix moves, and a labeller that stands for a language model: it misses some items of
# every label and names labels that are not there, each label at its own rates.

# %%
data = synthetic(n_people, 6 * n_month, n_labels=5, shift=1.2, periods=6, random_state=3)
rng = np.random.default_rng(0)
found, invented = rng.uniform(0.6, 0.95, 5), rng.uniform(0.02, 0.2, 5)


def labeller(Y):
    """Answers of 0 and 1, some of them wrong."""
    return (rng.random(Y.shape) < np.where(Y == 1, found, invented)).astype(float)


people, answers = data.train.Y, labeller(data.train.Y)
later = labeller(data.test.Y)
months = np.datetime_as_string(data.test.times, unit="M")
true = np.array([data.test.Y[months == month].mean(axis=0) for month in np.unique(months)])

# %% [markdown]
# `Given` takes the answers as the scores of items; probabilities instead of 0 and 1 say more, and a missing answer is
# `nan`. How the answers are read is chosen by the error on the items that people have labelled.

# %%
quantifier = Quantifier(Given()).fit(answers, people, labels=data.train.labels)
corrected = quantifier.quantify_many(later, months, interval=0.9)
counted = np.array([later[months == month].mean(axis=0) for month in np.unique(months)])
inside = (corrected.lower <= true) & (true <= corrected.upper)
print(f"answers counted: off by {100 * np.abs(counted - true).mean():.1f} points")
print(
    f"corrected with {n_people} labels of people: {100 * np.abs(corrected.point - true).mean():.1f}"
)
print(f"{inside.mean():.0%} of the 90 % intervals contain the truth")

# %% alt="A label by month: the corrected estimate with its interval follows the truth, the counts of the labeller lie off it"
label = int(np.abs(counted - true).mean(axis=0).argmax())
fig, axes = plt.subplots()
names = np.unique(months)
axes.plot(names, 100 * corrected.point[:, label], marker="o", markersize=3, label="corrected")
axes.fill_between(
    names, 100 * corrected.lower[:, label], 100 * corrected.upper[:, label], alpha=0.15
)
axes.plot(names, 100 * true[:, label], marker="x", label="truth")
axes.plot(names, 100 * counted[:, label], "--", label="answers counted")
axes.set(title=data.train.labels[label], ylabel="percent of the month's items", ylim=(0, None))
axes.legend()
