"""Model: a preparation and a fitted quantifier in one file that is safe to share.

Fit, quantify, evaluate and compare from files or frames, as functions that the commands and the
page call.
"""

from prevalens.model.compare import Leaderboard, compare_files, compare_methods
from prevalens.model.evaluate import evaluate_files, evaluate_model
from prevalens.model.file import TrainingSummary
from prevalens.model.fit import fit_files
from prevalens.model.labelled import Labelled, read_labelled
from prevalens.model.model import Model
from prevalens.model.progress import CancelledError, Step
from prevalens.model.quantify import quantify_files
from prevalens.model.result import BatchResult

__all__ = [
    "BatchResult",
    "CancelledError",
    "Labelled",
    "Leaderboard",
    "Model",
    "Step",
    "TrainingSummary",
    "compare_files",
    "compare_methods",
    "evaluate_files",
    "evaluate_model",
    "fit_files",
    "quantify_files",
    "read_labelled",
]
