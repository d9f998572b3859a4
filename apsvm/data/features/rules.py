"""Rules from boosting: a ranker on them is a sum of short rules (RuleFit; Friedman and Popescu, Annals of Applied
Statistics 2008), with one feature each at depth 1 and at most two at depth 2.

    φ(x) = ( z_1 … z_m;  1[x in leaf 1], 1[x in leaf 2], …;  s_1 … s_K )

The leaves belong to shallow symmetric trees, in which all nodes of a level have one split. Stochastic gradient boosting
(Friedman 2002; CatBoost, Prokhorenkova et al. 2018) grows them on the targets of the training rows: with log loss for
two classes, squares for grades, and each of several classes in turn. Equal leaves are one column. z are the piecewise
columns (``piecewise``), at a deviation of ``BESIDE``. s are the scores of the boosting, one for each target, at a
deviation of ``OF_SCORE``: a ranker with small weights has the order of the boosting, and larger weights correct it.
Scores are sums of leaves, so that a ranker remains a sum of rules (``Parts.weights``). Columns have one scale and are
not scaled again. The map fits the targets it has seen too well: a choice by held-out rows learns a map for each fold
(``looks_at_targets``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm._support import sparse as sp
from apsvm._support.types import Matrix
from apsvm.data.features import FeatureMapError, Parameter, TrainingRows
from apsvm.data.features.base import FeatureMap, Parts, checked
from apsvm.data.features.binning import binned, rows_to_learn_from
from apsvm.data.features.piecewise import Piecewise
from apsvm.data.moments import column_moments

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray

#: Boosting: the factor of a tree's values, the share of the rows that a tree sees, the prior rows of each side of a
#: split, the prior curvature of a leaf, and the noise in the scores of splits. On 80 sets of the KEEL repository, one
#: split each, test AP is .734 (.718 by 200 trees that split each node by itself: .005 better on 33 sets, worse on 18;
#: .736 by CatBoost). On 32 of them the boosting alone has .700 without noise and .732 with it.
RATE, ROWS, PRIOR, LEAF_PRIOR, NOISE = 0.03, 0.8, 3.0, 0.3, 2.0
DEPTH, MOST_DEPTH, MOST_TREES = 5, 6, 10_000
#: Default number of trees, and the fewest trees of each of several classes.
TREES, TREES_OF_CLASS = 400, 20
#: Most features among which a tree chooses its splits; its time is proportional to their number.
MOST_COLUMNS = 128
#: The deviations of the piecewise columns and of the scores. Of 17 sets, three splits of each, AP is .869 without the
#: scores, .872 at a deviation of 1, .874, .875, .875 and .874 at 2, 3, 5 and 10; .866 by boosted trees. Where rows are
#: few the piecewise columns are to be trusted more: of 31 other sets of 138 to 1,558 training rows AP is .6265, .631,
#: .635, .640 and .637 where they have .3, 1, 2, 4 and 8; of 14 larger ones .9150, .9151, .9148, .9137 and less.
BESIDE, OF_SCORE = 2.0, 3.0
#: Rows whose leaves are in memory at once, 5 kB each, to compute scores.
_ROWS_AT_ONCE = 1 << 12
#: Value in ``features`` of a node without a split: all rows go left.
_NOT_SPLIT = -1


class Size(NamedTuple):
    """Number of trees and their depth."""

    trees: int
    depth: int

    def __str__(self) -> str:
        return f"{self.trees}:depth={self.depth}"


@dataclass(frozen=True, slots=True, eq=False)
class Rules(FeatureMap):
    """See the module. Trees are complete, with T nodes and L leaves; node i has the children 2i + 1 and 2i + 2.

    Attributes
    ----------
    beside : the piecewise map
    divisors : (columns of ``beside``,) float64, their divisors
    features : (trees, T) int64, the feature of each split; −1: all rows go left
    thresholds : (trees, T) float64; a row goes left if its value is at most the threshold
    kept : (trees, L) int64, 1 if a leaf is a column, 0 if an earlier leaf is equal or no training row reaches it
    sums : (columns of leaves, K) float64, the share of each in the scores of the boosting
    """

    stem: ClassVar[str] = "rules"
    default_parameter: ClassVar[Parameter] = Size(TREES, DEPTH)
    members: ClassVar[tuple[str, ...]] = (*Piecewise.members, "divisors", "features", "thresholds", "kept", "sums")
    keeps_sparse: ClassVar[bool] = True
    makes_sparse: ClassVar[bool] = True
    looks_at_targets: ClassVar[bool] = True
    of_one_scale: ClassVar[bool] = True

    parameter: Parameter
    beside: Piecewise
    divisors: NDArray[np.float64]
    features: NDArray[np.int64]
    thresholds: NDArray[np.float64]
    kept: NDArray[np.int64]
    sums: NDArray[np.float64]

    @classmethod
    def read(cls, text: str) -> Parameter:
        trees, depth = "", str(DEPTH)
        for part in text.split(":"):
            name, equals, value = part.partition("=")
            if not equals and not trees:
                trees = part
            elif name == "depth":
                depth = value
            else:
                raise cls._bad(text)
        numbers = [number.isascii() and number.isdecimal() and len(number) < 9 for number in (trees or "1", depth)]
        if not all(numbers) or not 1 <= int(depth) <= MOST_DEPTH or not 1 <= int(trees or "1") <= MOST_TREES:
            raise cls._bad(text)
        return Size(int(trees) if trees else TREES, int(depth))

    @classmethod
    def _bad(cls, text: str) -> FeatureMapError:
        return FeatureMapError(
            f"bad parameter in feature map 'rules:{text}': expected a number of trees up to {MOST_TREES:,}, a depth "
            f"from 1 to {MOST_DEPTH}, or both, as in rules:100, rules:depth=2 or rules:100:depth=2"
        )

    @property
    def n_in(self) -> int:
        return self.beside.n_in

    @property
    def n_out(self) -> int:
        return self.beside.n_out + sum(self.sums.shape)

    @property
    def _depth(self) -> int:
        return int(self.kept.shape[1]).bit_length() - 1

    @classmethod
    def learn(cls, rows: TrainingRows, parameter: Parameter) -> Self:
        assert isinstance(parameter, tuple)
        size = Size(*parameter)
        X, selection, targets, rng = rows
        if targets is None or not (targets != targets[:, :1]).any():
            raise FeatureMapError("rules are learned from labels of at least two kinds, and these rows have one")
        beside = Piecewise.learn(rows, Piecewise.default_parameter)
        chosen = rows_to_learn_from(targets, int(X.shape[1]), rng)
        sample = binned(X, selection[chosen], np.ascontiguousarray(targets[:, chosen]))
        n, d = sample.codes.shape
        splits, bins, values, scores = _kernels.boost(
            sample.codes,
            sample.targets,
            max(size.trees, TREES_OF_CLASS * len(targets) if len(targets) > 1 else 0),
            size.depth,
            RATE,
            max(1, int(ROWS * n)),
            min(d, MOST_COLUMNS),
            PRIOR,
            LEAF_PRIOR,
            NOISE,
            bool(((targets == 0.0) | (targets == 1.0)).all()),
            int(rng.integers(2**63)),
        )
        nodes = 2**size.depth - 1
        splits = splits.reshape(-1, nodes)
        thresholds = sample.thresholds(splits, bins.reshape(-1, nodes))
        features = np.where(splits < 0, _NOT_SPLIT, sample.columns[splits])
        grown = (features >= 0).any(axis=1)
        features, thresholds = features[grown], thresholds[grown]
        kept, first = _first_of_equals(features, thresholds)
        # The column of equal leaves has the sum of their values.
        adds = np.zeros((kept.size, len(targets)))
        of_target = (np.arange(grown.size) % len(targets))[grown]
        values = values.reshape(-1, nodes + 1)[grown].ravel()
        np.add.at(adds, (first, np.repeat(of_target, nodes + 1)), values)
        reached = np.zeros(kept.size, dtype=bool)
        reached[first[values != 0.0]] = True
        kept *= reached.reshape(kept.shape)
        deviation = scores.reshape(len(targets), n).std(axis=1)
        varied = deviation > 0.0
        sums = np.ascontiguousarray(adds[kept.ravel() == 1][:, varied] * (OF_SCORE / deviation[varied]))
        return cls(size, beside, _divisors(beside, X, selection), features, thresholds, kept, sums)

    def apply(self, X: Matrix) -> Matrix:
        sparse = sp.issparse(X)
        beside = self.beside.apply(X)
        divisors = self.divisors.astype(X.dtype)
        if sparse:
            beside = sp.csr_array((beside.data / divisors[beside.indices], beside.indices, beside.indptr), beside.shape)
            return sp.hstack([beside, self._leaves(X, np.empty((X.shape[0], 0), dtype=X.dtype))], format="csr")
        beside /= divisors
        return self._leaves(X, beside)

    def of_boosting(self, X: Matrix) -> NDArray[np.float64]:
        """(k, K) float64, the scores of the boosting, with the deviation ``OF_SCORE`` in the training rows."""
        K, none = int(self.sums.shape[1]), np.empty((X.shape[0], 0), dtype=X.dtype)
        scores = np.empty((X.shape[0], K))
        for begin in range(0, X.shape[0], _ROWS_AT_ONCE):
            block = slice(begin, begin + _ROWS_AT_ONCE)
            indptr, _, values = self._stored(X[block], none[block])
            scores[block] = values[indptr[1:, None] + np.arange(-K, 0)]
        return scores

    def _leaves(self, X: Matrix, beside: AnyArray) -> Matrix:
        """(k, …) CSR: the columns ``beside`` (k, …), then the leaves and the scores."""
        indptr, indices, values = self._stored(X, beside)
        stored = int(indptr[-1])
        kind = np.int32 if stored < np.iinfo(np.int32).max else np.int64
        return sp.csr_array(
            (values[:stored], indices[:stored].astype(kind, copy=False), indptr.astype(kind)),
            shape=(int(X.shape[0]), beside.shape[1] + sum(self.sums.shape)),
        )

    def _stored(self, X: Matrix, beside: AnyArray) -> tuple[NDArray[np.int64], NDArray[np.int32], AnyArray]:
        """The CSR arrays of ``_leaves``: row pointers, columns and values, with unused room at the end."""
        n, features = int(X.shape[0]), self.features
        if sp.issparse(X):
            used = np.unique(np.append(features[features >= 0], 0))
            X, features = X[:, used].toarray(), np.where(features < 0, features, np.searchsorted(used, features))
        first = beside.shape[1]
        columns = np.where(self.kept == 1, first + np.cumsum(self.kept).reshape(self.kept.shape) - 1, -1)
        most = n * (first + len(features) + self.sums.shape[1])
        indptr = np.empty(n + 1, dtype=np.int64)
        indices, values = np.empty(most, dtype=np.int32), np.empty(most, dtype=X.dtype)
        _kernels.rows_of_rules(
            np.ascontiguousarray(X),
            beside,
            features.astype(np.int32),
            self.thresholds,
            columns.astype(np.int32),
            self.sums,
            self._depth,
            indptr,
            indices,
            values,
        )
        return indptr, indices, values

    def values_of_row(self, stored: float) -> float:
        return self.beside.values_of_row(stored) + len(self.features) + int(self.sums.shape[1])

    def names(self, features: Sequence[str]) -> list[str]:
        rules = map(" & ".join, self._conditions(features))
        scores = [f"score {k} of the boosting" for k in range(1, self.sums.shape[1] + 1)]
        return [*self.beside.names(features), *rules, *scores]

    def _conditions(self, features: Sequence[str]) -> list[list[str]]:
        """Conditions of each kept leaf, as text."""
        words = []
        for low, high, of_feature in zip(*bounds(self.features, self.thresholds, self.kept), strict=True):
            rule = []
            for a, b, j in zip(low.tolist(), high.tolist(), of_feature.tolist(), strict=True):
                if j >= 0:
                    left = f"{a:.9g} < " if np.isfinite(a) and np.isfinite(b) else ""
                    rule.append(f"{features[j]} > {a:.9g}" if np.isinf(b) else f"{left}{features[j]} <= {b:.9g}")
            words.append(rule)
        return words

    def parts(self) -> Parts:
        _, _, of_feature = bounds(self.features, self.thresholds, self.kept)
        several = [tuple(sorted({j for j in of_leaf if j >= 0})) for of_leaf in of_feature.tolist()]
        numbers: dict[tuple[int, ...], int] = {(j,): j for j in range(self.n_in)}
        of_leaves = [numbers.setdefault(features, len(numbers)) for features in several]
        n_beside, (n_leaves, n_scores) = self.beside.n_out, self.sums.shape
        nowhere = np.zeros(n_scores, dtype=np.int64)
        of_column = np.concatenate([self.beside.sources(), np.array(of_leaves, dtype=np.int64), nowhere])
        # The weight of a score is dealt to its leaves.
        leaves = sp.hstack([sp.eye_array(n_leaves), sp.csr_array(self.sums)])
        weighs = sp.block_diag([sp.eye_array(n_beside), leaves, sp.csr_array((n_scores, 0))], format="csr")
        return Parts(list(numbers), of_column, weighs)

    def typical(self) -> NDArray[np.float64]:
        return self.beside.typical()

    def limits(self, j: int) -> tuple[float, float]:
        return self.beside.limits(j)

    def breaks(self, j: int) -> NDArray[np.float64]:
        return np.union1d(self.beside.breaks(j), self.thresholds[self.features == j])

    def arrays(self) -> dict[str, AnyArray]:
        own = {name: getattr(self, name) for name in self.members[len(Piecewise.members) :]}
        return {**self.beside.arrays(), **own}

    @classmethod
    def of_arrays(cls, n_in: int, parameter: Parameter, arrays: Mapping[str, AnyArray]) -> Self:
        assert isinstance(parameter, tuple)
        size = Size(*parameter)
        beside = Piecewise.of_arrays(n_in, Piecewise.default_parameter, arrays)
        divisors = checked(arrays, "divisors", np.float64, (beside.n_out,))
        nodes = 2**size.depth - 1
        features = checked(arrays, "features", np.int64, (None, nodes))
        trees = int(features.shape[0])
        thresholds = checked(arrays, "thresholds", np.float64, (trees, nodes))
        kept = checked(arrays, "kept", np.int64, (trees, nodes + 1))
        if (divisors <= 0.0).any():
            raise FeatureMapError("a number of the array divisors is not above 0")
        if ((features < _NOT_SPLIT) | (features >= n_in)).any():
            raise FeatureMapError(f"the array features has a number outside the {n_in} features")
        if ((kept != 0) & (kept != 1)).any():
            raise FeatureMapError("a number of the array kept is neither 0 nor 1")
        if kept.size + beside.n_out > np.iinfo(np.int32).max:
            raise FeatureMapError("there are more than 2^31 − 1 columns")
        if (kept > _first_of_equals(features, thresholds)[0]).any():
            raise FeatureMapError("the array kept has a column for a leaf that an earlier tree has, or no row gets to")
        sums = checked(arrays, "sums", np.float64, (int(kept.sum()), None))
        return cls(size, beside, divisors, features, thresholds, kept, sums)


def _divisors(beside: Piecewise, X: Matrix, selection: NDArray[np.int64]) -> NDArray[np.float64]:
    from apsvm.data.features.mapped import MappedMatrix

    deviation = np.sqrt(column_moments(MappedMatrix(X, beside), selection).variance)
    return np.where(np.isfinite(deviation) & (deviation > 0.0), deviation / BESIDE, 1.0)


def _paths(depth: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(L, depth) each: the nodes on the path to a leaf, and True where the path goes right."""
    leaf, level = np.arange(2**depth)[:, None], np.arange(depth)
    nodes: NDArray[np.int64] = (1 << level) - 1 + (leaf >> (depth - level))
    return nodes, ((leaf >> (depth - 1 - level)) & 1).astype(bool)


