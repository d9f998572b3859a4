"""Inputs of ``scripts/dev/fuzz`` for the readers; each ends in a result or in the reader's own error.

A target's input is bytes. Where a reader takes several files they stand one behind the other (``packed``), so that an
input that once failed is one file of ``tests/corpus/``.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import random
import traceback
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from data_folders import TEXT
from model_files import GOOD, WEIGHTS, array_bytes, sealed, text
from mutator import mutated

from apsvm import APSVMClassifier, LinearRanker, RankerSet, WARPRanker
from apsvm._support.container import ModelError
from apsvm.data.dataset import DataError, Dataset
from apsvm.data.folder import HEADER, open_folder, write_folder
from apsvm.data.read_options import TableOptions
from apsvm.data.reading import read_data
from apsvm.data.rows import Rows
from apsvm.data.svmlight import read_svmlight
from apsvm.data.trec import join, read_qrels, read_run
from apsvm.detection.readers import read_detections, read_objects
from apsvm.models.averages import average_of
from apsvm.models.columns import MISSING_RULES
from apsvm.models.header import LabelKind, Labels
from apsvm.models.reading import load_any_model


@dataclass(frozen=True)
class Target:
    """A reader.

    Attributes
    ----------
    seeds : sound inputs, of which others are made
    read : (input, an empty folder to work in) → nothing; raises what the reader raises
    errors : what the reader may raise
    made : (input, chance, seeds) → another one
    """

    seeds: Callable[[], Sequence[bytes]]
    read: Callable[[bytes, Path], None]
    errors: tuple[type[Exception], ...]
    made: Callable[[bytes, random.Random, Sequence[bytes]], bytes] = mutated

    def failure(self, data: bytes, folder: Path) -> str | None:
        """The fault of the outcome of an input; None without a fault."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self.read(data, folder)
        except self.errors as error:
            if not str(error):
                return f"{type(error).__name__} without a word"
        except Exception:
            return traceback.format_exc()
        return None


def packed(files: dict[str, bytes]) -> bytes:
    """Several files in one: for each a line with its name and its length, and its bytes."""
    return b"".join(f"{name} {len(content)}\n".encode() + content for name, content in files.items())


def unpacked(data: bytes) -> dict[str, bytes]:
    """The reverse, of whatever bytes: what has no sound line of its own is another file's end."""
    files: dict[str, bytes] = {}
    while data:
        line, _, data = data.partition(b"\n")
        name, _, length = line.decode("latin-1").rpartition(" ")
        if not length.isdecimal() or len(length) > 9 or not name or "\0" in name or name[0] in "/.":
            break
        files[name] = data[: int(length)]
        data = data[int(length) :]
    return files


def one_file_mutated(data: bytes, chance: random.Random, seeds: Sequence[bytes]) -> bytes:
    """One of the packed files changed, with the others as they are; or left out."""
    files = unpacked(data)
    name = chance.choice(list(files))
    if chance.random() < 0.02:
        del files[name]
    else:
        files[name] = mutated(files[name], chance, [unpacked(seed).get(name, b"") for seed in seeds])
    return packed(files)


def _written(data: bytes, folder: Path) -> None:
    for name, content in unpacked(data).items():
        place = folder / name
        if ".." in place.parts or len(name) > 200:
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.is_dir():
            place.write_bytes(content)


def _options(data: bytes, **choices: Sequence[object]) -> dict[str, object]:
    """One of each option's values, which the input itself decides on: it can be replayed."""
    chance = random.Random(zlib.crc32(data))
    return {name: chance.choice(values) for name, values in choices.items()}


def _use(data: Dataset) -> None:
    """A pass over the rows: no index of theirs leads out of the weights."""
    rows = Rows(data.X)
    if rows.dimension <= 1 << 20:
        scores = rows.scores(np.ones(rows.dimension))
        assert scores.shape == data.relevance.shape


# svmlight


def _svmlight_seeds() -> list[bytes]:
    texts = [
        TEXT,
        b"# a comment\n1 1:1 2:0.25 # of a row\n\n0 3:-1e-3\r\n+1 7:1e5\n",
        b"1,2 1:1\n3 2:1\n 4:1\n",
        b"1 bag:1 1:1\n0 bag:1 2:1\n1 bag:2 1:3\n",
        b"1 qid:3 cost:0.5 1:1 5:2\n2 qid:3 1:1 3:1 2:2\n",
    ]
    return [*texts, gzip.compress(TEXT, mtime=0), bz2.compress(TEXT), lzma.compress(TEXT)]


