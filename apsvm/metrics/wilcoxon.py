"""The Wilcoxon-Mann-Whitney statistic over a preference graph: the share of ordered pairs that the ranking respects.

    WMW = Σ_{(i,j) ∈ E} Σ_{x of grade i, y of grade j} ( [s_y > s_x] + ½ [s_y = s_x] ) / Σ_{(i,j) ∈ E} m_i m_j

An edge (i, j) says that grade j is preferred to grade i. Graphs: ``WMW`` is the full one, every higher grade over every
lower; ``WMW(adjacent)`` joins each grade in the data to the next; ``WMW(bipartite)`` prefers the relevant rows to the
others, and equals AUC; ``WMW(0<1,0<2)`` is any list of edges. Pairs stand inside one ranking only. A tied pair counts ½
under the tie rule ``block``; under the others the order inside the block decides. Rows without a position are tied
below all others.

Source: Raykar, Duraiswami, Krishnapuram, "A fast algorithm for learning a ranking function from large-scale data sets",
PAMI 30, 2008, eq. (5), with ties counted ½. The full graph over L grades is split by the bits of the grades' numbers:
two grades have one highest differing bit, and their pairs are counted among the rows that agree in all higher bits.
Cost: O(n log L) after the sorts; other graphs O(n) for every preferred grade. Counts are integers, exact while pairs <
2⁶².
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm.metrics.base import Metric, number_from_name, number_in_name
from apsvm.metrics.errors import MetricError
from apsvm.metrics.ranking_table import Counts, RankingTable, Values

PRESETS = ("full", "adjacent", "bipartite")

Edges = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class WilcoxonMannWhitney(Metric):
    """``WMW``. Undefined without an ordered pair.

    graph : one of `PRESETS`, or edges (i, j): a sequence of pairs or an (e, 2) array of grades, j preferred to i
    """

    form = "WMW(graph)"
    graded = True

    graph: str | Edges = "full"

    def __post_init__(self) -> None:
        graph: str | Sequence[Sequence[float]] = self.graph
        if isinstance(graph, str):
            if graph not in PRESETS:
                raise MetricError(f"{self.form} needs one of {', '.join(PRESETS)} or edges, found {graph!r}")
            return
        pairs = np.asarray(graph, dtype=np.float64)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.size == 0 or not np.isfinite(pairs).all():
            raise MetricError(f"{self.form} needs edges (i, j) of finite grades, found {graph!r}")
        if (pairs[:, 0] == pairs[:, 1]).any():
            raise MetricError(f"{self.form}: no grade can be preferred to itself, found {graph!r}")
        object.__setattr__(self, "graph", tuple(sorted({(low, high) for low, high in (pairs + 0.0).tolist()})))

    @property
    def name(self) -> str:
        if isinstance(self.graph, str):
            return "WMW" if self.graph == "full" else f"WMW({self.graph})"
        edges = (f"{number_in_name(low)}<{number_in_name(high)}" for low, high in self.graph)
        return f"WMW({','.join(edges)})"

    @classmethod
    def from_text(cls, parameter: str) -> Metric:
        if "<" not in parameter:
            return cls(parameter)
        edges = []
        for word in parameter.split(","):
            low, _, high = word.partition("<")
            example = "WMW(0<1,0<2)"
            edges.append((number_from_name(cls.form, low, example), number_from_name(cls.form, high, example)))
        return cls(tuple(edges))

    def _compute(self, table: RankingTable) -> Values:
        twice, pairs = np.zeros((2, table.n_rankings), dtype=np.int64)
        for rows in self._contests(table):
            ranking, won, held = rows.tally()
            np.add.at(twice, ranking, won)
            np.add.at(pairs, ranking, held)
        return twice / (2 * pairs)  # NaN without a pair

    def telling(self, table: RankingTable) -> NDArray[np.bool_]:
        return np.ones(table.n_rankings, dtype=np.bool_)

    defined = telling

    def _lack(self, table: RankingTable) -> str:
        return "no pair of rows that the preference graph orders"

    def _contests(self, table: RankingTable) -> Iterator[_SortedRows]:
        """Sets of rows whose union is the graph; in each, every upper row is preferred to every lower one of its
        segment."""
        ranking = np.repeat(np.arange(table.n_rankings), table.n_rows)
        if self.graph == "bipartite":
            yield _SortedRows(table.relevant, table.blocks, ranking, ranking)
            return
        levels, number = _numbered(table.grades)
        if self.graph == "full":
            yield from _by_bits(number, levels.size, table.blocks, ranking)
            return
        below: dict[int, list[int]] = defaultdict(list)
        if self.graph == "adjacent":
            below |= {high: [high - 1] for high in range(1, levels.size)}
        elif not isinstance(self.graph, str):
            place = {grade: i for i, grade in enumerate(levels.tolist())}
            for low, high in self.graph:
                if low in place and high in place:
                    below[place[high]].append(place[low])
        for high, lows in below.items():
            part = np.zeros(levels.size, dtype=np.bool_)
            part[[high, *lows]] = True
            rows = np.flatnonzero(part[number])
            yield _SortedRows(number[rows] == high, table.blocks[rows], ranking[rows], ranking[rows])


class _SortedRows(NamedTuple):
    """Rows sorted by ranking, segment, block: arrays (n,). A segment lies in one ranking, a block too."""

    upper: NDArray[np.bool_]
    block: Counts
    segment: Counts
    ranking: Counts

    def tally(self) -> tuple[Counts, Counts, Counts]:
        """For each segment: its ranking; twice the number of pairs (upper row, lower row) in the right order, a tie
        counting half; the number of all pairs."""
        starts = _starts(self.block, self.segment)
        uppers = np.add.reduceat(self.upper, starts, dtype=np.int64)
        lowers = np.diff(starts, append=self.upper.size) - uppers
        firsts = _starts(self.segment[starts])
        above = np.cumsum(uppers) - uppers
        above -= np.repeat(above[firsts], np.diff(firsts, append=starts.size))
        return (
            self.ranking[starts[firsts]],
            np.add.reduceat(lowers * (2 * above + uppers), firsts),
            np.add.reduceat(uppers, firsts) * np.add.reduceat(lowers, firsts),
        )


def _starts(*keys: Counts) -> Counts:
    """Indices of rows at which one of `keys` (n,) ≥ 1 differs from the row before."""
    changes = np.ones(keys[0].size, dtype=np.bool_)
    changes[1:] = False
    for key in keys:
        changes[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(changes)


def _numbered(grades: NDArray[np.float64]) -> tuple[NDArray[np.float64], Counts]:
    """Distinct grades, rising, and the index of each row's grade."""
    low, high = grades.min(), grades.max()
    if high - low < 1 << 16 and (grades == np.trunc(grades)).all():
        shifted = (grades - low).astype(np.int64)
        occurs = np.bincount(shifted) > 0
        return np.flatnonzero(occurs) + low, (np.cumsum(occurs) - 1)[shifted]
    levels, number = np.unique(grades, return_inverse=True)
    return levels, number


def _by_bits(number: Counts, n_levels: int, block: Counts, ranking: Counts) -> Iterator[_SortedRows]:
    """The full graph: for each bit of the grade's index, highest first, rows that agree on higher bits, split by it."""
    segment = ranking
    for bit in range((n_levels - 1).bit_length() - 1, -1, -1):
        upper = (number >> bit & 1).astype(np.bool_)
        yield _SortedRows(upper, block, segment, ranking)
        if bit == 0:
            return
        # stable partition of each segment: lower rows first
        firsts = _starts(segment)
        sizes = np.diff(firsts, append=segment.size)
        uppers_before: Counts = np.cumsum(upper) - upper
        uppers_before -= np.repeat(uppers_before[firsts], sizes)
        n_lower = np.repeat(sizes - np.add.reduceat(upper, firsts, dtype=np.int64), sizes)
        rows = np.arange(segment.size)
        place = np.where(upper, np.repeat(firsts, sizes) + n_lower + uppers_before, rows - uppers_before)
        order = np.empty_like(rows)
        order[place] = rows
        number, block, ranking = number[order], block[order], ranking[order]
        halves = _starts(segment[order], upper[order].astype(np.int64))
        segment = np.repeat(np.arange(halves.size), np.diff(halves, append=rows.size))
