from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
import scipy.io.arff
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from prevalens.datasets.formats.arff import parse_arff
from prevalens.validation import FormatError

NAMES = st.lists(st.text(min_size=1).filter(str.strip), min_size=3, max_size=3, unique=True)
TABLES = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.just(2)),
    elements=st.floats(-1e6, 1e6, allow_nan=False),
)


def quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    for white, letter in (("\n", "n"), ("\r", "r"), ("\t", "t")):
        escaped = escaped.replace(white, f"\\{letter}")
    return f"'{escaped}'"


def written(names: list[str], X: np.ndarray, y: np.ndarray, *, sparse: bool) -> str:
    kinds = ["numeric", "numeric", "{0,1}"]
    lines = ["@relation r"]
    lines += [f"@attribute {quoted(name)} {kind}" for name, kind in zip(names, kinds, strict=True)]
    lines.append("@data")
    for row, label in zip(X, y, strict=True):
        cells = [*map(repr, row.tolist()), str(label)]
        if sparse:
            shown = ",".join(f"{j} {cell}" for j, cell in enumerate(cells) if float(cell) != 0)
            lines.append("{" + shown + "}")
        else:
            lines.append(",".join(cells))
    return "\n".join(lines)


@given(names=NAMES, X=TABLES, data=st.data(), sparse=st.booleans(), packed=st.booleans())
def test_round_trip(
    tmp_path_factory: pytest.TempPathFactory,
    names: list[str],
    X: np.ndarray,
    data: st.DataObject,
    sparse: bool,
    packed: bool,
) -> None:
    y = data.draw(hnp.arrays(np.int8, len(X), elements=st.integers(0, 1)))
    path = tmp_path_factory.mktemp("arff") / "f.arff"
    content = written(names, X, y, sparse=sparse).encode()
    path.write_bytes(gzip.compress(content) if packed else content)
    found = parse_arff(path).collection([2])
    assert found.labels == (names[2],)
    assert found.features == tuple(names[:2])
    assert sp.issparse(found.X) == sparse
    np.testing.assert_array_equal(found.X.toarray() if sparse else found.X, X)
    np.testing.assert_array_equal(found.Y[:, 0], y)


def test_same_as_scipy_on_dense_files(tmp_path: Path, mulan_texts: dict[str, str]) -> None:
    path = tmp_path / "f.arff"
    path.write_text(mulan_texts["train"])
    oracle, meta = scipy.io.arff.loadarff(io.StringIO(mulan_texts["train"]))
    found = parse_arff(path)
    assert [one.name for one in found.attributes] == meta.names()
    for j, name in enumerate(meta.names()):
        np.testing.assert_array_equal(found.values[:, j], oracle[name].astype(float))


def test_windows_line_ends_and_comments_between_rows(tmp_path: Path) -> None:
    path = tmp_path / "f.arff"
    path.write_bytes(
        b"@relation r\r\n@attribute x real\r\n@attribute y {0,1}\r\n@data\r\n1,0\r\n% c\r\n\r\n2,1"
    )
    assert parse_arff(path).values.tolist() == [[1, 0], [2, 1]]


def test_strange_line_breaks_inside_texts_are_no_line_breaks(tmp_path: Path) -> None:
    path = tmp_path / "f.arff"
    path.write_text("@attribute t string\n@attribute y {0,1}\n@data\n'a\u2028b\x0cc',1\n", "utf-8")
    assert parse_arff(path).collection([1]).X.tolist() == ["a\u2028b\x0cc"]


@pytest.mark.parametrize(
    ("content", "positions", "words"),
    [
        ("@attribute x real\n@data\n", [0], "no items after @data"),
        ("@attribute x real\n@data\n1", [0], "every attribute is a label"),
        ("@attribute x real\n@attribute y real\n@data\n1,2", [1], "label 'y' has the value 2"),
        ("@attribute x real\n@attribute y real\n@data\n{1 2}", [1], "label 'y' has the value 2"),
        ("@attribute x real\n@attribute y string\n@data\n1,a", [1], "label 'y' holds texts"),
        (
            "@attribute x real\n@attribute t string\n@attribute y {0,1}\n@data\n1,a,1",
            [2],
            "'t' stands among 2 features",
        ),
    ],
)
def test_bad_files_are_one_sentence(
    tmp_path: Path, content: str, positions: list[int], words: str
) -> None:
    path = tmp_path / "f.arff"
    path.write_text(content)
    with pytest.raises(FormatError, match=rf"f\.arff: .*{words}"):
        parse_arff(path).collection(positions)


@pytest.mark.data
@pytest.mark.parametrize(
    "name", ["enron/enron-test", "medical/medical-train", "birds/birds-test", "yeast/yeast-test"]
)
def test_same_as_liac_arff(data_home: Path, name: str) -> None:
    arff = pytest.importorskip("arff")
    path = data_home / f"{name}.arff.gz"
    text = gzip.decompress(path.read_bytes()).decode()
    sparse = text.splitlines()[-1].startswith("{")
    oracle = arff.loads(text, return_type=arff.LOD if sparse else arff.DENSE)
    found = parse_arff(path)
    # liac-arff keeps the backslash of quoted names.
    assert [one.name for one in found.attributes] == [
        name.replace("\\", "") for name, _ in oracle["attributes"]
    ]
    if sparse:
        columns = [{j: float(value) for j, value in row.items()} for row in oracle["data"]]
        expected = np.zeros(found.values.shape)
        for i, row in enumerate(columns):
            expected[i, list(row)] = list(row.values())
        np.testing.assert_array_equal(found.values.toarray(), expected)
    else:
        np.testing.assert_array_equal(found.values, np.array(oracle["data"], dtype=float))
