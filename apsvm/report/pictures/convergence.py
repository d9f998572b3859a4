"""How a training went: bounds, gap, gradient or estimated loss, against iterations and against seconds.

The structured SVM's log gives the primal and dual objective and their gap; stages, values of C and the rounds of the
tight bound follow each other along the axes. RankNCG's gives the objective and the gradient's largest entry, WARP's the
estimated loss of each epoch and the validation metric. Where values of C differ, objectives are divided by C, so that
they are in units of the loss and the gap asked for is ε.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
#: More lines than this have no names.
MOST_NAMED = 12
#: More lines than this are drawn without their lower bounds.
MOST_WITH_BOUNDS = 4
#: An axis holds no more: its ends must have a difference.
LARGEST = 1e300
#: Fewer points than this are marked.
MARKED = 25


@dataclass(frozen=True, slots=True)
class Line:
    """``values`` after this many ``steps`` and ``seconds``, NaN where there is none; ``series`` is its colour's number;
    ``dashed`` : a lower bound"""

    name: str
    steps: Sequence[float]
    seconds: Sequence[float]
    values: Sequence[float]
    series: int = 0
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """label : of the values' axis; logarithmic : that axis; level : the value asked for, if there is one"""

    label: str
    lines: Sequence[Line]
    logarithmic: bool = False
    level: float | None = None


@dataclass(frozen=True)
class Convergence(Picture):
    """panels : each is drawn twice, against steps and against seconds; step : what steps count"""

    panels: Sequence[Panel]
    step: str = "iteration"

    @classmethod
    def of_logs(cls, logs: Mapping[str, Sequence[Record]]) -> Convergence:
        """From logs of ``apsvm train``, by name, of one kind of training.

        Raises
        ------
        PictureError : no iteration in one, or logs of different kinds
        """
        kinds = {name: _kind(name, records) for name, records in logs.items()}
        first = next(iter(kinds.values()))
        for name, kind in kinds.items():
            if kind != first:
                raise PictureError(f"{name} is of another kind of training than {next(iter(kinds))}: draw them apart")
        with as_written_by_train():
            panels, step = first(logs)
        return cls(panels, step)

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
            x = line.seconds if against else line.steps
            marker = "o" if len(x) < MARKED else None
            style = (0, (3, 2)) if line.dashed else dash(line.series)
            label = line.name if named else ""
            values = np.clip(line.values, -LARGEST, LARGEST)
            axes.plot(
                np.clip(x, 0.0, LARGEST),
                values,
                marker=marker,
                markersize=2.2,
                label=label,
                linestyle=style,
                color=colour(line.series),
            )
        if any(line.dashed and not line.name for line in panel.lines):
            axes.plot([], [], color=MUTED, linestyle=(0, (3, 2)), label="dual")
        if panel.level is not None and panel.level > 0:
            axes.axhline(panel.level, color=MUTED, linewidth=0.9, linestyle=(0, (1, 2)), label="asked for")
        if panel.logarithmic:
            axes.set_yscale("log")
            powers(axes.yaxis)
        if against:
            axes.set_xlabel("seconds")
            axes.set_xlim(left=0)
            few_ticks(axes.xaxis)
        else:
            axes.set_xlabel(self.step)
            whole_numbers(axes.xaxis)
        axes.set_ylabel(panel.label)


@dataclass(slots=True)
class _Stretch:
    """One run of the cutting-plane solver, or of the tight bound one descent, which has no bounds from below, or its
    rounds. label : the class"""

    run: str
    label: float | None
    stage: str
    C: float
    steps: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    primal: list[float] = field(default_factory=list)
    dual: list[float] = field(default_factory=list)
    gap: list[float] = field(default_factory=list)

    def add(self, step: float, seconds: float, primal: float, dual: float = np.nan, gap: float = np.nan) -> None:
        self.steps.append(step)
        self.seconds.append(seconds)
        self.primal.append(primal)
        self.dual.append(dual)
        self.gap.append(gap)


#: What is drawn of logs, and what their steps are called.
_Kind = Callable[[Mapping[str, Sequence[Record]]], tuple[list[Panel], str]]


def _kind(name: str, records: Sequence[Record]) -> _Kind:
    for record in records:
        if record["event"] == "epoch":
            return _of_epochs
        if record["event"] == "iteration" and "primal" in record:
            return _of_bounds
        if record["event"] == "iteration" and "gradient_norm" in record:
            return _of_gradients
    raise PictureError(f"{name}: no iteration in it")


def _by_class(logs: Mapping[str, Sequence[Record]], event: str) -> list[tuple[str, list[Record]]]:
    """The records of an event, of each log and each class in it, by what tells them apart."""
    runs: dict[tuple[str, float | None], list[Record]] = {}
    for run, records in logs.items():
        for record in records:
            if record["event"] == event:
                runs.setdefault((run, record.get("class")), []).append(record)
    several = len(logs) > 1
    return [(_run_and_class(run if several else "", label), records) for (run, label), records in runs.items()]


def _run_and_class(run: str, label: float | None) -> str:
    return ", ".join(part for part in (run, "" if label is None else f"class {label:g}") if part)


