"""``apsvm export --format onnx``: a graph of ONNX in float64, for onnxruntime and similar programs.

    X (N, width) float64 → score (N,) or (N, classes) float64, label (N,) int64, probability as score

The inputs of a model of a table are its columns by name, (N, 1) each: numbers as float64, NaN if missing; words as
strings, "" if missing; dates as int64 seconds from 1970, the smallest int64 if missing.

A model with a threshold has ``label``, 1 for scores above it. With several classes, ``label`` is the number, from 0, of
the class whose score is highest above its threshold. A calibrated model has ``probability``. The runtime sums in
float64: results agree with ``apsvm predict`` up to rounding.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from apsvm.cli.output.lists import names_of_two, thresholds
from apsvm.cli.shared import BAD_DATA, MISSING, Failure
from apsvm.data.features.joined import Joined
from apsvm.data.features.linear import Linear
from apsvm.data.tables.dates import DECIMALS, YEAR
from apsvm.models.columns import Column, ColumnKind, DatePart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import onnx

    from apsvm._support.types import AnyArray
    from apsvm.data.features.base import FeatureMap
    from apsvm.models.base import Model, Ranker
    from apsvm.models.header import Calibration

#: Versions of ONNX's operators (January 2022) and of files, which most runtimes read.
OPSET, IR = 17, 8
#: Domain and version of the operator that maps words to numbers.
_WORDS, OPSET_OF_WORDS = "ai.onnx.ml", 2
#: A missing date: NumPy's NaT.
_NO_DATE = np.iinfo(np.int64).min


def onnx_bytes(model: Model, name: str) -> bytes:
    """The ONNX file of ``model``, read from the file ``name``. Ends the command if the model has no graph or the
    package is missing."""
    try:
        import onnx
    except ImportError:
        raise Failure(MISSING, "--format onnx needs the package onnx: pip install 'apsvm[onnx]'") from None
    rankers = model.rankers()
    if model.lists_items or not rankers[0].linear_parts():
        raise Failure(BAD_DATA, f"{name}: {model.description} cannot be exported to ONNX")
    features = model.header.features
    columns = features.columns if features.pool is None else None
    graph = _Graph()
    info, double = onnx.helper.make_tensor_value_info, onnx.TensorProto.DOUBLE
    inputs = [info(graph.rows, double, ["N", model.width])]
    if columns is not None:
        types = {ColumnKind.NUMBER: double, ColumnKind.CATEGORY: onnx.TensorProto.STRING}
        inputs = [
            info(_input(column), types.get(column.kind, onnx.TensorProto.INT64), ["N", 1])
            for column in columns.features
        ]
        graph.rows = graph("Concat", *(_ENCODED[column.kind](graph, column) for column in columns.features), axis=1)
    outputs = _outputs(graph, rankers, several=model.has_classes, name=name)
    results = [info(name, onnx.TensorProto.INT64 if name == "label" else double, shape) for name, shape in outputs]
    whole = onnx.helper.make_graph(graph.nodes, "apsvm", inputs, results, graph.constants)
    versions = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid(_WORDS, OPSET_OF_WORDS)]
    result = onnx.helper.make_model(whole, producer_name="apsvm", ir_version=IR, opset_imports=versions)
    classes = model.classes.tolist() if model.has_classes else ()
    names = [model.header.shown_label(label) for label in classes] or names_of_two(model.header)
    onnx.helper.set_model_props(result, {"classes": json.dumps(names, ensure_ascii=False)})
    onnx.checker.check_model(result)
    content: bytes = result.SerializeToString(deterministic=True)
    return content


class _Graph:
    """Nodes and constants of the graph. Values have names; ``rows`` names the features (N, width)."""

    def __init__(self) -> None:
        self.rows = "X"
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def __call__(self, operator: str, *inputs: str | AnyArray | float, output: str = "", **attributes: object) -> str:
        """Adds an operator of ONNX and returns the name of its result; arrays and numbers become constants."""
        import onnx

        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        if operator == "LabelEncoder":
            attributes["domain"] = _WORDS
        output = output or f"/v{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(operator, names, [output], **attributes))
        return output

    def cast(self, values: str, kind: str = "DOUBLE", output: str = "") -> str:
        """Converts values to double, or to another type of ONNX."""
        import onnx

        return self("Cast", values, to=getattr(onnx.TensorProto, kind), output=output)

    def constant(self, value: AnyArray | float) -> str:
        """Adds a constant, integers as int64 and others as float64, and returns its name."""
        import onnx

        array = np.asarray(value)
        array = array.astype(np.int64 if array.dtype.kind in "iu" else np.float64)
        name = f"/c{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
        return name


def _outputs(
    graph: _Graph, rankers: Sequence[Ranker], *, several: bool, name: str
) -> list[tuple[str, list[str | int]]]:
    """Builds the graph; returns the outputs and their shapes."""
    first = rankers[0]
    columns = _mapped(graph, first.feature_map, name)
    if first.unit_rows:
        # Dividing by the largest value first keeps squares finite and above 0; a row of zeros may have any length.
        least = np.finfo(np.float64).tiny
        largest = graph("ReduceMax", graph("Abs", columns), axes=[1], keepdims=1)
        columns = graph("Div", columns, graph("Max", largest, least))
        squares = graph("ReduceSumSquare", columns, axes=[1], keepdims=1)
        columns = graph("Div", columns, graph("Max", graph("Sqrt", squares), least))
    each = [_score(graph, ranker, columns) for ranker in rankers]
    shape: list[str | int] = ["N", len(each)] if several else ["N"]

    def joined(values: list[str], output: str) -> str:
        """Joins columns (N,) to (N, k); without several classes, returns the only one."""
        if not several:
            return graph("Identity", values[0], output=output)
        axis = np.array([1])
        return graph("Concat", *(graph("Unsqueeze", column, axis) for column in values), output=output, axis=1)

    score, outputs = joined(each, "score"), [("score", shape)]
    if several:
        above = graph("Sub", score, thresholds([ranker.header for ranker in rankers]))
        graph("ArgMax", above, output="label", axis=1, keepdims=0)
    elif first.header.threshold is not None:
        graph.cast(graph("Greater", score, first.header.threshold.value), "INT64", output="label")
    if several or first.header.threshold is not None:
        outputs.append(("label", ["N"]))
    calibrations = [ranker.header.calibration for ranker in rankers]
    if all(calibrations):
        pairs = zip(calibrations, each, strict=True)
        probabilities = [_probability(graph, method, scores) for method, scores in pairs if method is not None]
        joined(probabilities, "probability")
        outputs.append(("probability", shape))
    return outputs


def _score(graph: _Graph, ranker: Ranker, columns: str) -> str:
    """(N,) scores of the columns (N, k): the highest of the ranker's linear parts."""
    parts = ranker.linear_parts()
    products = graph("MatMul", columns, np.stack([part.coef for part in parts], axis=1))
    each = graph("Add", products, np.array([part.intercept for part in parts]))
    return graph("ReduceMax", each, axes=[1], keepdims=0)


