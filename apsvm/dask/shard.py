"""A shard: rows in the memory of one worker, the score vectors over them, and what the driver asks of them.

The driver never sees rows. It sends w, or weights by cells of scores, and is answered with sums over the rows, counts
of scores, and the few scores whose ranks nothing else settles (``apsvm.dask.long_list`` has the protocol). Rows stand
in the order of the parts, and of the rows in a part; of equal scores the earlier row comes first, as on one machine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm.dask.messages import Runs, narrow
from apsvm.dask.node_sums import Moments as NodeMoments
from apsvm.dask.node_sums import moments_of, pair_sums
from apsvm.data.dataset import DataError, Dataset
from apsvm.data.features.scaling import NO_SCALING, Scaling
from apsvm.data.labels import Target
from apsvm.data.moments import Moments, largest_magnitudes
from apsvm.data.rows import Rows
from apsvm.oracles.base import QueriesOracle, Violation

if TYPE_CHECKING:
    from apsvm.dask.sources import Source
    from apsvm.losses.base import Loss
    from apsvm.metrics.base import Metric
    from apsvm.model import Ranker
    from apsvm.trainers.pair_loss import PairLoss
    from apsvm.trainers.preferences import PreferenceGraph
    from apsvm.types import AnyArray, Matrix

#: Labels that a shard tells apart at most: a target that is a measurement has one a row.
MOST_LABELS = 100_000
#: Entries of a vector that are worked at while they are in the cache.
BLOCK = 1 << 15


@dataclass(frozen=True, slots=True, eq=False)
class About:
    """What a shard says of its rows.

    Attributes
    ----------
    rows, features, n_values : int
    labels, label_counts : the distinct labels, ascending, and how many rows have each
    has_qid, has_costs : bool, of its rows; None where it has no rows
    zero_based : of its parts
    fingerprints : SHA-256 of each part, in order
    unknown_features : int
    """

    rows: int
    features: int
    n_values: int
    labels: NDArray[np.float64]
    label_counts: NDArray[np.int64]
    has_qid: bool | None
    has_costs: bool | None
    zero_based: bool
    fingerprints: tuple[str, ...]
    unknown_features: int


class Survey(NamedTuple):
    """What a shard says of scores.

    Attributes
    ----------
    finite : whether they all are; the rest is of no use where they are not
    positives : (p,) float64, of the positives
    lowest, highest : of the negatives; +∞ and −∞ where there are none
    sample : (k,) float64, of the negatives
    counts : of the negatives in the bins that were asked about, or None
    """

    finite: bool
    positives: NDArray[np.float64]
    lowest: float
    highest: float
    sample: NDArray[np.float64]
    counts: AnyArray | None


class Settled(NamedTuple):
    """Ranks of cells: ``ranks`` of all cells, 0 where the cell is open. None in the place of it: nothing is settled,
    and all negatives are in one open cell."""

    ranks: Runs


@dataclass(slots=True)
class _Open:
    """Negatives whose rank is open: their places, ascending, scores and cells, numbered by descending score."""

    places: NDArray[np.int64]
    scores: NDArray[np.float64]
    cells: NDArray[np.int32]


class Shard:
    """See the module. Nothing is read before ``read``.

    Parameters
    ----------
    sources : its parts, in order
    threads : of the kernels
    worker : what messages call this worker
    """

    def __init__(self, sources: Sequence[Source], threads: int = 1, worker: str = "") -> None:
        self._threads = threads
        self._worker = worker
        self._sources = list(sources)
        self._parts: list[Dataset] = []
        self._vectors: dict[int, NDArray[np.float64]] = {}
        self._names: NDArray[np.uint16] = np.empty(0, dtype=np.uint16)
        self._open = _Open(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0, dtype=np.int32))
        self._n_pos = self._n_neg = 0
        self._most_violated: QueriesOracle
        self._bind: Callable[[float], None]
        self._pairs: PairLoss | None = None

    def call(self, programme: Sequence[tuple[Any, ...]], method: str, *arguments: Any) -> tuple[Any, float]:
        """What ``method`` returns, once the operations of the programme are done, and the seconds that took."""
        began = time.perf_counter()
        with np.errstate(over="ignore", invalid="ignore"):
            for operation, *operands in programme:
                getattr(self, f"do_{operation}")(*operands)
            result = getattr(self, method)(*arguments)
        return result, time.perf_counter() - began

    def ping(self) -> None:
        """It is there."""

    def read(self) -> None:
        """Reads its parts. Raises DataError and OSError, which name the part, perhaps the line, and the worker."""
        self._parts = [self._part(source) for source in self._sources]

    def _part(self, source: Source) -> Dataset:
        where = f" (on {self._worker})" if self._worker else ""
        try:
            part = source.read(self._threads)
        except DataError as error:
            raise DataError(f"{error}{where}") from None
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror or error}{where}", source.name) from None
        if part.label_sets is not None:
            raise DataError(f"{source.name}: rows of several labels are not trained on a cluster{where}")
        if part.bags is not None:
            raise DataError(f"{source.name}: rows in bags are not trained on a cluster; --bags ignore{where}")
        return part

    # What the rows are.

    def about(self) -> About:
        filled = [part for part in self._parts if part.X.shape[0]]
        labels, counts = np.unique(self._joined([part.relevance for part in self._parts]), return_counts=True)
        if labels.size > MOST_LABELS:
            raise DataError(
                f"{self._parts[0].source}: more than {MOST_LABELS:,} different labels: --relevant-from does not help "
                "on a cluster, make classes of them first"
            )
        for what, has in (("qid", "groups"), ("costs", "costs")):
            known = {getattr(part, has) is not None for part in filled}
            if len(known) > 1 and what == "qid":
                lacking = next(part for part in filled if getattr(part, has) is None)
                raise DataError(f"{lacking.source}: it has no {what}, and other parts have")
        bases = {part.zero_based for part in self._parts}
        if len(bases) > 1:
            raise DataError(f"{self._parts[0].source}: of the parts, some count features from 0 and some from 1")
        return About(
            rows=sum(part.X.shape[0] for part in self._parts),
            features=max((part.X.shape[1] for part in self._parts), default=0),
            n_values=sum(part.n_values for part in self._parts),
            labels=labels,
            label_counts=counts,
            has_qid=any(part.groups is not None for part in filled) if filled else None,
            has_costs=any(part.costs is not None for part in filled) if filled else None,
            zero_based=bases.pop() if bases else False,
            fingerprints=tuple(part.fingerprint for part in self._parts),
            unknown_features=sum(part.unknown_features for part in self._parts),
        )

    def queries(self) -> NDArray[np.int64]:
        """The ids of its queries, ascending."""
        return np.unique(self._joined([part.groups for part in self._parts if part.groups is not None], np.int64))

    def join_parts(self, width: int) -> None:
        """One matrix of all parts, ``width`` columns wide; the parts are let go."""
        matrices = [widened(part.X, width, part.source) for part in self._parts]
        self._X = stacked(matrices, width)
        self._labels = self._joined([part.relevance for part in self._parts])
        groups = [part.groups for part in self._parts if part.groups is not None]
        self._groups = self._joined(groups, np.int64) if groups else None
        costs = [np.ones(part.X.shape[0]) if part.costs is None else part.costs for part in self._parts]
        self._costs = self._joined(costs) if any(part.costs is not None for part in self._parts) else None
        self._parts = []

    def _joined(self, columns: Sequence[AnyArray], dtype: Any = np.float64) -> AnyArray:
        return np.concatenate([np.empty(0, dtype=dtype), *columns]).astype(dtype, copy=False)

    def queries_joined(self) -> NDArray[np.int64]:
        """The ids of its queries, at most two of them, once the parts are joined."""
        return np.empty(0, dtype=np.int64) if self._groups is None else np.unique(self._groups)[:2]

    def largest(self) -> NDArray[np.float64]:
        """(d,) max |x_ij| of each column."""
        return largest_magnitudes(self._X, np.arange(self._X.shape[0]))

    def scale_rows(self, scaling: Scaling = NO_SCALING, bias: float | None = None) -> None:
        """The rows as w sees them."""
        self._all_rows = Rows(self._X, bias=bias, threads=self._threads, scaling=scaling).for_many_passes()
        self._rows = self._all_rows

    def moments(self, within_queries: bool = False) -> tuple[int, Moments]:
        """Of the rows as w sees them, and how many they are."""
        n, d = len(self._all_rows), self._all_rows.features
        if n == 0:
            return 0, Moments(np.zeros(d), np.zeros(d))
        return n, self._all_rows.moments(self._groups if within_queries else None)

    def understand(self, labels: NDArray[np.float64], target: Target) -> tuple[int, int]:
        """The labels (k,) ascending mean what ``target`` says of k rows that have them; the shard's numbers of relevant
        rows and others."""
        which = np.searchsorted(labels, self._labels)
        self._target = target.of(which)
        n_pos = int(self._target.relevant.sum())
        return n_pos, self._labels.size - n_pos

    # What is trained on them.

    def take_list(self, n_pos: int, n_neg: int) -> None:
        """All rows of all shards are one list, of so many positives and negatives."""
        order = np.argsort(~self._target.relevant, kind="stable")
        self._order(order, int(self._target.relevant.sum()))
        self._all = (n_pos, n_neg)
        self._scale = 2.0 / (max(n_pos, 1) * max(n_neg, 1))

    def take_queries(self, loss: Loss, oracle: str, query_weights: dict[int, float] | None) -> tuple[float, int, int]:
        """Each query, or for a loss over rows each row, for itself. Returns what this shard weighs, and its numbers of
        queries and of queries left out; ``weigh`` has to follow."""
        from apsvm.oracles import make_oracle
        from apsvm.oracles.layout import NothingToRankError, lay_out

        if not loss.by_query:
            return self._take_rows(loss, oracle)
        groups, weights = self._groups, query_weights or {}
        assert groups is not None or len(self._all_rows) == 0
        self._bind = self._bind_nothing
        if groups is None:
            return 0.0, 0, 0
        try:
            layout = lay_out(
                loss, self._target.relevant, groups=groups, query_weights=query_weights, grades=self._target.grades
            )
        except NothingToRankError:
            return 0.0, 0, np.unique(groups).size
        queries = layout.queries
        of_query = np.array([weights.get(query, 1.0) for query in groups[layout.members[queries.first]].tolist()])

        def bind(total: float) -> None:
            weighed = replace(queries, shares=of_query / total)
            self._order(layout.members, 0)
            self._most_violated = make_oracle(oracle, loss).bind_queries(loss, weighed, threads=self._threads)

        self._bind = bind
        return float(of_query.sum()), queries.n_pos.size, layout.queries_skipped

    def _take_rows(self, loss: Loss, oracle: str) -> tuple[float, int, int]:
        """A loss over rows: both classes need not be here."""
        from apsvm.oracles import make_oracle
        from apsvm.oracles.layout import Queries

        relevant = self._target.relevant
        n, n_pos = relevant.size, int(relevant.sum())

        def bind(total: float) -> None:
            order = np.argsort(~relevant, kind="stable")
            self._order(order, n_pos)
            costs = None if self._costs is None else self._costs[order]
            queries = Queries(np.array([n_pos]), np.array([n - n_pos]), np.array([n / total]), costs)
            self._most_violated = make_oracle(oracle, loss).bind_queries(loss, queries, threads=self._threads)

        self._bind = bind if n else self._bind_nothing
        return float(n), int(n > 0), 0

    def _bind_nothing(self, total: float) -> None:
        """A shard without anything to rank."""
        self._order(np.empty(0, dtype=np.int64), 0)
        self._most_violated = _nothing

    def weigh(self, total: float) -> None:
        """What all shards weigh together."""
        self._bind(total)

    def _order(self, order: NDArray[np.int64], n_pos: int) -> None:
        """The rows that count, positives first where there are classes."""
        self._rows, self._order_of_rows = self._all_rows.select(order), order
        self._vectors.clear()
        self._n_pos, self._n_neg = n_pos, order.size - n_pos

    # Score vectors.

    def _vector(self, number: int) -> NDArray[np.float64]:
        known = self._vectors.get(number)
        if known is None:
            known = self._vectors[number] = np.zeros(len(self._rows))
        return known

    def do_forget(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._vectors.pop(number, None)

    def do_scores(self, w: NDArray[np.float64], out: int) -> None:
        self._rows.scores(w, self._vector(out))

    def do_add(self, x: int, t: float, y: int, out: int) -> None:
        """``out`` may be any of the operands."""
        one, other, to = self._vector(x), self._vector(y), self._vector(out)
        for start in range(0, to.size, BLOCK):  # so that t·y is never a whole vector
            block = slice(start, start + BLOCK)
            np.add(one[block], t * other[block], out=to[block])

    def do_subtract(self, x: int, y: int, out: int) -> None:
        np.subtract(self._vector(x), self._vector(y), out=self._vector(out))

    def do_scale(self, t: float, x: int, out: int) -> None:
        np.multiply(self._vector(x), t, out=self._vector(out))

    def do_absolute(self, x: int, out: int) -> None:
        np.abs(self._vector(x), out=self._vector(out))

    def length(self) -> int:
        """Of its vectors."""
        return len(self._rows)

    def vector(self, x: int) -> NDArray[np.float64]:
        return self._vector(x).copy()

    def take_vector(self, x: int, entries: NDArray[np.float64]) -> None:
        self._vector(x)[:] = entries

    def dot(self, x: int, y: int) -> float:
        return product(self._vector(x), self._vector(y))

    def combine(self, slopes: int) -> NDArray[np.float64]:
        """Xᵀc : (dimension,) float64."""
        return self._rows.combine(self._vector(slopes))

    def tangent(self, scores: int, slopes: int, foreseen: int | None) -> tuple[bool, Any, float]:
        """Of queries or rows: whether the scores are finite, the oracle's sums, and slopes·foreseen."""
        values, to = self._vector(scores), self._vector(slopes)
        if not np.isfinite(values).all():
            return False, None, 0.0
        violation = tuple(self._most_violated(values, to))
        return True, violation, 0.0 if foreseen is None else product(to, self._vector(foreseen))

    # One long list (``long_list``).

    def survey(self, scores: int, sample_size: int, bins: NDArray[np.float64] | None) -> Survey:
        """``sample_size`` : of all shards' sample together; ``bins`` : the sample that bins are made of, to count
        in."""
        values = self._vector(scores)
        positives, negatives = values[: self._n_pos], values[self._n_pos :]
        finite = bool(np.isfinite(values.sum()) or np.isfinite(values).all())
        if not finite or negatives.size == 0:
            nothing = None if bins is None else np.zeros(_kernels.ScoreBins(bins, *self._sizes).size, dtype=np.uint8)
            self._names = np.empty(0, dtype=np.uint16)
            return Survey(finite, positives.copy(), np.inf, -np.inf, np.empty(0), nothing)
        share = min(negatives.size, -(-sample_size * negatives.size // self._all[1]))
        sample = negatives[:: negatives.size // share][:share].copy()
        counts = None if bins is None else self.count(scores, bins)
        return Survey(True, positives.copy(), float(negatives.min()), float(negatives.max()), sample, counts)

    @property
    def _sizes(self) -> tuple[int, int]:
        """Of the whole list: negatives, positives."""
        return self._all[1], self._all[0]

    def count(self, scores: int, bins: NDArray[np.float64]) -> AnyArray:
        """How many negatives are in each bin."""
        self._names, counts = _kernels.ScoreBins(bins, *self._sizes).count(self._vector(scores)[self._n_pos :])
        return narrow(counts)

    def refine(
        self,
        scores: int,
        slopes: int,
        settled: Settled | None,
        lowest_keys: NDArray[np.int64],
        shifts: NDArray[np.uint8],
        parts: int,
        binned: bool,
    ) -> tuple[AnyArray, NDArray[np.float64], NDArray[np.float64]]:
        """Settles what is settled, and cuts the cells that are not: counts of the parts (cells · parts,), and the
        lowest and highest score of each cell."""
        self._settle(scores, slopes, settled, binned)
        counts, lowest, highest = _kernels.refine_cells(self._open.scores, self._open.cells, lowest_keys, shifts, parts)
        self._parts_of_cell = parts
        return narrow(counts), lowest, highest

    def gather(
        self, scores: int, slopes: int, settled: Settled | None, tied: NDArray[np.bool_], binned: bool
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], AnyArray]:
        """Settles what is settled: cells and scores of the open negatives that are in no tied cell, in their order; and
        how many are in each tied cell."""
        self._settle(scores, slopes, settled, binned)
        cells = self._open.cells
        apart = ~tied[cells]
        counts = np.bincount(cells[~apart], minlength=tied.size)[tied]
        return cells[apart], self._open.scores[apart], narrow(counts)

    def assign(
        self,
        scores: int,
        slopes: int,
        settled: Settled | None,
        reference: float,
        foreseen: int | None,
        binned: bool,
        gathered: NDArray[np.int32],
        ties: Ties | None,
        above: AnyArray,
    ) -> tuple[float, float]:
        """The last step: all slopes, from ranks. ``settled``: where nothing had to be gathered; ``above`` (p,): how
        many negatives stand above each positive.

        Returns c·(s − reference) and c·foreseen, over the shard's rows."""
        values, to = self._vector(scores), self._vector(slopes)
        if settled is not None:
            self._settle(scores, slopes, settled, binned)
        weights = to[self._n_pos :]
        places, cells = self._open.places, self._open.cells
        if places.size:
            apart = np.ones(places.size, dtype=bool) if ties is None else ~ties.tied[cells]
            weights[places[apart]] = self._weight_of(gathered)
            if ties is not None:
                weights[places[~apart]] = self._weight_of(ties.ranks(cells[~apart]))
        self._open = _Open(places[:0], self._open.scores[:0], cells[:0])
        np.multiply(above, -self._scale, out=to[: self._n_pos])
        return product(to, values - reference), 0.0 if foreseen is None else product(to, self._vector(foreseen))

    def _weight_of(self, ranks: AnyArray) -> NDArray[np.float64]:
        weights: NDArray[np.float64] = self._scale * (self._all[0] + 1.0 - ranks)
        return weights

    def _settle(self, scores: int, slopes: int, settled: Settled | None, binned: bool) -> None:
        """Writes the weights of settled cells, and keeps the negatives of open ones; ``binned``: cells are the bins."""
        negatives, weights = self._vector(scores)[self._n_pos :], self._vector(slopes)[self._n_pos :]
        if settled is None:
            n = negatives.size
            self._open = _Open(np.arange(n), negatives.copy(), np.zeros(n, dtype=np.int32))
            return
        ranks = settled.ranks.expanded()
        is_open = ranks == 0
        numbers = (np.cumsum(is_open) - 1).astype(np.int32)
        if binned:  # bins ascend
            of_bin = np.where(is_open, -1.0, self._weight_of(ranks))[::-1].copy()
            places = _kernels.assign_part(of_bin, self._names, negatives, weights)
            self._open = _Open(places, negatives[places], numbers[::-1][self._names[places]])
            return
        # So do the parts of a cell, while cells descend.
        parts = self._parts_of_cell
        flipped = ranks.reshape(-1, parts)[:, ::-1].ravel()
        of_cell = flipped[self._open.cells]
        done = of_cell > 0
        weights[self._open.places[done]] = self._weight_of(of_cell[done])
        left = ~done
        numbered = numbers.reshape(-1, parts)[:, ::-1].ravel()
        self._open = _Open(self._open.places[left], self._open.scores[left], numbered[self._open.cells[left]])

    # Pairs of classes (``pairs``).

    def take_classes(self, names: NDArray[np.float64], objective: str) -> None:
        """All rows of all shards are one list of the classes ``names`` (k,), ascending."""
        of_row = np.searchsorted(names, self._labels)
        self._order(np.argsort(of_row, kind="stable"), 0)
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(of_row, minlength=names.size))])
        self._objective = objective

    def pair_moments(self, scores: int) -> NodeMoments | None:
        """Weights at nodes of the rows, class by class; None where a score is not finite."""
        return moments_of(self._vector(scores), self._starts)

    def pair_slopes(
        self,
        scores: int,
        slopes: int,
        cells: NDArray[np.int64],
        below: NDArray[np.float64],
        above: NDArray[np.float64],
        scale: float,
    ) -> float:
        """Σ of ℓ over the pairs whose preferred row is here, not scaled; writes the slopes, scaled."""
        to = self._vector(slopes)
        total = pair_sums(self._objective, self._vector(scores), self._starts, cells, below, above, to, self._threads)
        to *= scale
        return total

    def take_pairs_of_queries(
        self, names: NDArray[np.float64], graph: PreferenceGraph, objective: str, summation: str, accuracy: float
    ) -> tuple[int, int, int]:
        """Each query for itself; its numbers of pairs, of queries with some and without. ``weigh_pairs`` has to
        follow."""
        from apsvm.trainers.pair_loss import NoPairsError, arrange, make_pair_loss
        from apsvm.trainers.preferences import Classes

        self._pairs = None
        if self._groups is None:
            self._order(np.empty(0, dtype=np.int64), 0)
            return 0, 0, 0
        classes = Classes(np.searchsorted(names, self._labels), names)
        try:
            self._pairs = make_pair_loss(
                self._all_rows,
                classes,
                graph,
                self._groups,
                objective=objective,
                summation=summation,
                accuracy=accuracy,
                normalize="none",
            )
        except NoPairsError:
            self._order(np.empty(0, dtype=np.int64), 0)
            return 0, 0, np.unique(self._groups).size
        self._order(arrange(classes, self._groups).order, 0)
        return self._pairs.pairs, self._pairs.queries, self._pairs.queries_skipped

    def weigh_pairs(self, scale: float) -> None:
        """What the sum over all pairs is multiplied by."""
        if self._pairs is not None:
            self._pairs.scale = scale

    def pairs_tangent(self, scores: int, slopes: int) -> tuple[bool, float]:
        """Of queries: whether the scores are finite, and the loss; writes the slopes."""
        values, to = self._vector(scores), self._vector(slopes)
        if self._pairs is None:
            return True, 0.0
        if not np.isfinite(values).all():
            return False, 0.0
        return True, self._pairs.tangent(values, to).value

    # Scores themselves.

    def do_model_scores(self, model: Ranker, out: int) -> None:
        """The scores that a model gives the rows, which are as they were read."""
        self._vector(out)[:] = model.score(self._X, threads=self._threads)[self._order_of_rows]

    def count_keys(self, scores: int, low: int, shift: int, parts: int) -> AnyArray:
        """How many scores have keys in each of ``parts`` ranges of 2^shift keys, the first from ``low`` on."""
        bits = (self._vector(scores) + 0.0).view(np.int64)
        keys = np.where(bits >= 0, bits, bits ^ np.int64(np.iinfo(np.int64).max)).view(np.uint64)
        # An offset to numbers that ascend as the keys do, without a sign.
        sign = np.uint64(1 << 63)
        steps = ((keys ^ sign) - np.uint64(low + (1 << 63))) >> np.uint64(shift)
        return np.bincount(steps[steps < np.uint64(parts)].astype(np.int64), minlength=parts)

    def evaluate(
        self, model: Ranker, metrics: dict[str, Metric], lowest_relevant: float | None, all_queries: bool
    ) -> tuple[NDArray[np.int64], dict[str, NDArray[np.float64] | None], tuple[int, int, int]]:
        """Each query's figures: ids, ascending; by metric (q,), NaN where it is left out, or None where it is
        undefined; and how many queries are skipped, how many tied blocks there are, and rows in them."""
        from apsvm.metrics.base import MetricError
        from apsvm.metrics.evaluate import Judgements, number_groups

        nothing = np.empty(0)
        if self._groups is None:
            return np.empty(0, dtype=np.int64), dict.fromkeys(metrics, nothing), (0, 0, 0)
        scores = model.score(self._X, threads=self._threads)
        if not np.isfinite(scores).all():
            raise FloatingPointError("scores are not finite: the feature values are too large, scale them down")
        ids, codes = number_groups(self._groups, scores.size)
        table = Judgements(self._target.judgements, lowest_relevant, codes, ids).table(scores, "block")
        figures: dict[str, NDArray[np.float64] | None] = {}
        for name, metric in metrics.items():
            try:
                values = metric.each(table)
            except MetricError:
                figures[name] = None
                continue
            figures[name] = np.nan_to_num(values) if all_queries else np.where(metric.telling(table), values, np.nan)
        both = (table.n_positives > 0) & (table.n_negatives > 0)
        counted = int((~both).sum()), int(table.tied_blocks.sum()), int(table.tied_rows.sum())
        return ids, figures, counted

    def extremes(self, w: NDArray[np.float64]) -> tuple[float, float]:
        """The lowest and the highest score of its rows."""
        scores = self._rows.scores(w)
        return float(scores.min(initial=np.inf)), float(scores.max(initial=-np.inf))

    def counts_above(self, scores: int, thresholds: NDArray[np.float64]) -> tuple[AnyArray, AnyArray]:
        """Of the negatives: how many are above each of the ``thresholds`` (k,), ascending, and how many equal it."""
        negatives = self._vector(scores)[self._n_pos :]
        left = np.searchsorted(thresholds, negatives, side="left")
        right = np.searchsorted(thresholds, negatives, side="right")
        equal = np.bincount(left[right > left], minlength=thresholds.size)
        above = np.bincount(right, minlength=thresholds.size + 1)
        return narrow(above), narrow(equal)


