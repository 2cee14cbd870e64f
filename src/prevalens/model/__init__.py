"""Model: a preparation and a fitted quantifier in one file that is safe to share.

Fit, quantify, evaluate and compare from files or frames, as functions that the commands and the
page call. Names are loaded when they are first used, so that a manifest can be read without the
estimators.
"""

from typing import TYPE_CHECKING

from prevalens.lazy import lazy_names

if TYPE_CHECKING:
    from prevalens.model.adjust import AdjustedCounts, adjust_files
    from prevalens.model.compare import Leaderboard, compare_files, compare_methods
    from prevalens.model.draw import Draw
    from prevalens.model.evaluate import evaluate_files, evaluate_model
    from prevalens.model.fit import fit_files
    from prevalens.model.labelled import Labelled, read_labelled
    from prevalens.model.manifest import TrainingSummary
    from prevalens.model.model import Model
    from prevalens.model.plan import LabelPlan, plan_files, plan_scores
    from prevalens.model.progress import CancelledError, Step, progress_bar
    from prevalens.model.quantify import quantify_files
    from prevalens.model.result import BatchResult
    from prevalens.model.sample import LabelSheet, sample_files

#: The module that defines each public name; it is imported when the name is first used.
_MODULE_OF = {
    "AdjustedCounts": "prevalens.model.adjust",
    "BatchResult": "prevalens.model.result",
    "CancelledError": "prevalens.model.progress",
    "Draw": "prevalens.model.draw",
    "LabelPlan": "prevalens.model.plan",
    "LabelSheet": "prevalens.model.sample",
    "Labelled": "prevalens.model.labelled",
    "Leaderboard": "prevalens.model.compare",
    "Model": "prevalens.model.model",
    "Step": "prevalens.model.progress",
    "TrainingSummary": "prevalens.model.manifest",
    "adjust_files": "prevalens.model.adjust",
    "compare_files": "prevalens.model.compare",
    "compare_methods": "prevalens.model.compare",
    "evaluate_files": "prevalens.model.evaluate",
    "evaluate_model": "prevalens.model.evaluate",
    "fit_files": "prevalens.model.fit",
    "plan_files": "prevalens.model.plan",
    "plan_scores": "prevalens.model.plan",
    "progress_bar": "prevalens.model.progress",
    "quantify_files": "prevalens.model.quantify",
    "read_labelled": "prevalens.model.labelled",
    "sample_files": "prevalens.model.sample",
}

__all__ = [
    "AdjustedCounts",
    "BatchResult",
    "CancelledError",
    "Draw",
    "LabelPlan",
    "LabelSheet",
    "Labelled",
    "Leaderboard",
    "Model",
    "Step",
    "TrainingSummary",
    "adjust_files",
    "compare_files",
    "compare_methods",
    "evaluate_files",
    "evaluate_model",
    "fit_files",
    "plan_files",
    "plan_scores",
    "progress_bar",
    "quantify_files",
    "read_labelled",
    "sample_files",
]

__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
