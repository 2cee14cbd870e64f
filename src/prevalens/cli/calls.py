"""What commands call, loaded at the first call: help and most refusals need no estimators."""

from typing import TYPE_CHECKING

from prevalens.lazy import lazy_names

if TYPE_CHECKING:
    from prevalens.engines.dask import summarise_files_dask
    from prevalens.model.adjust import adjust_files
    from prevalens.model.evaluate import evaluate_files
    from prevalens.model.model import Model
    from prevalens.model.quantify import quantify_files
    from prevalens.model.summarise import (
        ENDING,
        quantify_summaries,
        quantify_summary,
        summarise_files,
    )
    from prevalens.model.watch import Stream, follow
    from prevalens.reports.batch_page import report_html
    from prevalens.reports.batches import by_size
    from prevalens.reports.headline import headline
    from prevalens.reports.label_pages import adjust_page
    from prevalens.reports.page import write_page
    from prevalens.reports.trust_page import trust_page, verdict

_MODULE_OF = {
    "ENDING": "prevalens.model.summarise",
    "Model": "prevalens.model.model",
    "Stream": "prevalens.model.watch",
    "adjust_files": "prevalens.model.adjust",
    "adjust_page": "prevalens.reports.label_pages",
    "by_size": "prevalens.reports.batches",
    "evaluate_files": "prevalens.model.evaluate",
    "follow": "prevalens.model.watch",
    "headline": "prevalens.reports.headline",
    "quantify_files": "prevalens.model.quantify",
    "quantify_summaries": "prevalens.model.summarise",
    "quantify_summary": "prevalens.model.summarise",
    "report_html": "prevalens.reports.batch_page",
    "summarise_files": "prevalens.model.summarise",
    "summarise_files_dask": "prevalens.engines.dask",
    "trust_page": "prevalens.reports.trust_page",
    "verdict": "prevalens.reports.trust_page",
    "write_page": "prevalens.reports.page",
}

__all__ = [
    "ENDING",
    "Model",
    "Stream",
    "adjust_files",
    "adjust_page",
    "by_size",
    "evaluate_files",
    "follow",
    "headline",
    "quantify_files",
    "quantify_summaries",
    "quantify_summary",
    "report_html",
    "summarise_files",
    "summarise_files_dask",
    "trust_page",
    "verdict",
    "write_page",
]

__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