class Ties(NamedTuple):
    """Ranks of the open cells of one score, by position alone, for one shard.

    Attributes
    ----------
    tied : (cells,) bool, which open cells are such
    offsets : (t,) int64, how many of each tied cell's negatives stand in shards before
    sizes : (t,) int64, of each tied cell
    runs : ranks of all tied cells' negatives, cell after cell
    """

    tied: NDArray[np.bool_]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    runs: Runs

    def ranks(self, cells: NDArray[np.int32]) -> AnyArray:
        """Of the shard's negatives in tied cells, in their order: ``cells`` (m,) among all open ones."""
        number = (np.cumsum(self.tied) - 1)[cells]
        order = np.argsort(number, kind="stable")
        counts = np.bincount(number, minlength=self.sizes.size)
        within = np.empty(number.size, dtype=np.int64)
        within[order] = np.arange(number.size) - np.repeat(np.cumsum(counts) - counts, counts)
        before = np.cumsum(self.sizes) - self.sizes
        position = (before + self.offsets)[number] + within
        ranks: AnyArray = self.runs.values[np.searchsorted(np.cumsum(self.runs.lengths), position, side="right")]
        return ranks


def product(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """x·y, the same to the last bit whatever the number of BLAS threads."""
    return float(np.einsum("i,i->", x, y))


def widened(X: Matrix, width: int, source: str) -> Matrix:
    """The rows with columns of zeros behind; an array in memory must have them all, while a folder of ``apsvm convert``
    may come from text without the last features."""
    if X.shape[1] == width:
        return X
    if not sp.issparse(X):
        if X.shape[0] == 0:
            return np.empty((0, width), dtype=X.dtype)
        if os.path.isdir(source):
            return np.pad(X, ((0, 0), (0, width - X.shape[1])))
        raise DataError(f"{source}: it has {X.shape[1]} columns, other parts have {width}")
    return sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width))


def stacked(matrices: Sequence[Matrix], width: int) -> Matrix:
    """One matrix of all rows: dense where all that have rows are."""
    filled = [matrix for matrix in matrices if matrix.shape[0]]
    if not filled:
        return np.empty((0, width))
    if len(filled) == 1:
        return filled[0]
    if any(sp.issparse(matrix) for matrix in filled):
        return sp.csr_array(sp.vstack([sp.csr_array(matrix) for matrix in filled], format="csr"))
    return np.concatenate(filled)


def _nothing(scores: NDArray[np.float64], slopes: NDArray[np.float64], /) -> Violation:
    """The risk of a shard without anything to rank."""
    slopes[:] = 0.0
    return Violation(0.0, 0.0, 0, 0)
