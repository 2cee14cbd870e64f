"""Files changed at random end in a result or in one sentence, never in a traceback or half a file.

    PREVALENS_FUZZ=10000 pytest tests/contracts/test_damaged_files.py

runs as many files as that; without it there are few, for every day.
"""

from __future__ import annotations

import csv
import io
import json
import os
import random
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from prevalens import Quantifier
from prevalens.aggregators import PACC, PCC
from prevalens.classifiers import PerLabel
from prevalens.errors import PrevalensError
from prevalens.model.fit import fit_files
from prevalens.model.quantify import quantify_files

FILES = int(os.environ.get("PREVALENS_FUZZ", "160"))
#: What parsers stumble over.
NASTY = [
    b'"', b"'", b",", b";", b"\t", b"\n", b"\r", b"\r\n", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf",
    b"\xe9", b"{", b"}", b"[", b"]", b"null", b"NaN", b"1e999", b"-", b"=1+1", b"\\u0000", b"\\",
    b"9" * 400, b"x" * 5000, b"PK\x03\x04", b"PAR1", b"\x1f\x8b", b"true", b"2024-99-99",
    b"12,5", b"1.234", b"12.5%", b"1 234", b"1'234", b"?", b"unknown", b"n/a", b"%",
    b"\xe2\x88\x92", b"31/05/2024", b"\x89PNG", b"<html", b"\xc2\xa0",
]  # fmt: skip


FEATURES = ["age", "text", "price", "share", "people", "seen"]


def changed(content: bytes, rng: random.Random) -> bytes:
    """The content with one to four changes."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(data) + 1)
        length = rng.choice([1, 1, 2, 8, 64, 500])
        kind = rng.randrange(6)
        if kind == 0 and data:
            data[place % len(data)] = rng.randrange(256)
        elif kind == 1:
            del data[place : place + length]
        elif kind == 2:
            data[place:place] = rng.choice(NASTY)
        elif kind == 3:
            data[place:place] = data[place : place + length]
        elif kind == 4:
            data[place : place + length] = rng.randbytes(length)
        else:
            del data[place:]
    return bytes(data)


def rows(count: int = 30) -> list[dict[str, object]]:
    return [
        {
            "date": f"2024-0{1 + i % 6}-1{i % 9}",
            "text": " ".join(["hello"] + ["alpha"] * (i % 2) + ["beta, or so"] * (i // 2 % 2)),
            "age": 20 + i % 7,
            "price": f"{i % 8},{i % 10}" if i % 9 else "?",
            "share": f"{i % 11}.5%",
            "people": f"{1 + i % 5} {100 + i}" if i % 7 else "unknown",
            "seen": f"{10 + i % 9}/0{1 + i % 6}/2024",
            "tags": ",".join(["a"] * (i % 2) + ["b"] * (i // 2 % 2)),
        }
        for i in range(count)
    ]


#: What people write into cells.
CELLS = [
    "", " ", "?", "unknown", "n/a", "-", "None", "12,5", "12.5", "1.234", "1,234", "1 234",
    "1'234,5", "12 %", "-7%", "%", "1e5", "1e999", "inf", "nan", "0x1F", "1_000", "\u2212 5",
    "\u00bd", "\u0663", "31/05/2024", "05/31/2024", "2024-05-31T10:00Z", "99/99/2024", "1716989696",
    "yes", "true", "2", "a,b", "b;a", "[1, 2]", "=1+1", "x" * 300, "9" * 400, "\u00a0",
    "\U0001f600", "\u4e2d\u6587",
]  # fmt: skip


def as_csv(table: list[dict[str, object]] | None = None) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows(1)[0]))
    writer.writeheader()
    writer.writerows(rows() if table is None else table)
    return text.getvalue().encode()


def with_other_cells(rng: random.Random) -> list[dict[str, object]]:
    """Rows of which single cells, or all cells of a column, hold something else."""
    table = rows()
    for _ in range(rng.randint(1, 6)):
        name = rng.choice([*FEATURES, "date", "tags"])
        some = rng.sample(CELLS, rng.randint(1, 5))
        for row in rng.choice([[rng.randrange(30)], range(30), range(0, 30, 2)]):
            table[row][name] = rng.choice(some)
    return table


def as_jsonl() -> bytes:
    return "\n".join(map(json.dumps, rows())).encode()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("models")
    (folder / "t.csv").write_bytes(as_csv())
    method = Quantifier(PerLabel(), PACC())
    tree = Quantifier(aggregator=PACC(), classifier=_tree())
    paths = [folder / f"{number}.prevalens" for number in range(3)]
    train = folder / "t.csv"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit_files(train, text="text", tags="tags", method=method).save(paths[0])
        fit_files(train, features=FEATURES, tags="tags", method=method).save(paths[1])
        fit_files(train, text="text", tags="tags", method=tree).save(paths[2])
    return paths


def _tree() -> object:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(random_state=0)


def with_changed_parts(content: bytes, rng: random.Random) -> bytes:
    """A model file one of whose parts was changed by somebody who knows how to make archives."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(sorted(members))
    members[name] = changed(members[name], rng)
    return zipped(members)


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


