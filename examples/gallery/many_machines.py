# %% [markdown]
# # Many machines
#
# Items that are spread over many files, scored by the workers of a Dask cluster. Each worker returns sums of some
# kilobytes, which are added up: no item travels. Here the cluster is two processes on this machine; with the address of
# a scheduler it is as many machines as you have. [Much data](../scale.md) has the other ways.

# %%
from pathlib import Path

import numpy as np

from prevalens.datasets.tickets import tickets, write_tickets
from prevalens.engines import summarise_files_dask
from prevalens.model import fit_files, quantify_files
from prevalens.model.summarise import summarise_files

# %% tags=["parameters"]
n_train, n_per_month, months = 1200, 1000, 8
scheduler = "local"  # or the address of a cluster, such as "tcp://host:8786"

# %% [markdown]
# A file per month, and a model, which is sent to every worker once.
#
# A script that starts processes needs the line `if __name__ == "__main__":`, a notebook does not.

# %%
if __name__ == "__main__":
    write_tickets(tickets(n_train, n_per_month, months=months), "tickets")
    model = fit_files(
        "tickets/train.csv", text="text", tags="tags", sep=";", method="lr(C=10)+pacc"
    )
    paths = sorted(Path("tickets/months").glob("*.csv"))
    print(f"{len(paths)} files, {sum(path.stat().st_size for path in paths) / 1e6:.1f} MB")

# %% [markdown]
# Every file is a task of the cluster. The summary holds sums per month; estimates and intervals follow from it.

# %%
if __name__ == "__main__":
    summary = summarise_files_dask(model, paths, scheduler, n_workers=2, by_time="date")
    estimate = model.quantifier.estimate(summary, 0.9)
    summary.save("2026.summary")
    print(summary)
    print(f"{Path('2026.summary').stat().st_size / 1e3:.0f} kB")

# %% [markdown]
# It is what one process computes from all files.

# %%
if __name__ == "__main__":
    one_process = quantify_files(model, paths, by_time="date")
    print("largest difference:", np.abs(one_process.point - estimate.point).max())

# %% [markdown]
# Summaries add up: two sites that hold a part of the files each send their sums, and the total is that of all files.

# %%
if __name__ == "__main__":
    half = len(paths) // 2
    sites = [summarise_files(model, part, by_time="date") for part in (paths[:half], paths[half:])]
    total = model.quantifier.estimate(sites[0] + sites[1], 0.9)
    print("largest difference:", np.abs(total.point - estimate.point).max())

# %% alt="Prevalence of login and delivery by month with intervals, from the summary of the cluster"
if __name__ == "__main__":
    axes = estimate.plot(labels=["login", "delivery"])
    axes.set_title("estimates from the summary of the cluster")
