# %% [markdown]
# # A first estimate
#
# Labelled support tickets of 2025, and unlabelled ones of one month of 2026: how many of the new tickets have each
# label? The tickets are generated, so that the truth is known and the answer can be checked.

# %%
import numpy as np

from prevalens import Quantifier
from prevalens.datasets.tickets import month_names, tickets

# %% tags=["parameters"]
n_train, n_batch = 1200, 300

# %% [markdown]
# `X` may be texts, a matrix or a data frame. `Y` has a column of 0 and 1 per label.

# %%
data = tickets(n_train, n_batch)
batch = data.test.take(np.array(month_names(data.test_times)) == "2026-04")
print(data.train.X[0])
print(data.train.labels)

# %% [markdown]
# Without arguments, `Quantifier` chooses a method by its error on the labelled tickets: it draws samples whose
# label mix has moved from tickets that were held out, and takes the method that estimates them best.

# %%
quantifier = Quantifier().fit(list(data.train.X), data.train.Y, labels=data.train.labels)
quantifier.choice_

# %% [markdown]
# The estimate of the month: a prevalence per label, with an interval that contains the true one in 90 % of cases.

# %%
estimate = quantifier.quantify(list(batch.X), interval=0.9)
estimate

# %% alt="A dot with an interval per label, and a mark at the training prevalence: login has moved from 14 to about 50 percent"
axes = estimate.plot(reference=quantifier.prevalence_)
axes.set_title("April 2026, and the training prevalence")

# %% [markdown]
# The truth is known here. Counting the answers of a classifier is the usual alternative; it is biased, because the
# label mix of April is not that of the training.

# %%
truth = batch.Y.mean(axis=0)
counted = (quantifier.score(list(batch.X)).values > 0.5).mean(axis=0)
inside = (estimate.lower <= truth) & (truth <= estimate.upper)
print(f"estimate: off by {100 * np.abs(estimate.point - truth).mean():.1f} points")
print(f"classifier's answers counted: off by {100 * np.abs(counted - truth).mean():.1f} points")
print(f"{inside.sum()} of {len(inside)} intervals contain the truth")