def _regions(features: NDArray[np.int64], thresholds: NDArray[np.float64]) -> tuple[AnyArray, AnyArray, AnyArray]:
    """The bounds of each leaf in three arrays (T·L, depth): the feature (−1: no bound), True for a lower bound, and the
    bound. Only the tightest bounds of a feature are kept, ordered by feature, empty entries last. Leaves without a
    bound, or that no row reaches, have −1 only."""
    depth = int(features.shape[1] + 1).bit_length() - 1
    nodes, right = _paths(depth)
    of_node = features[:, nodes].reshape(-1, depth)
    bound = thresholds[:, nodes].reshape(-1, depth)
    lower = np.broadcast_to(right, (len(features), *right.shape)).reshape(-1, depth)
    nowhere = np.any((of_node < 0) & lower, axis=1, keepdims=True)
    of_node = np.where(nowhere, -1, of_node)
    # By feature and side, the tightest first.
    side: AnyArray = 2 * of_node + lower
    order = np.lexsort((np.where(lower, -bound, bound), side))
    side, of_bound, lower_bound, tightest = (
        np.take_along_axis(part, order, 1) for part in (side, of_node, lower, bound)
    )
    again = np.zeros(side.shape, dtype=np.bool_)
    again[:, 1:] = side[:, 1:] == side[:, :-1]
    none = again | (of_bound < 0)
    # Empty entries last: equal regions are equal rows then, and both bounds of a feature are neighbours.
    order = np.argsort(np.where(none, np.iinfo(np.int64).max, side), axis=1, kind="stable")
    parts = np.where(none, -1, of_bound), np.where(none, False, lower_bound), np.where(none, 0.0, tightest)
    of_bound, lower, bound = (np.take_along_axis(part, order, 1) for part in parts)
    return of_bound, lower, bound


