"""Which setting is chosen, the one of the highest mean over the folds, and what the choice is worth, as the best of
many is best by chance, too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from apsvm._support.types import JsonDict, JsonObject
from apsvm.selection.grids import Axis, Grid
from apsvm.selection.race import Measured, PathInFold
from apsvm.trainers.settings import SettingValue

#: A rise of the metric that is worth more trainings: the edge is often where a plateau begins.
WORTH_IT = 1e-3


@dataclass(slots=True, eq=False)
class Candidate:
    """A setting that was finished in every fold.

    Attributes
    ----------
    grid : the number of its grid, from 0
    loss : as ``--loss`` names it
    choice : the setting: a value of each axis of the grid
    folds : what was measured, by fold
    """

    grid: int
    loss: str
    choice: JsonObject
    folds: Sequence[Measured] = field(default_factory=list)

    @property
    def as_asked(self) -> bool:
        """Whether training ended as requested in every fold."""
        return all(one.as_asked for one in self.folds)

    @property
    def C(self) -> list[float]:
        """The weight of the risk in each fold; empty where there is none."""
        return [one.C for one in self.folds if one.C is not None]

    @property
    def mean_C(self) -> float:
        """The mean of ``C``."""
        return math.fsum(self.C) / len(self.C)

    @property
    def seconds(self) -> list[float]:
        """Of training, by fold."""
        return [one.seconds for one in self.folds]

    @property
    def states(self) -> list[str]:
        """Why training stopped, by fold."""
        return [one.state for one in self.folds]

    def values(self, metric: str) -> list[float]:
        """The metric, by fold."""
        return [one.values[metric] for one in self.folds]

    def mean(self, metric: str) -> float:
        """Of the folds' values."""
        return math.fsum(self.values(metric)) / len(self.folds)

    def deviation(self, metric: str) -> float:
        """Between the folds' values, of a sample."""
        mean = self.mean(metric)
        return math.sqrt(math.fsum((value - mean) ** 2 for value in self.values(metric)) / (len(self.folds) - 1))


class Measurements:
    """What paths in folds came to, gathered by setting."""

    def __init__(self, losses: Sequence[str], folds: int) -> None:
        self._losses, self._folds = losses, folds
        self._by_setting: dict[tuple[int, tuple[object, ...]], dict[int, Measured]] = {}

    def add(self, path: PathInFold) -> None:
        """A path that has ended."""
        for measured in path.settings:
            key = path.task.grid, tuple(measured.choice.values())
            self._by_setting.setdefault(key, {})[path.task.fold] = measured

    def only(self, grids: Sequence[int]) -> Measurements:
        """Of these grids, which get the numbers of their places."""
        some = Measurements([self._losses[grid] for grid in grids], self._folds)
        some._by_setting = {
            (grids.index(grid), values): dict(by_fold)
            for (grid, values), by_fold in self._by_setting.items()
            if grid in grids
        }
        return some

    def candidates(self, folds: int | None = None) -> list[Candidate]:
        """The settings that were finished in every fold, or in this many from the first on, in the order in which they
        were first."""
        first = range(self._folds if folds is None else folds)
        needed = set(first)
        return [
            Candidate(grid, self._losses[grid], by_fold[0].choice, [by_fold[fold] for fold in first])
            for (grid, _), by_fold in self._by_setting.items()
            if by_fold.keys() >= needed
        ]


def best(candidates: Sequence[Candidate], metric: str) -> Candidate:
    """Of the highest mean, the first if there are several."""
    return max(candidates, key=lambda candidate: candidate.mean(metric))


def worth_of_choice(candidates: Sequence[Candidate], metric: str, chosen_by: str) -> float:
    """The metric of what is chosen, on rows that the choice has not seen: the mean over the folds of what each gives to
    the candidate that is best, by the metric ``chosen_by``, in the others.

    Candidates may lack the last of the folds: a fold is looked at by those that were finished in it, and these are
    compared by the folds that all of them have.
    """
    values = []
    for fold in range(max(len(one.folds) for one in candidates)):
        finished = [one for one in candidates if len(one.folds) > fold]
        common = min(len(one.folds) for one in finished)
        others = [replace(one, folds=[*one.folds[:fold], *one.folds[fold + 1 : common]]) for one in finished]
        values.append(finished[others.index(best(others, chosen_by))].values(metric)[fold])
    return math.fsum(values) / len(values)


def line(candidates: Sequence[Candidate], through: Candidate, axis: Axis) -> list[Candidate]:
    """Those that differ from ``through`` in nothing but this setting, ascending."""

    def others(candidate: Candidate) -> JsonDict:
        return {name: value for name, value in candidate.choice.items() if name != axis.name}

    on_it = [one for one in candidates if one.grid == through.grid and others(one) == others(through)]
    return sorted(on_it, key=lambda candidate: axis.position(candidate.choice[axis.name]))


def at_the_edge(candidates: Sequence[Candidate], grid: Grid, chosen: Candidate) -> list[str]:
    """The settings of which ``chosen``, of this grid, has the lowest or the highest value that was tried."""
    names = []
    for axis in grid.axes:
        on_it = line(candidates, chosen, axis)
        if axis.numeric and len(on_it) > 1 and chosen in (on_it[0], on_it[-1]):
            names.append(axis.name)
    return names


def beyond(
    candidates: Sequence[Candidate], grid: Grid, peak: Candidate, metric: str
) -> dict[str, tuple[SettingValue, ...]]:
    """Values worth trying beyond those of the grid, by setting: where the user named none, and the metric still rises
    by ``WORTH_IT`` or more towards the last one, ``peak``, the best of all, or there is a single one. None where it
    cannot rise further: metrics end at 1."""
    values: dict[str, tuple[SettingValue, ...]] = {}
    if peak.mean(metric) >= 1.0:
        return values
    for axis in grid.axes:
        on_it = line(candidates, peak, axis)
        if axis.named or not axis.numeric or (len(on_it) < len(axis.values) and not grid.climbs):
            continue
        if len(on_it) == 1:
            values[axis.name] = axis.beside()
            continue
        neighbour = {on_it[-1]: on_it[-2], on_it[0]: on_it[1]}.get(peak)
        if neighbour is not None and peak.mean(metric) - neighbour.mean(metric) >= WORTH_IT:
            values[axis.name] = axis.above() if peak is on_it[-1] else axis.below()
    return {name: new for name, new in values.items() if new}
