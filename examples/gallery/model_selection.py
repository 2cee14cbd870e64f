# %% [markdown]
# # Settings, methods and a plan
#
# Which setting, and which method? `GridSearch` chooses settings by the error of the prevalences instead of the accuracy
# of the classifier. A plan compares methods over datasets, seeds and kinds of shift, and a run that was stopped
# continues where it was. [Experiments](../experiments.md) has everything a plan may say.

# %%
import tomllib
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

from prevalens import parse
from prevalens.datasets import synthetic
from prevalens.experiments import Plan, Store, plan_results, run_plan
from prevalens.protocols import MLAPP
from prevalens.selection import GridSearch

# %% tags=["parameters"]
n_train, grid, repeats = 1000, 11, 5

# %% [markdown]
# ## Settings
#
# 40 % of the items are held out, samples with moved label mixes are drawn from them, and the setting with the smallest
# error is fitted on all items.

# %%
train = synthetic(n_train, 10, n_labels=6, random_state=0).train
search = GridSearch(
    parse("lr+pcc"),
    {"classifier__C": [0.01, 0.1, 1, 10], "classifier__class_weight": [None, "balanced"]},
    protocol=MLAPP(grid=grid, repeats=repeats),
    choose="together",
).fit(train.X, train.Y)
for setting, score in zip(
    search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
):
    print(f"{-100 * score:5.2f} points  {setting}")
print("chosen:", search.best_params_)

# %% [markdown]
# ## A plan
#
# Usually a file for `prevalens bench plan.toml`; here the same text is read in Python.

# %%
text = f"""
name = "gallery"
datasets = ["synthetic"]
seeds = [0]
metrics = ["ae"]

[[protocols]]
name = "ml-app"
grid = {grid}
repeats = {repeats}

[[protocols]]
name = "natural"
n_samples = 200

[[methods]]
expression = "lr+cc"

[[methods]]
expression = "lr+pcc"

[[methods]]
label = "lr+pcc, tuned"
expression = "lr+pcc"
grid = {{ classifier__C = [0.01, 0.1, 1, 10] }}

[[methods]]
expression = "lr+pacc"

[[methods]]
expression = "lr+rq(pcc,ridge)"
"""
plan = Plan.from_dict(tomllib.loads(text))
store = Store(Path("results"))
outcome = run_plan(plan, store, progress=False)
print(f"{outcome.computed} of {len(plan.cells())} cells computed")

# %% [markdown]
# Run it again: everything is in the store, and nothing is computed.

# %%
again = run_plan(plan, store, progress=False)
print(f"{again.computed} cells computed")

# %% alt="Mean absolute error of five methods under two protocols: counting has the largest errors, the regression over all labels the smallest under shift"
errors = {
    (result.protocol, result.method): result.errors["ae"].mean()
    for result in plan_results(plan.cells(), store)
}
methods = [method.name for method in plan.methods]
fig, axes = plt.subplots()
for offset, protocol in zip((-0.2, 0.2), ("ml-app", "natural"), strict=True):
    values = [100 * errors[protocol, method] for method in methods]
    axes.barh(np.arange(len(methods)) + offset, values, height=0.38, label=protocol)
axes.set_yticks(np.arange(len(methods)), methods)
axes.invert_yaxis()
axes.set_xlabel("mean absolute error in points")
axes.legend()