def _probability(graph: _Graph, calibration: Calibration, score: str) -> str:
    """(N,) probabilities of scores (N,)."""
    if calibration.method == "platt":
        assert calibration.slope is not None
        assert calibration.offset is not None
        sigmoid = graph("Sigmoid", graph("Add", graph("Mul", score, calibration.slope), calibration.offset))
        return graph("Min", graph("Max", sigmoid, calibration.lower), calibration.upper)
    corners, values = np.array(calibration.scores), np.array(calibration.probabilities)
    if corners.size == 1:
        return graph("Add", graph("Mul", score, 0.0), float(values[0]))
    # Sum over the segments between corners, each up to the score.
    lengths = np.diff(corners)
    covered = graph("Sub", graph("Unsqueeze", score, np.array([1])), corners[:-1])
    covered = graph("Min", graph("Max", covered, 0.0), lengths)
    slopes = np.divide(np.diff(values), lengths)
    increased = graph("Add", graph("MatMul", covered, slopes), float(values[0]))
    return graph("Min", increased, float(values[-1]))  # rounding may exceed the last value


def _input(column: Column) -> str:
    """Name of the input for a column: the column's, unless an output has that name."""
    return f"{column.name} of the row" if column.name in ("score", "label", "probability") else column.name


def _of_numbers(graph: _Graph, column: Column) -> str:
    cells = _input(column)
    is_missing = graph("IsNaN", cells)
    values = cells if column.fill is None else graph("Where", is_missing, column.fill, cells)
    return graph("Concat", values, graph.cast(is_missing), axis=1) if column.missing else values


