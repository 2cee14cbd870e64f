"""Datasets: the paper's and timelines by name, files of all usual formats, and generated data.

`load` gives a named dataset, `read` one file, `synthetic` generated data; `text_pipeline` is the
paper's preparation of texts. `read_mulan`, `read_meka`, `read_svmlight`, `read_matlab`,
`read_reuters` and `read_ohsumed` are the readers of single formats, with all their options.
"""

from prevalens.datasets.dataset import Dataset
from prevalens.datasets.fetch import DownloadError
from prevalens.datasets.formats.corpora import read_ohsumed, read_reuters
from prevalens.datasets.formats.matlab import read_matlab
from prevalens.datasets.formats.mulan import read_meka, read_mulan
from prevalens.datasets.formats.svmlight import read_svmlight
from prevalens.datasets.generated import synthetic
from prevalens.datasets.home import DataNotFoundError, DatasetDescription, data_home, describe
from prevalens.datasets.loading import (
    DatasetComparison,
    compare,
    figures,
    load,
    text_pipeline,
)
from prevalens.datasets.reading import read
from prevalens.datasets.registry import names

__all__ = [
    "DataNotFoundError",
    "Dataset",
    "DatasetComparison",
    "DatasetDescription",
    "DownloadError",
    "compare",
    "data_home",
    "describe",
    "figures",
    "load",
    "names",
    "read",
    "read_matlab",
    "read_meka",
    "read_mulan",
    "read_ohsumed",
    "read_reuters",
    "read_svmlight",
    "synthetic",
    "text_pipeline",
]
