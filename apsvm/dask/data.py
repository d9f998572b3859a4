"""A data set whose rows lie in shards: what it is as a whole, agreed on by all of them."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm.dask.crew import ClusterError, Crew
from apsvm.dask.long_list import MOST_POSITIVES
from apsvm.dask.messages import require_one_size
from apsvm.dask.shards.rows import About
from apsvm.dask.vectors import HandleVectors
from apsvm.data.dataset import DataError, Dataset, TableRows
from apsvm.data.features import learn_map
from apsvm.data.features.binning import rows_to_learn_from
from apsvm.data.features.mapped import DENSE_IF
from apsvm.data.features.scaling import Scaling, scaling_of
from apsvm.data.joining import stacked
from apsvm.data.labels import Target
from apsvm.data.moments import Moments
from apsvm.models.columns import Columns

if TYPE_CHECKING:
    from apsvm.data.features.base import FeatureMap

#: Shards' means that are as near to each other as this are those of a constant column.
SAME_MEAN = 1e-10
#: Bytes of rows that may go through the driver, so that each query is on one worker.
MOST_MOVED = 256_000_000


@dataclass(frozen=True, slots=True)
class Extent:
    """What is known of a matrix that is nowhere as a whole: ``shape``, and ``size``, how many values it holds."""

    shape: tuple[int, int]
    size: int


@dataclass(slots=True, eq=False)
class ShardedData:
    """See the module.

    Attributes
    ----------
    crew : who has the rows
    vectors : score vectors over them
    about : of each shard
    width : features, the most that any shard has
    labels, counts : the distinct labels, ascending, and how many rows have each
    has_qid : whether rows are in queries
    zero_based : whether features count from 0
    source : what messages call it
    columns : of its tables, if parts are tables
    n_pos, n_neg : relevant rows and others, once labels are understood
    """

    crew: Crew
    source: str
    about: Sequence[About]
    width: int
    labels: NDArray[np.float64]
    counts: NDArray[np.int64]
    has_qid: bool
    zero_based: bool
    columns: Columns | None = None
    vectors: HandleVectors = field(init=False)
    n_pos: int = 0
    n_neg: int = 0

    def __post_init__(self) -> None:
        self.vectors = HandleVectors(self.crew)

    @classmethod
    def of(cls, crew: Crew, source: str, *, width: int | None = None) -> ShardedData:
        """The rows of a crew whose shards have just been made; ``width`` where a model says so.

        Raises
        ------
        DataError : parts that do not go together, too many rows of queries cut across workers, no rows
        """
        crew.set_up("read")
        about: list[About] = crew.set_up("about")
        for name, one in zip(crew.names(), about, strict=True):
            if one.rows < 0 or one.labels.size != one.label_counts.size or one.label_counts.sum() != one.rows:
                raise ClusterError(f"{name}: its counts of labels are not of its {one.rows:,} rows")
        filled = [one for one in about if one.rows]
        if not filled:
            raise DataError(f"{source}: there are no rows")
        if len({one.zero_based for one in filled}) > 1:
            raise DataError(f"{source}: some parts count features from 0 and some from 1 (--zero-based)")
        if len({one.has_qid for one in filled}) > 1:
            raise DataError(f"{source}: some parts have qid and some have none")
        first = filled[0]
        if width is None:
            width = max(one.features for one in about) if first.columns is None else first.columns.width
        labels, which = np.unique(np.concatenate([one.labels for one in about]), return_inverse=True)
        counts = np.bincount(which, np.concatenate([one.label_counts for one in about]), labels.size)
        data = cls(
            crew,
            source,
            about,
            width,
            labels,
            counts.astype(np.int64),
            bool(first.has_qid),
            bool(first.zero_based),
            first.columns,
        )
        if data.has_qid:
            data._bring_queries_together()
        crew.set_up("join_parts", width, first.columns, first.first)
        return data

    def _bring_queries_together(self) -> None:
        """A query that is cut across workers goes to the first of them, whole; its rows stay in the order of the
        parts."""
        of_shards: list[NDArray[np.int64]] = self.crew.ask_surely("queries")
        ids, first, counts = np.unique(np.concatenate(of_shards), return_index=True, return_counts=True)
        ends = np.cumsum([of_shard.size for of_shard in of_shards])
        owners = np.searchsorted(ends, first, side="right")[counts > 1]
        split = ids[counts > 1]
        if not split.size:
            return
        leaving = [np.intersect1d(of_shard, split[owners != shard]) for shard, of_shard in enumerate(of_shards)]
        each = [(ids_of_shard,) for ids_of_shard in leaving]
        moved = sum(self.crew.ask_surely("bytes_of_queries", each=each))
        if moved > MOST_MOVED:
            where = [name for name, of_shard in zip(self.crew.names(), of_shards, strict=True) if split[0] in of_shard]
            raise DataError(
                f"{self.source}: query {split[0]} has rows on several workers ({', '.join(where[:3])}), and "
                f"{split.size} of {ids.size} queries have: {moved / 1e6:,.0f} MB would have to go through the driver, "
                f"{MOST_MOVED / 1e6:,.0f} MB are the most. Write the rows of a query into one part"
            )
        rows: list[list[Dataset]] = self.crew.ask_surely("rows_of_queries", each=each)
        owner = dict(zip(split.tolist(), owners.tolist(), strict=True))
        arriving: list[list[Dataset]] = [[] for _ in of_shards]
        for query in (query for of_shard in rows for query in of_shard):
            assert query.groups is not None
            arriving[owner[int(query.groups[0])]].append(query)
        self.crew.set_up("exchange_queries", each=list(zip(leaving, arriving, strict=True)))

    @property
    def rows(self) -> int:
        return sum(one.rows for one in self.about)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the parts' SHA-256, hexadecimal and one a line, in order; empty where parts have none."""
        digests = [digest for one in self.about for digest in one.fingerprints]
        if not all(digests):
            return ""
        return hashlib.sha256("".join(f"{digest}\n" for digest in digests).encode()).hexdigest()

    def of_labels(self) -> Dataset:
        """A data set of one row for each label there is, that says of itself what is true of the whole."""
        extent = Extent((self.rows, self.width), sum(one.n_values for one in self.about))
        return Dataset(
            X=extent,
            relevance=self.labels,
            groups=None,
            costs=None,
            zero_based=self.zero_based,
            source=self.source,
            fingerprint=self.fingerprint,
            unknown_features=sum(one.unknown_features for one in self.about),
            table=None if self.columns is None else TableRows(self.columns),
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """On how tables were read, each once."""
        return tuple(dict.fromkeys(line for one in self.about for line in one.remarks))

    def several_queries(self) -> bool:
        """Whether rows are in more than one query."""
        return bool(sum(of_shard.size for of_shard in self.crew.ask_surely("queries_joined")) > 1)

    @property
    def is_sparse(self) -> bool:
        """Whether the rows would take far more bytes as dense ones."""
        rows, values = (sum(getattr(one, name) for one in self.about) for name in ("rows", "n_values"))
        return bool(rows * self.width * 8 > DENSE_IF * values * 12)  # bytes of a value, and of one with its column

    def tell(self, target: Target) -> None:
        """The shards are told what each label means."""
        sizes = self.crew.set_up("understand", self.labels, target)
        self.n_pos, self.n_neg = (sum(column) for column in zip(*sizes, strict=True))
        if np.min(sizes) < 0 or self.n_pos + self.n_neg != self.rows:
            raise ClusterError(
                f"the workers count {self.n_pos:,} relevant rows and {self.n_neg:,} others of {self.rows:,}"
            )

    def weigh(self, *, by_query: bool) -> dict[int, float] | None:
        """Takes the costs of rows as one machine takes ``sample_weight``: as weights of queries, which are returned,
        or, where rows are for themselves, with a mean of 1. Raises DataError."""
        if by_query:
            of_shards = self.crew.ask_surely("weights_of_queries")
            return {query: weight for of_shard in of_shards for query, weight in of_shard.items()}
        total = sum(self.crew.ask_surely("total_cost"))
        if not total:
            raise DataError(f"{self.source}: all sample weights are zero")
        self.crew.set_up("scale_costs", self.rows / total)
        return None

    def map_features(self, name: str, target: Target, seed: int) -> FeatureMap:
        """The rows are mapped by ``name``, which is learned here: from all rows, where these are no more than boosting
        looks at, and else from those that it would choose.

        Parameters
        ----------
        target : what the labels mean, one row each
        seed : see ``learn_map``

        Raises
        ------
        UnknownNameError, FeatureMapError : (ValueErrors) see ``learn_map``
        """
        of_shards: list[NDArray[np.float64]] = self.crew.ask_surely("labels_of_rows")
        targets = target.of(np.searchsorted(self.labels, np.concatenate(of_shards))).regressands()
        chosen = rows_to_learn_from(targets, self.width, np.random.default_rng(seed))
        starts = [0, *itertools.accumulate(of_shard.size for of_shard in of_shards)]
        in_shards = [(chosen[(chosen >= start) & (chosen < end)] - start,) for start, end in itertools.pairwise(starts)]
        matrices = self.crew.ask_surely("rows_as_read", each=in_shards)
        learned = learn_map(name, stacked(matrices, self.width), targets=targets[:, chosen], seed=seed)
        self.crew.set_up("map_features", learned)
        return learned

    def scale(self, name: str, bias: float | None) -> Scaling:
        """The rows as w sees them; returns the scaling ``name``, learned from all of them."""
        scaling = scaling_of(name, lambda: np.max(self.crew.ask_surely("largest"), axis=0), self._moments_as_read)
        self.crew.set_up("scale_rows", scaling, bias)
        return scaling

    def _moments_as_read(self) -> Moments:
        self.crew.ask_surely("scale_rows")
        return self.moments()

    def moments(self, *, within_queries: bool = False) -> Moments:
        """Of the features as w sees them."""
        sizes, moments = zip(*self.crew.ask_surely("moments", within_queries), strict=True)
        return pooled_moments(np.array(sizes), list(moments), within_queries=within_queries)

    def take_list(self) -> None:
        """All rows are one list. Raises DataError for more positives than the driver takes."""
        if self.n_pos > MOST_POSITIVES:
            raise DataError(
                f"{self.source}: {self.n_pos:,} positive rows: one list on a cluster takes {MOST_POSITIVES:,} at most, "
                "whose scores the driver gathers in each call. If positives are that many, the negatives' side can be "
                "taken for them, or rows can be put into queries"
            )
        self.crew.set_up("take_list", self.n_pos, self.n_neg)

    def take_queries(self, loss: object, oracle: str, query_weights: Mapping[int, float] | None) -> tuple[int, int]:
        """Queries, or rows, each for itself; returns how many queries there are and how many are left out."""
        answers = self.crew.set_up("take_queries", loss, oracle, None if query_weights is None else dict(query_weights))
        weights, queries, skipped = (sum(column) for column in zip(*answers, strict=True))
        if not queries:
            raise DataError(f"{self.source}: no query has both a positive and a negative row")
        self.crew.set_up("weigh", weights)
        return queries, skipped


def pooled_moments(sizes: NDArray[np.int64], moments: Sequence[Moments], *, within_queries: bool) -> Moments:
    """Of all rows, from those of the shards, of ``sizes`` (shards,) rows (Chan, Golub, LeVeque 1983); variances within
    queries add up by themselves."""
    require_one_size("means and variances", [part.size for of in moments for part in of])
    shares = sizes / sizes.sum()
    with np.errstate(over="ignore", invalid="ignore"):
        mean = sum(share * of.mean for share, of in zip(shares, moments, strict=True))
        variance = np.zeros_like(mean)
        for share, of in zip(shares, moments, strict=True):
            variance += share * (of.variance + (0.0 if within_queries else (of.mean - mean) ** 2))
        variance[(variance <= SAME_MEAN**2 * (variance + mean**2)) & np.isfinite(variance)] = 0.0
    return Moments(mean, variance)