def _read_svmlight(data: bytes, folder: Path) -> None:
    options = _options(
        data, zero_based=(False, True), dtype=(np.float64, np.float32), multilabel=(False, True), threads=(1, 2),
        sort_features=(False, True), dense=(False, True), bag_label=("same", "any", "own"),
        max_features=(None, 10, 100_000),
    )  # fmt: skip
    _use(read_svmlight(io.BytesIO(data), **options))


# tables


def _zipped(content: bytes) -> bytes:
    packed_file = io.BytesIO()
    with zipfile.ZipFile(packed_file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("t.csv"), content)
    return packed_file.getvalue()


def _csv_seeds() -> list[bytes]:
    return [
        gzip.compress(b"," * 5_000_000, mtime=0),  # columns without end
        gzip.compress(b'y,a\n1,"' + b"x" * 5_000_000, mtime=0),  # a quote that nobody closes
        b"y,a,b\n1,0.5,red\n0,1.5,blue\n1,,red\n0,2,green\n",
        b"y;a;b\r\n1;0,5;x\r\n0;1,5;y\r\n",
        b'y,"a, b",c\n1,"x ""y""",3\n0,"two\nlines",4\n',
        b"y\ta\tb\n1\t1\t2\n0\t3\t4\n",
        b'y, "a", b\n1, "x, y", 3\n0, "z", 4\n',
        _zipped(b"y,a\n1,2\n0,3\n1,4\n"),
        b"y,qid,a\nyes,q1,1\nno,q1,2\nyes,q2,3\nno,q2,4\n",
        "\ufeffy,größe\n1,ä\n0,ß\n".encode(),
        b'y,when,paid,share\n1,2024-03-31,"$1,234.50",3 %\n0,2024-04-01 05:18,$9.99,12 %\n1,2023-12-30,"$12,000.00",\n',
        "y;wann;bezahlt\nja;30.12.2023 05:18;1.560,77 €\nnein;31.01.2024 23:59;12,00 €\nja;01.02.2024;\n".encode(),
    ]


def _json_seeds() -> list[bytes]:
    return [
        b'{"y":1,"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}\n",
        b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
        b'{"y":1,"a":0.5,"b":"red"}\n{"y":0,"a":1.5,"b":"blue"}\n{"y":1,"b":"red"}\n{"y":0,"a":2,"b":null}\n',
        b'[{"y":1,"a":"01"},\n{"y":0,"a":2.5,"b":[1]}]',
        b'{"y":1,"a":1,"b":true}\r\n{"y":0,"a":"x","b":false}\r\n{"y":0,"a":12345678901234567890}\r\n',
        '\ufeff{"y":1,"größe":"ä"}\n{"y":0,"größe":"\\u00df"}\n'.encode(),
        gzip.compress(b'{"y":1,"a":1}\n{"y":0,"a":1e5}\n', mtime=0),
    ]


def _arrow_seeds() -> list[bytes]:
    import pyarrow as pa
    from pyarrow import feather, parquet

    days = pa.array([0, 86_400], pa.timestamp("s"))
    words = pa.array(["u", "v"]).dictionary_encode()
    columns = {"y": [1, 0], "a": [0.5, None], "b": ["red", "blue"], "c": words, "when": days, "ok": [True, None]}
    columns |= {"n": pa.nulls(2), "d": pa.array([1, 2], pa.decimal128(5, 2)), "far": days.cast("date32")}
    table = pa.table(columns)
    bomb = pa.DictionaryArray.from_arrays(pa.array(np.zeros(4000, dtype=np.int32)), pa.array(["x" * 1_000_000]))
    sink = io.BytesIO()
    parquet.write_table(pa.table({"y": np.arange(4000) % 2, "a": bomb}), sink)  # 4 GB, unless it stays a dictionary
    seeds = [sink.getvalue()]
    for write in (parquet.write_table, feather.write_feather):
        sink = io.BytesIO()
        write(table, sink)
        seeds.append(sink.getvalue())
    sink = io.BytesIO()
    table = table.append_column("w", pa.DictionaryArray.from_arrays([0, 1], pa.array(["u", None])))
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return [*seeds, sink.getvalue()]


