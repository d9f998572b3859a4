"""Convergence of a training: bounds and gap, gradient, or estimated loss, against iterations and seconds.

For a structured SVM, the objective and its lower bound are divided by C: values of C are then comparable, and the
requested gap is ε. Stages, values of C and rounds of the tight bound follow each other along the axes; lines break
between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from apsvm._support.types import JsonObject
from apsvm.report.pictures.base import Picture, PictureError, as_written_by_train
from apsvm.report.pictures.style import MUTED, Size, colour, dash, few_ticks, legend_below, powers, whole_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Record = JsonObject
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
_ASKED = {_GAP: ("start", "epsilon"), _GRADIENT: ("end", "asked")}


@dataclass(slots=True)
class Line:
    """``values`` after this many ``steps`` and ``seconds``, NaN if there is none; ``series`` numbers its colour;
    ``dashed`` marks a lower bound."""

    name: str
    series: int = 0
    dashed: bool = False
    steps: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Panel:
    """label : label of the values' axis; level : the requested value, if any"""

    label: str
    lines: Sequence[Line]
    level: float | None = None


@dataclass(frozen=True)
class Convergence(Picture):
    """panels : each is drawn twice, against steps and against seconds; step : unit of the steps"""

    panels: Sequence[Panel]
    step: str = "iteration"

    @classmethod
    def of_logs(cls, logs: Mapping[str, Sequence[Record]]) -> Convergence:
        """From logs of ``apsvm train``, by name, of one kind of training.

        Raises
        ------
        PictureError : no iteration in one, or logs of different kinds
        """
        runs: list[tuple[str, Sequence[_Point]]] = []
        with as_written_by_train():
            for run, records in logs.items():
                for label, points in _by_class(run, records).items():
                    names = (run if len(logs) > 1 else "", "" if label is None else f"class {label:g}")
                    runs.append((", ".join(filter(None, names)), points))
        lines: dict[str, list[Line]] = {}
        for series, (name, points) in enumerate(runs):
            if _kind(points) != _kind(runs[0][1]):
                raise PictureError(f"{name} is of another kind of training than {runs[0][0]}: draw them apart")
            for key in dict.fromkeys(key for _, _, values in points for key in values):
                is_dual = key == _DUAL
                alone = {_OBJECTIVE: "primal", _DUAL: "dual"}.get(key, "")
                line = Line(alone if len(runs) == 1 else "" if is_dual else name, series, is_dual)
                for steps, seconds, values in points:
                    line.steps.append(steps)
                    line.seconds.append(seconds)
                    line.values.append(values.get(key, np.nan))
                if not np.isnan(line.values).all() and not (is_dual and len(runs) > MOST_WITH_BOUNDS):
                    lines.setdefault(_OBJECTIVE if is_dual else key, []).append(line)
        panels = [Panel(label, several, _level(label, logs)) for label, several in lines.items()]
        return cls(panels, "epoch" if _LOSS in lines else "iteration")

    def height(self, size: Size) -> float:
        return 2.35 * len(self.panels) + 0.5

    def draw(self, figure: Figure, size: Size) -> None:
        drawn = []
        for at, panel in enumerate(self.panels):
            for against in (0, 1):
                axes = figure.add_subplot(len(self.panels), 2, 2 * at + against + 1)
                self._draw(panel, axes, against)
                drawn.append(axes)
        legend_below(figure, size, *drawn)

    def _draw(self, panel: Panel, axes: Axes, against: int) -> None:
        named = len({line.name for line in panel.lines}) <= MOST_NAMED
        for line in panel.lines:
            axes.plot(
                np.clip(line.seconds if against else line.steps, 0.0, LARGEST),
                np.clip(line.values, -LARGEST, LARGEST),
                marker="o" if len(line.values) < MARKED else "",
                markersize=2.2,
                label=line.name if named else "",
                linestyle=(0, (3, 2)) if line.dashed else dash(line.series),
                color=colour(line.series),
            )
        if any(line.dashed and not line.name for line in panel.lines):
            axes.plot([], [], color=MUTED, linestyle=(0, (3, 2)), label="dual")
        if panel.level:
            axes.axhline(panel.level, color=MUTED, linewidth=0.9, linestyle=(0, (1, 2)), label="asked for")
        if panel.label in _ASKED:
            axes.set_yscale("log")
            powers(axes.yaxis)
        axes.set_xlabel("seconds" if against else self.step)
        (few_ticks if against else whole_numbers)(axes.xaxis)
        axes.set_ylabel(panel.label)


#: Total steps, total seconds, and values by panel; no values between two stages.
_Point = tuple[float, float, Mapping[str, float]]


def _by_class(run: str, records: Sequence[Record]) -> dict[float | None, Sequence[_Point]]:
    """The points of each class of a log, by its label."""
    classes: dict[float | None, list[tuple[Record, Mapping[str, float]]]] = {}
    for record in records:
        values = _values(record)
        if values is not None:
            classes.setdefault(record.get("class"), []).append((record, values))
    if not classes:
        raise PictureError(f"{run}: no iteration in it")
    labels = sorted(classes, key=lambda label: (label is not None, label))
    return {label: list(_points(classes[label])) for label in labels}


def _kind(points: Sequence[_Point]) -> str:
    """The first panel of a training."""
    return next((key for _, _, values in points for key in values), _OBJECTIVE)


def _values(record: Record) -> Mapping[str, float] | None:
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


def _bounds(record: Record, primal: float) -> Mapping[str, float]:
    C, gap = record["C"], record["gap"]
    return {_OBJECTIVE: primal / C, _DUAL: record["dual"] / C, _GAP: gap / C if gap > 0.0 else np.nan}


def _points(records: Sequence[tuple[Record, Mapping[str, float]]]) -> Iterator[_Point]:
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


def _level(label: str, logs: Mapping[str, Sequence[Record]]) -> float | None:
    """The requested value, if all logs share it."""
    event, name = _ASKED.get(label, ("", ""))
    asked = {
        record[name] for records in logs.values() for record in records if record["event"] == event and name in record
    }
    return asked.pop() if len(asked) == 1 else None
