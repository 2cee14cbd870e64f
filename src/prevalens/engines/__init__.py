"""Engines: summaries and estimates of items wherever they are, in one machine or many.

Each module carries one engine and is loaded when it is first used: Arrow streams (DuckDB, Ibis,
Polars, pyarrow), Dask, Spark. All of them score the items where these are and return summaries,
which are added up; see docs/scale.md.
"""

from typing import TYPE_CHECKING

from prevalens.lazy import lazy_names

if TYPE_CHECKING:
    from prevalens.engines.anywhere import quantify, summarise
    from prevalens.engines.arrow import summarise_stream
    from prevalens.engines.dask import summarise_dask, summarise_files_dask
    from prevalens.engines.spark import partial_summaries, summarise_spark

#: The module that defines each public name; it is imported when the name is first used.
_MODULE_OF = {
    "partial_summaries": "prevalens.engines.spark",
    "quantify": "prevalens.engines.anywhere",
    "summarise": "prevalens.engines.anywhere",
    "summarise_dask": "prevalens.engines.dask",
    "summarise_files_dask": "prevalens.engines.dask",
    "summarise_spark": "prevalens.engines.spark",
    "summarise_stream": "prevalens.engines.arrow",
}

__all__ = [
    "partial_summaries",
    "quantify",
    "summarise",
    "summarise_dask",
    "summarise_files_dask",
    "summarise_spark",
    "summarise_stream",
]

__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
