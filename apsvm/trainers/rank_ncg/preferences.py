"""Ordered classes of rows, and the preference graph between them.

An edge i → j: every row of class j should be ranked above every row of class i of the same query. Classes are numbered
from 0, the lowest, in the order of their labels; a file names them by their labels. Neighbours are kept as ranges of
classes, so that the full graph of S classes takes O(S) memory and not S².
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm.trainers.base import InputError

_MOST_SHOWN = 8


class GraphError(InputError):
    """A preference graph that does not fit the classes; for a file, the message starts with ``file:line: ``."""


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Sets of classes: set s is the union of first[r] … last[r] − 1 for starts[s] ≤ r < starts[s + 1]; all int64."""

    starts: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    def of(self, which: int) -> Iterator[int]:
        """The classes of one set, ascending."""
        for r in range(self.starts[which], self.starts[which + 1]):
            yield from range(self.first[r], self.last[r])


@dataclass(frozen=True, slots=True, eq=False)
class PreferenceGraph:
    """below : for each class, the classes that it is preferred to; above : those preferred to it."""

    name: str
    below: Ranges
    above: Ranges

    @property
    def n_classes(self) -> int:
        return self.below.starts.size - 1

    @property
    def n_edges(self) -> int:
        return int((self.below.last - self.below.first).sum())

    def edges(self) -> Iterator[tuple[int, int]]:
        """(i, j), class j preferred to class i."""
        return ((i, j) for j in range(self.n_classes) for i in self.below.of(j))

    def cycle(self) -> list[int] | None:
        """A cycle of classes, each preferred to the one before, and the first to the last; None without one. Depth
        first, O(classes + edges)."""
        owner = np.repeat(np.arange(self.n_classes), np.diff(self.below.starts))
        if (self.below.last <= owner).all():
            return None  # every edge leads upwards
        state = [0] * self.n_classes  # 1: on the path, 2: done
        for root in range(self.n_classes):
            path, ahead = [root], [self.above.of(root)]
            while path:
                if state[path[-1]] == 2:
                    path.pop()
                    ahead.pop()
                    continue
                state[path[-1]] = 1
                step = next(ahead[-1], None)
                if step is None:
                    state[path[-1]] = 2
                elif state[step] == 1:
                    return path[path.index(step) :]
                elif state[step] == 0:
                    path.append(step)
                    ahead.append(self.above.of(step))
        return None


def _one_range_each(first: NDArray[np.int64], last: NDArray[np.int64]) -> Ranges:
    """Set s is first[s] … last[s] − 1, perhaps empty."""
    used = first < last
    return Ranges(np.concatenate([[0], np.cumsum(used)]), first[used], last[used])


def full(n_classes: int) -> PreferenceGraph:
    """Every class is preferred to every lower one."""
    classes = np.arange(n_classes)
    return PreferenceGraph(
        "full", _one_range_each(0 * classes, classes), _one_range_each(classes + 1, 0 * classes + n_classes)
    )


def adjacent(n_classes: int) -> PreferenceGraph:
    """Every class is preferred to the next lower one."""
    classes = np.arange(n_classes)
    below = _one_range_each(np.maximum(classes - 1, 0), classes)
    return PreferenceGraph("adjacent", below, _one_range_each(classes + 1, np.minimum(classes + 2, n_classes)))


def bipartite(n_classes: int) -> PreferenceGraph:
    """Every other class is preferred to the lowest: relevant of any grade against irrelevant."""
    classes = np.arange(n_classes)
    below = _one_range_each(0 * classes, np.minimum(classes, 1))
    return PreferenceGraph("bipartite", below, _one_range_each(0 * classes + 1, np.where(classes == 0, n_classes, 0)))


#: Named graphs.
GRAPHS: dict[str, Callable[[int], PreferenceGraph]] = {"full": full, "adjacent": adjacent, "bipartite": bipartite}


def from_edges(n_classes: int, edges: Iterable[tuple[int, int]], name: str = "edges") -> PreferenceGraph:
    """The graph of the edges (i, j), class j preferred to class i; each once, 0 ≤ i ≠ j < n_classes."""
    pairs = np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)
    return PreferenceGraph(
        name, _neighbours(n_classes, pairs[:, 1], pairs[:, 0]), _neighbours(n_classes, pairs[:, 0], pairs[:, 1])
    )


