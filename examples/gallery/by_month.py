# %% [markdown]
# # Tickets by month
#
# From CSV files to a chart and a report: a file of labelled tickets, and a folder with a file per month without
# labels. [The guide](../guides/months.md) does the same on the command line.

# %%
import csv

import numpy as np

from prevalens.datasets.tickets import tickets, write_tickets
from prevalens.model import fit_files, quantify_files

# %% tags=["parameters"]
n_train, n_per_month, months = 1200, 300, 8

# %% [markdown]
# Files of your own need a column of texts (or any columns of numbers and categories) and a column of tags.

# %%
write_tickets(tickets(n_train, n_per_month, months=months), "tickets")
with open("tickets/train.csv", newline="", encoding="utf-8") as file:
    for row in list(csv.DictReader(file))[:3]:
        print(row)

# %% [markdown]
# The method is named here; without `method=` it is chosen by its error on the labelled tickets.

# %%
method = "lr(C=10)+rq(pcc,ridge)"
model = fit_files("tickets/train.csv", text="text", tags="tags", sep=";", method=method)
result = quantify_files(model, "tickets/months", by_time="date")
result

# %% alt="Prevalence of three labels by month with their intervals: login rises to a peak in April and falls again, bug does so a month later, delivery rises all the time"
result.plot(labels=["login", "delivery", "bug"])

# %% [markdown]
# Which labels have clearly moved since training, counting that many labels and months are looked at?

# %%
for i, batch in enumerate(result.batches):
    up, down = (
        [label for label, moved in zip(result.labels, result.moved[i], strict=True) if moved == way]
        for way in (1, -1)
    )
    print(f"{batch}: more {', '.join(up) or 'of none'}; less {', '.join(down) or 'of none'}")

# %% [markdown]
# Two months are compared by the interval of their difference, not by two intervals.

# %%
first, second = result.batches[:2]
change = result.difference(first, second)
for label, low, high in zip(change.labels, change.lower, change.upper, strict=True):
    print(f"{label:10} {first} to {second}: {100 * low:+5.1f} to {100 * high:+5.1f} points")

# %% [markdown]
# The truth is known here: how far off are the estimates, and do the intervals contain it?

# %%
with open("tickets/truth.csv", newline="", encoding="utf-8") as file:
    truth = np.array([[float(row[name]) for name in result.labels] for row in csv.DictReader(file)])
error = np.abs(result.point - truth).mean()
kept = np.abs(result.training - truth).mean()
coverage = ((result.lower <= truth) & (truth <= result.upper)).mean()
print(f"off by {100 * error:.1f} points; the training prevalence kept, by {100 * kept:.1f}")
print(f"{coverage:.0%} of the 90 % intervals contain the truth")

# %% [markdown]
# A table for a spreadsheet, and a report that opens in any browser, also offline.

# %%
result.write("months.csv")
result.report("report.html", model)
