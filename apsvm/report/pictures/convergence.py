"""Convergence of a training: bounds and gap, gradient, or estimated loss, against iterations and seconds.

For a structured SVM, the objective and its lower bound are divided by C: values of C are then comparable, and the
requested gap is ε. Stages, values of C and rounds of the tight bound follow each other along the axes; lines break
between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm._support.types import JsonObject
from apsvm.report.pictures.base import Picture, PictureError, as_written_by_train
from apsvm.report.pictures.style import DOTTED, MUTED, few_ticks, legend_below, powers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: More lines than this have no names, and more than this are drawn without their lower bounds.
MOST_NAMED, MOST_WITH_BOUNDS = 12, 4
#: Largest value on an axis: the difference of the axis's ends must be finite.
LARGEST = 1e300
#: Fewer points than this are marked.
MARKED = 25

_OBJECTIVE, _DUAL, _GAP = "objective / C", "dual", "duality gap / C"
_VALUE, _GRADIENT = "objective", "gradient's largest entry"
_LOSS, _VALIDATION = "estimated loss", "validation"
#: Panels with a logarithmic axis, and the log's event and field of the requested value.
_REQUESTED = {_GAP: ("start", "epsilon"), _GRADIENT: ("end", "asked")}


@dataclass(frozen=True, slots=True)
class Line:
    """A curve.

    Attributes
    ----------
    name : name in the legend, if not empty
    series : number of its colour
    dashed : True for a lower bound
    points : (n, 3) float64, steps, seconds and value; the value is NaN where the line breaks
    """

    name: str
    series: int
    dashed: bool
    points: NDArray[np.float64]


@dataclass(frozen=True)
class Convergence(Picture):
    """Panels, drawn twice: against steps and against seconds.

    Attributes
    ----------
    panels : label of the values' axis → lines
    requested : label → the requested value, if all logs share it
    """

    panels: Mapping[str, Sequence[Line]]
    requested: Mapping[str, float]

    @classmethod
    def of_logs(cls, logs: Mapping[str, Sequence[JsonObject]]) -> Convergence:
        """From logs of ``apsvm train``, by name, of one kind of training.

        Raises
        ------
        PictureError : no iteration in one, or logs of different kinds
        """
        runs: dict[str, list[_Point]] = {}
        with as_written_by_train():
            for run, records in logs.items():
                for label, points in _by_class(run, records).items():
                    names = (run if len(logs) > 1 else "", "" if label is None else f"class {label:g}")
                    runs[", ".join(filter(None, names))] = points
            requested = dict(_requested(logs))
        panels: dict[str, list[Line]] = {}
        first = {next((key for _, _, values in points for key in values), _OBJECTIVE) for points in runs.values()}
        if len(first) > 1:
            raise PictureError(f"logs of different kinds of training ({', '.join(sorted(first))}): draw them apart")
        for series, (name, points) in enumerate(runs.items()):
            for key in dict.fromkeys(key for _, _, values in points for key in values):
                is_dual = key == _DUAL
                line = np.array([(steps, seconds, values.get(key, np.nan)) for steps, seconds, values in points])
                if np.isnan(line[:, 2]).all() or (is_dual and len(runs) > MOST_WITH_BOUNDS):
                    continue
                alone = {_OBJECTIVE: "primal", _DUAL: "dual"}.get(key, "")
                named = alone if len(runs) == 1 else "" if is_dual or len(runs) > MOST_NAMED else name
                panels.setdefault(_OBJECTIVE if is_dual else key, []).append(Line(named, series, is_dual, line))
        if not panels:
            raise PictureError("no iteration has a value to draw")
        return cls(panels, requested)

    def height(self, width: float) -> float:
        return 2.35 * len(self.panels) + 0.5

    def draw(self, figure: Figure, width: float) -> None:
        every = figure.subplots(len(self.panels), 2, squeeze=False)
        for label, row in zip(self.panels, every, strict=True):
            for against, axes in enumerate(row):
                self._draw(label, axes, against)
        legend_below(figure, width, *every.flat)

    def _draw(self, label: str, axes: Axes, against: int) -> None:
        for line in self.panels[label]:
            points = np.clip(line.points, -LARGEST, LARGEST)
            marker = "o" if len(points) < MARKED else ""
            (drawn,) = axes.plot(points[:, against], points[:, 2], marker=marker, markersize=2.2, label=line.name)
            drawn.set_color(f"C{line.series}")
            if line.dashed:
                drawn.set_linestyle((0, (3, 2)))
        if any(line.dashed and not line.name for line in self.panels[label]):
            axes.plot([], [], color=MUTED, linestyle=(0, (3, 2)), label="dual")
        if label in self.requested:
            axes.axhline(self.requested[label], color=MUTED, linewidth=0.9, linestyle=DOTTED, label="requested")
        few_ticks(axes.xaxis, whole=not against)
        if label in _REQUESTED:
            axes.set_yscale("log")
            powers(axes.yaxis)
        axes.set_xlabel("seconds" if against else "epoch" if _LOSS in self.panels else "iteration")
        axes.set_ylabel(label)


#: Total steps, total seconds, and values by panel; no values between two stages.
_Point = tuple[float, float, Mapping[str, float]]


def _by_class(run: str, records: Sequence[JsonObject]) -> dict[float | None, list[_Point]]:
    """The points of each class of a log, by its label."""
    classes: dict[float | None, list[tuple[JsonObject, Mapping[str, float]]]] = {}
    for record in records:
        values = _values(record)
        if values is not None:
            classes.setdefault(record.get("class"), []).append((record, values))
    if not classes:
        raise PictureError(f"{run}: no iteration in it")
    labels = sorted(classes, key=lambda label: (label is not None, label))
    return {label: list(_points(classes[label])) for label in labels}


def _values(record: JsonObject) -> Mapping[str, float] | None:
    """Values that a record adds to the panels; None for records without any. Empty for the majorants within a round of
    the tight bound: their constants differ."""
    match record["event"]:
        case "epoch":
            validation = record["validation"]
            return {_LOSS: record["loss"], **({} if validation is None else {_VALIDATION: validation})}
        case "iteration" if "gradient_norm" in record:
            value = record["value"]
            return {_VALUE: np.nan if value is None else value, _GRADIENT: record["gradient_norm"] or np.nan}
        case "iteration" if "primal" in record:
            return {} if record["stage"] == "tight" else _bounds(record, record["primal"])
        case "step":
            return {_OBJECTIVE: record["objective"] / record["C"]}
        case "round":
            return _bounds(record, record["objective"])
    return None


def _bounds(record: JsonObject, primal: float) -> Mapping[str, float]:
    C, gap = record["C"], record["gap"]
    return {_OBJECTIVE: primal / C, _DUAL: record["dual"] / C, _GAP: gap / C if gap > 0.0 else np.nan}


def _points(records: Sequence[tuple[JsonObject, Mapping[str, float]]]) -> Iterator[_Point]:
    """Points of one class; steps and seconds accumulate when the iterations restart."""
    before, here, stage = (0.0, 0.0), (0.0, 0.0), None
    for record, values in records:
        event = record["event"]
        if event != "round":  # a round ends its iterations
            number = record[event]
            this = (event, record.get("start"), record.get("stage"), record.get("C"))
            if this != stage or number <= here[0]:
                before, here = (before[0] + here[0], before[1] + here[1]), (0.0, 0.0)
                if stage is not None and values:
                    yield (*before, {})
            here, stage = (number, record["seconds"]), this
        if values:
            yield (before[0] + here[0], before[1] + here[1], values)


def _requested(logs: Mapping[str, Sequence[JsonObject]]) -> Iterator[tuple[str, float]]:
    """Panels and their requested values, if all logs share one above 0."""
    every = [record for records in logs.values() for record in records]
    for label, (event, name) in _REQUESTED.items():
        values = {record[name] for record in every if record["event"] == event and name in record}
        if len(values) == 1 and (value := values.pop()):
            yield label, value