def _neighbours(n_classes: int, owner: NDArray[np.int64], neighbour: NDArray[np.int64]) -> Ranges:
    order = np.lexsort((neighbour, owner))
    owner, neighbour = owner[order], neighbour[order]
    begins = np.ones(owner.size, dtype=bool)
    begins[1:] = (owner[1:] != owner[:-1]) | (neighbour[1:] != neighbour[:-1] + 1)
    ends = np.append(begins[1:], True)[: owner.size]
    counts = np.bincount(owner[begins], minlength=n_classes)
    return Ranges(np.concatenate([[0], np.cumsum(counts)]), neighbour[begins], neighbour[ends] + 1)


def edges_of_labels(edges: Iterable[tuple[float, float]], names: NDArray[np.float64]) -> PreferenceGraph:
    """Graph of edges between labels, (i, j) for j preferred to i, ignoring labels without rows; ``names``: (S,)
    float64, ascending.

    Raises
    ------
    GraphError : an edge from a class to itself
    """
    number_of = {float(name): number for number, name in enumerate(names)}
    seen = set()
    for low, high in edges:
        if low == high:
            raise GraphError(f"graph: a class cannot be preferred to itself: {(low, high)}")
        if low in number_of and high in number_of:
            seen.add((number_of[low], number_of[high]))
    return from_edges(names.size, seen)


def read_graph(path: str | os.PathLike[str], names: NDArray[np.float64]) -> PreferenceGraph:
    """Reads a graph file: a line ``i j`` for each edge, class j preferred to class i, by the classes' names. Empty
    lines and comments after # are skipped. names : (S,) float64, ascending.

    Raises
    ------
    OSError : it cannot be read
    GraphError : a line that is not two numbers, an unknown class, a self-loop, a duplicate edge, or no edge
    """
    source = os.fspath(path)
    number_of = {float(name): number for number, name in enumerate(names)}
    line_of: dict[tuple[int, int], int] = {}
    with open(path, encoding="utf-8", errors="replace") as lines:
        for at, line in enumerate(lines, start=1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            try:
                low, high = (float(word) for word in words)
            except ValueError:
                raise GraphError(
                    f"{source}:{at}: expected two classes, the preferred one last, found {line.strip()!r}"
                ) from None
            for word, name in zip(words, (low, high), strict=True):
                if name not in number_of:
                    raise GraphError(f"{source}:{at}: there is no class {word}: the classes are {_listed(names)}")
            edge = number_of[low], number_of[high]
            if edge[0] == edge[1]:
                raise GraphError(f"{source}:{at}: a class cannot be preferred to itself: {line.strip()!r}")
            if edge in line_of:
                raise GraphError(f"{source}:{at}: the edge {line.strip()!r} is in line {line_of[edge]} already")
            line_of[edge] = at
    if not line_of:
        raise GraphError(f"{source}: no edge: expected lines 'i j', class j preferred to class i")
    return from_edges(len(names), line_of, name=source)


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """Class of each row.

    Attributes
    ----------
    of_row : (n,) int64, 0 … S − 1
    names : (S,) float64, ascending: their labels, or 1 … if targets were cut
    cuts : class s holds targets with cuts[s − 1] ≤ y < cuts[s]; None if targets were not cut
    """

    of_row: NDArray[np.int64]
    names: NDArray[np.float64]
    cuts: NDArray[np.float64] | None = None


def classes_by_label(labels: NDArray[np.float64]) -> Classes:
    """Makes a class of each label. labels : (n,) float64"""
    low, high = labels.min(initial=np.inf), labels.max(initial=-np.inf)
    is_high = labels == high
    if low < high and np.count_nonzero(is_high) + np.count_nonzero(labels == low) == labels.size:  # nothing to sort
        return Classes(is_high.astype(np.int64), np.array([low, high]))
    names = np.unique(labels)
    return Classes(np.searchsorted(names, labels), names)  # return_inverse sorts the rows: ten times as long


def cut_into_classes(targets: NDArray[np.float64], n_classes: int, by: str) -> Classes:
    """Cuts real targets (n,) float64 at n_classes − 1 places into classes of equal ``by``: frequency or width. Equal
    targets stay together, and empty classes are left out, so there may be fewer."""
    shares = np.arange(1, n_classes) / n_classes
    if by == "frequency":
        cuts = np.quantile(targets, shares)
    else:
        low, high = float(targets.min()), float(targets.max())
        cuts = low + shares * (high - low)
    of_row = np.searchsorted(cuts, targets, side="right")
    kept = np.unique(of_row)
    return Classes(np.searchsorted(kept, of_row), np.arange(1.0, kept.size + 1), cuts[kept[1:] - 1])


def _listed(names: NDArray[np.float64]) -> str:
    text = ", ".join(f"{name:g}" for name in names[:_MOST_SHOWN])
    return f"{text}, … ({names.size} in all)" if names.size > _MOST_SHOWN else text