def _of_words(graph: _Graph, column: Column) -> str:
    n = len(column.categories)
    other, missing = n, n + 1
    number = graph(
        "LabelEncoder",
        _input(column),
        keys_strings=[*column.categories, ""],
        values_int64s=[*range(n), missing],
        default_int64=other,
    )
    numbers = [*range(n), *([other] if column.other else []), *([missing] if column.missing else [])]
    return graph.cast(graph("Equal", number, np.array([numbers], dtype=np.int64)))


def _of_dates(graph: _Graph, column: Column) -> str:
    is_missing = graph("Equal", _input(column), np.array(_NO_DATE))
    seconds = graph.cast(_input(column))
    day, of_day = _divided(graph, seconds, 86400.0)
    hour, of_hour = _divided(graph, of_day, 3600.0)
    minute, second = _divided(graph, of_hour, 60.0)
    # Summed in the order of ``days_of``, for equal bits.
    hours = graph("Add", graph("Add", hour, graph("Div", minute, 60.0)), graph("Div", second, 3600.0))
    days = graph("Add", day, graph("Div", hours, 24.0))
    parts = [values for part in column.parts for values in _of_date(graph, part, days, column.newest)]
    fills = [np.nan if column.fill is None else column.fill, *[0.0] * (len(parts) - 1)]
    filled = [graph("Where", is_missing, fill, values) for fill, values in zip(fills, parts, strict=True)]
    return graph("Concat", *filled, *([graph.cast(is_missing)] if column.missing else []), axis=1)


def _divided(graph: _Graph, seconds: str, unit: float) -> tuple[str, str]:
    """Number of whole units, and the remainder."""
    whole = graph("Floor", graph("Div", seconds, unit))
    return whole, graph("Sub", seconds, graph("Mul", whole, unit))


def _of_date(graph: _Graph, part: DatePart, days: str, newest: float) -> list[str]:
    """(N, 1) each, the features of ``tables.dates``, in their order."""
    if part is DatePart.AGE:
        return [graph("Sub", newest, days)]
    if part is DatePart.WEEKDAY:
        _, weekday = _divided(graph, graph("Add", graph("Floor", days), 3.0), 7.0)
        return [graph.cast(graph("Equal", weekday, float(number))) for number in range(7)]
    turns = graph("Div", days, YEAR if part is DatePart.YEAR else 1.0)
    angle = graph("Mul", graph("Sub", turns, graph("Floor", turns)), 2.0 * np.pi)
    # Cosine from a sine: ONNX Runtime 1.16 has no Cos for doubles.
    waves = [graph("Sin", angle) for angle in (angle, graph("Add", angle, 0.5 * np.pi))]
    return [graph("Div", graph("Round", graph("Mul", wave, 10.0**DECIMALS)), 10.0**DECIMALS) for wave in waves]


#: The features (N, k) of the input (N, 1), by the kind of column.
_ENCODED: dict[ColumnKind, Callable[[_Graph, Column], str]] = {
    ColumnKind.NUMBER: _of_numbers,
    ColumnKind.CATEGORY: _of_words,
    ColumnKind.DATE: _of_dates,
}