def _read_table(data: bytes, folder: Path) -> None:
    place = folder / "table"
    place.write_bytes(data)
    options = _options(
        data, missing=MISSING_RULES, decimal=(None, ".", ","), encoding=("auto", "utf-8", "latin-1"),
        date_order=(None, "dmy", "mdy"), skip_lines=(0, 0, 0, 1), categorical=((), ("a",)),
    )  # fmt: skip
    _use(read_data(place, table=TableOptions(label="y", **options)))


# TREC


def _trec_seeds() -> list[bytes]:
    qrels = b"1 0 d1 1\n1 0 d2 0\n2 0 d1 2\n2 0 d3 -1\n"
    run = b"1 Q0 d1 1 2.5 name\n1 Q0 d2 2 1e-3 name\n2 Q0 d3 1 0 name\n3 Q0 d1 1 1 name\n"
    return [packed({"qrels": qrels, "run": run}), packed({"qrels": gzip.compress(qrels, mtime=0), "run": run})]


def _read_trec(data: bytes, folder: Path) -> None:
    _written(data, folder)
    complete = bool(zlib.crc32(data) & 1)
    join(read_qrels(folder / "qrels"), read_run(folder / "run"), complete=complete)


# models


@cache
def _model_seeds() -> list[bytes]:
    """A file of each kind of model, of one and of several classes, with and without a feature map."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 3)) + (y == 1)[:, None]
    estimators = [
        APSVMClassifier(C=1.0).fit(X, y == 1),
        APSVMClassifier(C=1.0, features="piecewise:2").fit(X, y == 1),
        APSVMClassifier(C=1.0, components=2, random_state=0).fit(X, y == 1),
        WARPRanker(epochs=1).fit(X, y == 1),
    ]
    linear = estimators[0].to_model()
    models = [estimator.to_model() for estimator in estimators]
    labels = [Labels(kind=LabelKind.ONE_LABEL, positive=label) for label in (1.0, 2.0)]
    classes = [LinearRanker(np.ones(3), 0.0, replace(linear.header, labels=one)) for one in labels]
    models.append(RankerSet(classes, linear.header))
    models.append(average_of([linear, estimators[1].to_model()], (1.0, 2.0)))
    return [sealed({"header.npy": text(GOOD), "coef.npy": WEIGHTS}), *(model.to_bytes() for model in models)]


def resealed(data: bytes, chance: random.Random, seeds: Sequence[bytes]) -> bytes:
    """A file with a changed header or array, whose checksums are right; or with a changed byte anywhere."""
    if chance.random() < 0.1:
        return mutated(data, chance, seeds)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = chance.choice(["header.npy", "header.npy", *members])
    if name == "header.npy":
        written = np.lib.format.read_array(io.BytesIO(members[name])).tobytes()
        if chance.random() < 0.3:
            written = mutated(written, chance, [b""])
        else:
            written = json.dumps(_with_another_value(json.loads(written), chance)).encode()
        members[name] = array_bytes(np.frombuffer(written, dtype=np.uint8))
    elif chance.random() < 0.05:
        del members[name]
    elif chance.random() < 0.5:
        members[name] = mutated(members[name], chance, [b""])
    else:
        array = np.lib.format.read_array(io.BytesIO(members[name])).copy()
        if array.size:
            with np.errstate(all="ignore"):
                array.reshape(-1)[chance.randrange(array.size)] = chance.choice((0, 1, 100, 2**30))
        members[name] = array_bytes(chance.choice((array, array[1:], array.astype(np.float32), array[None])))
    return sealed(members)


def _with_another_value(content: object, chance: random.Random) -> object:
    """JSON with one value, at any depth, replaced, left out or put where there is none."""
    values = (None, True, 0, 1, -1, 2**31, 2**63, 1e308, "", "x", "\u202e", [], [1], {}, {"a": 1}, 0.5, "ap", [[]])
    if isinstance(content, dict) and content and chance.random() < 0.9:
        key = chance.choice(list(content))
        if chance.random() < 0.1:
            return {name: value for name, value in content.items() if name != key}
        return {**content, key: _with_another_value(content[key], chance)}
    if isinstance(content, list) and content and chance.random() < 0.8:
        at = chance.randrange(len(content))
        return [*content[:at], _with_another_value(content[at], chance), *content[at + 1 :]]
    return chance.choice(values)


def _read_model(data: bytes, folder: Path) -> None:
    place = folder / "a.model"
    place.write_bytes(data)
    load_any_model(place)


# data folders


@cache
def _folder_seeds() -> list[bytes]:
    import tempfile

    datas = [
        (read_svmlight(io.BytesIO(TEXT)), False),
        (read_svmlight(io.BytesIO(b"1 1:1 2:2\n0 1:3 2:4\n")), True),
        (read_svmlight(io.BytesIO(b"1,2 1:1\n3 2:1\n"), multilabel=True), False),
        (read_svmlight(io.BytesIO(b"1 bag:1 1:1\n0 bag:2 2:1\n")), False),
    ]
    seeds = []
    for data, dense in datas:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "data"
            write_folder(data, place, dense=dense)
            seeds.append(packed({path.name: path.read_bytes() for path in sorted(place.iterdir())}))
    return seeds


def restated(data: bytes, chance: random.Random, seeds: Sequence[bytes]) -> bytes:
    """A folder with a changed member or header, whose checksums are mostly right all the same."""
    files = unpacked(one_file_mutated(data, chance, seeds))
    if chance.random() < 0.1 or HEADER not in files:
        return packed(files)
    try:
        content = json.loads(files[HEADER])
        content["files"] = {name: hashlib.sha256(files[name]).hexdigest() for name in content["files"]}
        files[HEADER] = json.dumps(content).encode()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    return packed(files)


def _read_folder(data: bytes, folder: Path) -> None:
    place = folder / "data"
    place.mkdir()
    _written(data, place)
    _use(open_folder(place, check=bool(zlib.crc32(data) & 1)))


# detections


def _voc_seeds() -> list[bytes]:
    objects = (
        b"<annotation><filename>a.jpg</filename><size><width>10</width><height>20</height></size>\n"
        b"<object><name>dog</name><difficult>0</difficult><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax>"
        b"<ymax>4</ymax></bndbox></object></annotation>\n"
    )
    of_classes = {"detections/comp3_det_test_dog.txt": b"a 0.5 1 2 3 4\n", "detections/det_x_cat.txt": b"a 1 1 1 2 2\n"}
    of_images = {"detections/a.txt": b"dog 0.5 1 2 3 4\n1 1e-3 0 0 1 1\n"}
    truth = {"objects/a.xml": objects, "classes": b"dog\ncat\n"}
    return [packed({**truth, **detections}) for detections in (of_classes, of_images)]


def _coco_seeds() -> list[bytes]:
    objects = {
        "images": [{"id": 1, "width": 10, "height": 20, "file_name": "a.jpg"}, {"id": 2, "width": 5, "height": 5}],
        "categories": [{"id": 3, "name": "dog"}],
        "annotations": [{"image_id": 1, "category_id": 3, "bbox": [1, 2, 3, 4.5], "iscrowd": 0}],
    }
    found = [{"image_id": 1, "category_id": 3, "bbox": [1, 2, 3, 4], "score": 0.5}]
    files = {"objects": objects, "detections": found}
    sound = {name: json.dumps(content).encode() for name, content in files.items()} | {"classes": b"dog\n"}
    return [packed(sound), packed({**sound, "objects": b'{"images":' + b"[" * 50_000 + b"]" * 50_000 + b"}"})]


def _read_detections(data: bytes, folder: Path) -> None:
    _written(data, folder)
    objects = read_objects(str(folder / "objects"))
    read_detections(str(folder / "detections"), objects, str(folder / "classes") if zlib.crc32(data) & 1 else None)


OF_DATA = (DataError, OSError)
TARGETS = {
    "svmlight": Target(_svmlight_seeds, _read_svmlight, OF_DATA),
    "csv": Target(_csv_seeds, _read_table, OF_DATA),
    "json-lines": Target(_json_seeds, _read_table, OF_DATA),
    "arrow": Target(_arrow_seeds, _read_table, OF_DATA),
    "trec": Target(_trec_seeds, _read_trec, OF_DATA, one_file_mutated),
    "model": Target(_model_seeds, _read_model, (ModelError,), resealed),
    "folder": Target(_folder_seeds, _read_folder, OF_DATA, restated),
    "detections-voc": Target(_voc_seeds, _read_detections, OF_DATA, one_file_mutated),
    "detections-coco": Target(_coco_seeds, _read_detections, OF_DATA, one_file_mutated),
}