class Case:
    """One changed file, and what is done with it."""

    def __init__(self, models: list[Path], folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.models, self.folder = models, folder
        self.out = folder / "out.csv"

    def batch(self, ending: str, content: bytes) -> None:
        self._estimate(self._written(f"batch{ending}", changed(content, self.rng)))

    def _written(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content)
        return path

    def _estimate(self, path: Path) -> None:
        grouped = {"by_time": "date"} if self.rng.random() < 0.5 else {}
        model = self.rng.choice(self.models[:2])
        quantify_files(model, path, interval=None, **grouped).write(self.out)

    def train(self, ending: str, content: bytes) -> None:
        self._fit(self._written(f"train{ending}", changed(content, self.rng)))

    def _fit(self, path: Path) -> None:
        method = Quantifier(PerLabel(), PCC())
        items = self.rng.choice([{"text": "text"}, {"features": FEATURES}, {"id": "date"}])
        fit_files(path, tags="tags", method=method, **items).save(self.out)

    def cells(self) -> None:
        content = as_csv(with_other_cells(self.rng))
        if self.rng.random() < 0.5:
            self._estimate(self._written("batch.csv", content))
        else:
            self._fit(self._written("train.csv", content))

    def model(self, change: Callable[[bytes, random.Random], bytes]) -> None:
        path = self.folder / "m.prevalens"
        path.write_bytes(change(self.rng.choice(self.models).read_bytes(), self.rng))
        batch = self.folder / "good.csv"
        batch.write_bytes(as_csv())
        quantify_files(path, batch, interval=None).write(self.out)

    def run(self) -> str:
        """A result, or the refusal; anything else is an error of ours."""
        acts: list[Callable[[], None]] = [
            lambda: self.batch(".csv", as_csv()),
            lambda: self.batch(".jsonl", as_jsonl()),
            lambda: self.train(self.rng.choice([".csv", ".jsonl"]), as_csv()),
            self.cells,
            self.cells,
            lambda: self.model(changed),
            lambda: self.model(with_changed_parts),
        ]
        try:
            self.rng.choice(acts)()
        except PrevalensError as error:
            sentence = str(error)
            assert sentence, "a refusal says why"
            assert "\n" not in sentence, sentence
            assert not self.out.exists(), "nothing is written by what was refused"
            return "refused"
        assert self.out.stat().st_size > 0
        self.out.unlink()
        return "answered"


@pytest.mark.filterwarnings("ignore")
def test_changed_files_end_in_a_result_or_a_sentence(models: list[Path], tmp_path: Path) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(FILES):
        try:
            outcomes[Case(models, tmp_path, seed).run()] += 1
        except Exception as error:
            error.add_note(f"The file was changed with seed {seed}.")
            raise
    assert set(outcomes) == {"answered", "refused"}
    assert outcomes.total() == FILES
    assert not [path for path in tmp_path.iterdir() if "unfinished" in path.name]