def _mapped(graph: _Graph, feature_map: FeatureMap | None, name: str) -> str:
    """(N, columns) outputs of the feature map on X."""
    if feature_map is None or isinstance(feature_map, Linear):
        return graph.rows
    if isinstance(feature_map, Joined):
        return graph("Concat", *(_mapped(graph, part, name) for part in feature_map.maps), axis=1)
    kind = feature_map.name.partition(":")[0]
    if kind not in _MAPS:
        names = ", ".join(["linear", *_MAPS])
        text = f"--features {feature_map.name} cannot be exported to ONNX, only {names}: use --format json"
        raise Failure(BAD_DATA, f"{name}: {text}")
    return _MAPS[kind](graph, feature_map.arrays())


def _piecewise(graph: _Graph, arrays: dict[str, AnyArray]) -> str:
    knots, starts = arrays["knots"], arrays["starts"]
    if not knots.size:
        return graph.rows
    of_knot = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    hinges = graph("Sub", graph("Gather", graph.rows, of_knot, axis=1), knots)
    hinges = graph("Max", hinges, np.where(knots < 0, -np.inf, 0.0))
    hinges = graph("Min", hinges, np.where(knots < 0, 0.0, np.inf))
    return graph("Concat", graph.rows, hinges, axis=1)


def _logarithms(graph: _Graph, arrays: dict[str, AnyArray]) -> str:
    origins, units = arrays["origins"], arrays["units"]
    z = graph("Div", graph("Sub", graph("Gather", graph.rows, arrays["tailed"], axis=1), origins), units)
    logarithms = graph("Mul", graph("Sign", z), graph("Log", graph("Add", graph("Abs", z), 1.0)))
    at_zero = np.sign(-origins / units) * np.log1p(np.abs(origins / units))
    return graph("Concat", graph.rows, graph("Sub", logarithms, at_zero), axis=1)


def _rules(graph: _Graph, arrays: dict[str, AnyArray]) -> str:
    from apsvm.data.features.rules import bounds

    mapped = graph("Div", _piecewise(graph, arrays), arrays["divisors"])
    low, high, of_bound = bounds(arrays["features"], arrays["thresholds"], arrays["kept"])
    if not len(low):
        return mapped
    values = graph("Gather", graph.rows, np.maximum(of_bound, 0).ravel(), axis=1)
    values = graph("Reshape", values, np.array([0, *low.shape]))
    outside = graph("Or", graph("LessOrEqual", values, low), graph("Greater", values, high))
    # A leaf's column is 1 where no bound is broken.
    broken = graph("ReduceMax", graph.cast(outside), axes=[2], keepdims=0)
    leaves = graph("Sub", 1.0, broken)
    return graph("Concat", mapped, leaves, graph("MatMul", leaves, arrays["sums"]), axis=1)


def _standardised(graph: _Graph, arrays: dict[str, AnyArray]) -> str:
    return graph("Div", graph("Sub", graph.rows, arrays["centre"]), arrays["deviation"])


def _products(graph: _Graph, arrays: dict[str, AnyArray]) -> str:
    z = _standardised(graph, arrays)
    first, second = np.triu_indices(arrays["centre"].size)
    products = graph("Mul", graph("Gather", z, first, axis=1), graph("Gather", z, second, axis=1))
    return graph("Concat", z, products, axis=1)


def _nystroem(graph: _Graph, arrays: dict[str, AnyArray]) -> str:
    z, landmarks = _standardised(graph, arrays), arrays["landmarks"]
    squares = graph("ReduceSumSquare", z, axes=[1], keepdims=1)
    squares = graph("Add", squares, np.einsum("ij,ij->i", landmarks, landmarks))
    distances = graph("Max", graph("Sub", squares, graph("MatMul", z, 2.0 * landmarks.T)), 0.0)
    kernel = graph("Exp", graph("Mul", distances, -float(arrays["gamma"][0])))
    return graph("MatMul", kernel, arrays["normalisation"].T)


_MAPS: dict[str, Callable[[_Graph, dict[str, AnyArray]], str]] = {
    "logarithms": _logarithms,
    "piecewise": _piecewise,
    "rules": _rules,
    "products": _products,
    "nystroem": _nystroem,
}
