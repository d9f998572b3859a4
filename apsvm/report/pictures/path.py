"""A metric against C, or what takes its place for other losses, mean ± deviation over the folds, from what
``apsvm cv --json`` writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from apsvm._support.types import JsonObject
from apsvm.report.pictures.base import Picture, PictureError
from apsvm.report.pictures.style import Size, colour, dash, legend_below, powers

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Point:
    """C, or what takes its place; the metric's mean and deviation there, and whether it was chosen."""

    C: float
    mean: float
    deviation: float
    chosen: bool = False


#: What results have of a setting beside its values.
_BESIDE = {"C_of_folds", "metrics", "seconds", "states", "chosen"}


def _along(results: JsonObject, setting: JsonObject) -> str:
    """What the points of a setting's line differ in; earlier versions knew C only."""
    return str(results.get("along", {}).get(setting["loss"], "C"))


def _told_apart(settings: Sequence[JsonObject], along: Mapping[str, str]) -> list[str]:
    """What tells lines apart: the loss and settings of several values."""
    values: dict[str, set[object]] = {}
    for setting in settings:
        for part in setting.keys() - _BESIDE - {along[setting["loss"]]}:
            values.setdefault(part, set()).add(setting[part])
    in_order = dict.fromkeys(part for setting in settings for part in setting)
    return [part for part in in_order if len(values.get(part, ())) > 1]


def _named(part: str, value: object) -> str:
    if isinstance(value, str):
        return value
    return f"{'ε' if part == 'epsilon' else part.replace('_', ' ')} = {value:g}"


def _place(setting: JsonObject, along: str, *, multiples: bool) -> float:
    value = setting[along]
    if multiples:
        return float(value.removesuffix("x"))
    return float(np.mean(setting["C_of_folds"])) if along == "C" else float(value)


@dataclass(frozen=True)
class Path(Picture):
    """lines : name ("" if there is one) → points by rising C, or what takes its place; metric : its name; x_label :
    what the points lie along"""

    name: ClassVar[str] = "path"

    lines: Mapping[str, Sequence[Point]]
    metric: str
    x_label: str = "C"
    title: str = ""

    @classmethod
    def of_results(cls, results: JsonObject, metric: str | None = None, title: str = "") -> Path:
        """From the results of ``apsvm cv --json``; ``metric``: the first one by default.

        Raises
        ------
        PictureError : something else, or a metric that it does not have
        """
        try:
            metric = str(results["metric"]) if metric is None else metric
            settings = list(results["settings"])
            if not settings:
                raise PictureError("no settings: a run of apsvm cv that finished none")
            names = {name.lower(): name for name in settings[0]["metrics"]}
            if metric.lower() not in names:
                raise PictureError(f"no metric {metric!r}: it has {', '.join(names.values())}")
            metric = names[metric.lower()]
            along = {setting["loss"]: _along(results, setting) for setting in settings}
            varied = _told_apart(settings, along)
            # Multiples of the default are a scale of their own, unless there are other values beside them.
            multiples = all(isinstance(setting[along[setting["loss"]]], str) for setting in settings)
            lines: dict[str, list[Point]] = {}
            for setting in settings:
                name = ", ".join(_named(part, setting[part]) for part in varied if part in setting)
                result = setting["metrics"][metric]
                place = _place(setting, along[setting["loss"]], multiples=multiples)
                point = Point(place, float(result["mean"]), float(result["deviation"]), bool(setting["chosen"]))
                if not (0.0 < point.C < np.inf and np.isfinite([point.mean, point.deviation]).all()):
                    raise ValueError(f"expected C above 0 and finite values of {metric}, found {point}")
                lines.setdefault(name, []).append(point)
        except (LookupError, TypeError, AttributeError, ValueError, OverflowError) as error:
            if isinstance(error, PictureError):
                raise
            raise PictureError(f"expected the results of apsvm cv --json ({type(error).__name__}: {error})") from None
        for points in lines.values():
            points.sort(key=lambda point: point.C)
        x_label = " / ".join(dict.fromkeys(name.replace("_", " ") for name in along.values()))
        if multiples:
            x_label += ", in multiples of the default (-C auto)"
        return cls(lines, metric, x_label, title)

    def height(self, size: Size) -> float:
        return (0.85 if size.columns == 1 else 0.55) * size.width

    def draw(self, figure: Figure, size: Size) -> None:
        axes = figure.add_subplot(xscale="log")
        for at, (name, points) in enumerate(self.lines.items()):
            C, mean, deviation = (np.array([getattr(p, what) for p in points]) for what in ("C", "mean", "deviation"))
            axes.fill_between(C, mean - deviation, mean + deviation, color=colour(at), alpha=0.13, linewidth=0)
            label = f"{name}: {self.metric}" if name else f"{self.metric}, mean ± deviation of the folds"
            axes.plot(C, mean, color=colour(at), linestyle=dash(at), marker="o", label=label)
            for point in points:
                if point.chosen:
                    axes.plot(
                        [point.C], [point.mean], marker="o", markersize=9, markerfacecolor="none", linestyle="none",
                        markeredgecolor=colour(at), label=f"chosen: {self.metric} {point.mean:.4f}",
                    )  # fmt: skip
        axes.set_xlabel(self.x_label)
        axes.set_ylabel(self.metric)
        axes.set_title(self.title)
        powers(axes.xaxis)
        legend_below(figure, size, axes)