def _first_of_equals(features: NDArray[np.int64], thresholds: NDArray[np.float64]) -> tuple[AnyArray, AnyArray]:
    """(trees, L) int64: 1 for the first of equal leaves with a bound; (trees · L,): the first leaf equal to each."""
    of_bound, lower, bound = _regions(features, thresholds)
    kept, equal = np.zeros(len(of_bound), dtype=np.int64), np.empty(0, dtype=np.int64)
    if kept.size:
        regions = np.hstack([of_bound.astype(np.float64), lower, bound + 0.0])
        # Sorting a hash of each region is faster than sorting regions. If two regions share one, regions are sorted.
        factors = np.random.default_rng(0).integers(2**63, size=regions.shape[1], dtype=np.uint64) * 2 + 1
        numbers = (np.ascontiguousarray(regions).view(np.uint64) * factors).sum(axis=1)
        _, first, which = np.unique(numbers, return_index=True, return_inverse=True)
        if (regions[first[which]] != regions).any():
            _, first, which = np.unique(regions, axis=0, return_index=True, return_inverse=True)
        kept[first] = (of_bound[first] >= 0).any(axis=1)
        equal = first[which.ravel()]
    return kept.reshape(len(features), features.shape[1] + 1), equal


def bounds(
    features: NDArray[np.int64], thresholds: NDArray[np.float64], kept: NDArray[np.int64]
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """The lower bounds, upper bounds and features of each kept leaf, (columns, depth) each: ±∞ without a bound. A
    feature appears once; other entries are −1."""
    of_bound, lower, bound = (part[kept.ravel() == 1] for part in _regions(features, thresholds))
    low = np.where(lower & (of_bound >= 0), bound, -np.inf)
    high = np.where(~lower & (of_bound >= 0), bound, np.inf)
    for at in range(1, of_bound.shape[1]):
        # An upper bound stands before the lower one of the same feature.
        both = (of_bound[:, at] >= 0) & (of_bound[:, at] == of_bound[:, at - 1])
        high[both, at], high[both, at - 1] = high[both, at - 1], np.inf
        of_bound[both, at - 1] = -1
    return low, high, of_bound