def _of_bounds(logs: Mapping[str, Sequence[Record]]) -> tuple[list[Panel], str]:
    segments = [segment for run, records in logs.items() for segment in _segments(run, records)]
    several_C = len({segment.C for segment in segments}) > 1
    one_class = len({segment.label for segment in segments}) == 1
    differs: dict[str, bool] = {
        "run": len(logs) > 1,
        "label": not one_class,
        "stage": len({segment.stage for segment in segments}) > 1,
        "C": several_C and one_class,
    }
    names = list(dict.fromkeys(_name(segment, differs) for segment in segments))
    bounds: list[Line] = []
    gaps: list[Line] = []
    for segment in segments:
        unit = segment.C if several_C else 1.0
        name = _name(segment, differs)
        series = names.index(name)
        primal, dual = ("primal", "dual") if len(names) == 1 else (name, "")
        steps, seconds = segment.steps, segment.seconds
        bounds.append(Line(primal, steps, seconds, _over(segment.primal, unit), series))
        if np.isnan(segment.gap).all():
            continue
        if len(names) <= MOST_WITH_BOUNDS:
            bounds.append(Line(dual, steps, seconds, _over(segment.dual, unit), series, dashed=True))
        gap = [value if value > 0 else np.nan for value in _over(segment.gap, unit)]
        gaps.append(Line("" if len(names) == 1 else name, steps, seconds, gap, series))
    unit_name = " / C" if several_C else ""
    return [
        Panel(f"objective{unit_name}", bounds),
        Panel(f"duality gap{unit_name}", gaps, logarithmic=True, level=_level(logs, several_C)),
    ], "iteration"


def _over(values: Sequence[float], unit: float) -> list[float]:
    return [value / unit for value in values]


def _name(segment: _Stretch, is_shown: Mapping[str, bool]) -> str:
    parts = [
        segment.run if is_shown["run"] else "",
        f"class {segment.label:g}" if is_shown["label"] and segment.label is not None else "",
        segment.stage if is_shown["stage"] else "",
        f"C = {segment.C:.4g}" if is_shown["C"] else "",
    ]
    return ", ".join(part for part in parts if part)


def _level(logs: Mapping[str, Sequence[Record]], scaled: bool) -> float | None:
    """The gap asked for, if it is one."""
    result = set()
    for records in logs.values():
        for record in records:
            if record["event"] == "start" and "epsilon" in record:
                C = record["C"]
                result.add(record["epsilon"] * (1.0 if scaled or isinstance(C, list) else C))
    return result.pop() if len(result) == 1 else None


def _segments(run: str, records: Sequence[Record]) -> list[_Stretch]:
    """Cut where the iterations count anew; steps and seconds run on from segment to segment of a class."""
    classes: dict[float | None, _Track] = {}
    for record in records:
        label = record.get("class")
        if record["event"] in ("iteration", "step", "round"):
            classes.setdefault(label, _Track(run, label)).add(record)
    ordered = sorted(classes.items(), key=lambda item: (item[0] is not None, item[0]))
    return [segment for _, track in ordered for segment in track.segments]


class _Track:
    """The segments of one class."""

    def __init__(self, run: str, label: float | None) -> None:
        self.segments: list[_Stretch] = []
        self._run = run
        self._label = label
        self._before = (0.0, 0.0)  # steps and seconds of the runs before
        self._here = (0.0, 0.0)
        self._key: tuple[str, float] | None = None

    def add(self, record: Record) -> None:
        event, C = record["event"], record["C"]
        if event == "round":
            # Of the objective itself; the majorants that a round minimises have constants of their own.
            if record["round"] == 1:
                self.segments.append(_Stretch(self._run, self._label, "tight, rounds", C))
            self.segments[-1].add(*self._place, record["objective"], record["dual"], record["gap"])
            return
        is_step = event == "step"
        number = record["step" if is_step else "iteration"]
        key = (record["start"] if is_step else record["stage"], C)
        is_round = record["stage"] == "tight" and not is_step
        if key != self._key or number <= self._here[0]:
            self._before, self._here, self._key = self._place, (0.0, 0.0), key
            if not is_round:
                self.segments.append(_Stretch(self._run, self._label, *key))
        self._here = (number, record["seconds"])
        if is_step:
            self.segments[-1].add(*self._place, record["objective"])
        elif not is_round:
            self.segments[-1].add(*self._place, record["primal"], record["dual"], record["gap"])

    @property
    def _place(self) -> tuple[float, float]:
        """Steps and seconds in all."""
        return self._before[0] + self._here[0], self._before[1] + self._here[1]


def _of_gradients(logs: Mapping[str, Sequence[Record]]) -> tuple[list[Panel], str]:
    objective: list[Line] = []
    gradient: list[Line] = []
    levels = set()
    for at, (run, records) in enumerate(logs.items()):
        iterations = [record for record in records if record["event"] == "iteration"]
        levels |= {record["asked"] for record in records if record["event"] == "end" and "asked" in record}
        steps = [record["iteration"] for record in iterations]
        seconds = [record["seconds"] for record in iterations]
        name = run if len(logs) > 1 else ""
        values = [np.nan if record["value"] is None else record["value"] for record in iterations]
        if not np.isnan(values).all():
            objective.append(Line(name, steps, seconds, values, at))
        norms = [record["gradient_norm"] or np.nan for record in iterations]
        gradient.append(Line(name, steps, seconds, norms, at))
    panels = [Panel("objective", objective)] if objective else []
    level = levels.pop() if len(levels) == 1 else None
    return [*panels, Panel("gradient's largest entry", gradient, logarithmic=True, level=level)], "iteration"


def _of_epochs(logs: Mapping[str, Sequence[Record]]) -> tuple[list[Panel], str]:
    loss: list[Line] = []
    validation: list[Line] = []
    for at, (name, epochs) in enumerate(_by_class(logs, "epoch")):
        steps = [record["epoch"] for record in epochs]
        seconds = [record["seconds"] for record in epochs]
        loss.append(Line(name, steps, seconds, [record["loss"] for record in epochs], at))
        if all(record["validation"] is not None for record in epochs):
            validation.append(Line(name, steps, seconds, [record["validation"] for record in epochs], at))
    panels = [Panel("estimated loss", loss)]
    return panels + ([Panel("validation", validation)] if validation else []), "epoch"
