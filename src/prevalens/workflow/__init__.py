"""What the commands do, as functions: fit, quantify, evaluate and compare files; the report."""

from prevalens.workflow.compare import compare_files, compare_methods
from prevalens.workflow.evaluate import evaluate_files, evaluate_model
from prevalens.workflow.fit import fit_files
from prevalens.workflow.labelled import Labelled, read_labelled
from prevalens.workflow.progress import CancelledError, Step
from prevalens.workflow.quantify import quantify_files
from prevalens.workflow.report import report_html, report_of
from prevalens.workflow.result import BatchResult

__all__ = [
    "BatchResult",
    "CancelledError",
    "Labelled",
    "Step",
    "compare_files",
    "compare_methods",
    "evaluate_files",
    "evaluate_model",
    "fit_files",
    "quantify_files",
    "read_labelled",
    "report_html",
    "report_of",
]
