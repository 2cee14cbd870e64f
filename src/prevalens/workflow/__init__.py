"""What the commands do, as functions: fit from files, quantify files, and the results."""

from prevalens.workflow.fit import fit_files
from prevalens.workflow.labelled import Labelled, read_labelled
from prevalens.workflow.progress import CancelledError, Step
from prevalens.workflow.quantify import quantify_files
from prevalens.workflow.result import BatchResult

__all__ = [
    "BatchResult",
    "CancelledError",
    "Labelled",
    "Step",
    "fit_files",
    "quantify_files",
    "read_labelled",
]
