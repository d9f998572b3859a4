from typing import TypeAlias

from numpy import bool_, float32, float64, int32, int64, uint8
from numpy.typing import NDArray

_Index: TypeAlias = NDArray[int32] | NDArray[int64]
_Values: TypeAlias = NDArray[float32] | NDArray[float64]

def build_info() -> dict[str, str]: ...
def best_of_bags(scores: NDArray[float64], offsets: NDArray[int64], rows: NDArray[int64], threads: int) -> None: ...
def top_of_bags(
    scores: NDArray[float64], offsets: NDArray[int64], counts: NDArray[int64], rows: NDArray[int64], threads: int
) -> None: ...

# Trees of one depth: the features (−1: not split) and the bins of their splits, tree by tree. After the targets (K, n):
# how many, their depth, rate, rows and columns drawn for each, rows of a leaf, whether the loss is logistic, the seed.
def boost(
    codes: NDArray[uint8],
    targets: NDArray[float64],
    trees: int,
    depth: int,
    rate: float,
    rows: int,
    columns: int,
    prior: float,
    leaf_prior: float,
    noise: float,
    logistic: bool,
    seed: int,
    /,
) -> tuple[NDArray[int32], NDArray[uint8], NDArray[float64], NDArray[float64]]: ...
def rows_of_rules(
    X: _Values,
    beside: _Values,
    features: NDArray[int32],
    thresholds: NDArray[float64],
    columns: NDArray[int32],
    sums: NDArray[float64],
    depth: int,
    indptr: NDArray[int64],
    indices: NDArray[int32],
    values: _Values,
    /,
) -> None: ...

# The arrays of a CSR matrix, checked once, and kept: ValueError where they are none of this shape.
class CsrMatrix:
    def __init__(self, indptr: _Index, indices: _Index, values: _Values, n_rows: int, n_columns: int, /) -> None: ...
    @property
    def ascending(self) -> bool: ...  # the columns of each row, none of them twice

def scores_csr(
    X: CsrMatrix, rows: _Index | None, W: NDArray[float64], out: NDArray[float64], threads: int, /
) -> None: ...
def combine_csr(
    X: CsrMatrix, rows: _Index | None, C: NDArray[float64], out: NDArray[float64], threads: int, /
) -> None: ...
def scores_dense(
    X: _Values, rows: _Index | None, W: NDArray[float64], out: NDArray[float64], threads: int, /
) -> None: ...
def combine_dense(
    X: _Values, rows: _Index | None, C: NDArray[float64], out: NDArray[float64], threads: int, /
) -> None: ...
def all_within(values: NDArray[float64], limit: float) -> bool: ...
def descending_order(scores: NDArray[float64]) -> NDArray[int64]: ...
def feasible(alpha: NDArray[float64], soft: NDArray[bool_], C: float) -> NDArray[float64]: ...

class ActiveSet:
    def __init__(self) -> None: ...
    def solve(
        self,
        gram: NDArray[float64],
        offsets: NDArray[float64],
        soft: NDArray[bool_],
        C: float,
        names: NDArray[int64],
        start: NDArray[float64],
        tolerance: float,
    ) -> tuple[NDArray[float64], float]: ...

class LevelSteps:
    def __init__(self) -> None: ...
    def step(
        self,
        gram: NDArray[float64],
        offsets: NDArray[float64],
        soft: NDArray[bool_],
        C: float,
        names: NDArray[int64],
        offsets_from_point: NDArray[float64],
        distance_squared: float,
        lowest: float,
        highest: float,
        ratio: float,
        tolerance: float,
    ) -> tuple[NDArray[float64], float, float] | None: ...

class RankingOracle:
    def __init__(self, algorithm: str, unimodal: bool, threads: int) -> None: ...
    def add_tables(self, n_neg: int, weights: NDArray[float64], discount: NDArray[float64]) -> None: ...
    def add_tasks(self, first: NDArray[int64], tables: NDArray[int64], coefficients: NDArray[float64]) -> None: ...
    def __call__(self, scores: NDArray[float64], weights: NDArray[float64], /) -> tuple[float, float, int, int]: ...
    def one(
        self,
        positives: NDArray[float64],
        negatives: NDArray[float64],
        weights_pos: NDArray[float64],
        weights_neg: NDArray[float64],
        /,
    ) -> tuple[float, float, int, int]: ...
    def mixed(
        self,
        scores: NDArray[float64],
        relevant: NDArray[bool_],
        weights: NDArray[float64],
        ranks: NDArray[int32],
        /,
    ) -> tuple[float, float, int, int]: ...

class RankingByScore:
    def __init__(self, threads: int) -> None: ...
    def add_tasks(
        self,
        first: NDArray[int64],
        n_pos: NDArray[int64],
        n_neg: NDArray[int64],
        coefficients: NDArray[float64],
    ) -> None: ...
    def __call__(self, scores: NDArray[float64], weights: NDArray[float64], /) -> tuple[float, float, int, int]: ...
    def subtract(self, scores: NDArray[float64], weights: NDArray[float64], /) -> tuple[float, float, int, int]: ...

class MeasureOracle:
    def __init__(self, measure: str, parameter: float, discount: NDArray[float64], threads: int) -> None: ...
    def add_tasks(
        self,
        first: NDArray[int64],
        n_pos: NDArray[int64],
        n_neg: NDArray[int64],
        coefficients: NDArray[float64],
    ) -> None: ...
    def __call__(self, scores: NDArray[float64], weights: NDArray[float64], /) -> tuple[float, float, int, int]: ...
    def one(
        self,
        positives: NDArray[float64],
        negatives: NDArray[float64],
        weights_pos: NDArray[float64],
        weights_neg: NDArray[float64],
        /,
    ) -> tuple[float, float, int, int]: ...
    def mixed(
        self,
        scores: NDArray[float64],
        relevant: NDArray[bool_],
        weights: NDArray[float64],
        ranks: NDArray[int32],
        /,
    ) -> tuple[float, float, int, int]: ...

def count_below(values: NDArray[float64], scores: NDArray[float64]) -> NDArray[int32]: ...  # of the values, each score

class PairSums:
    def __init__(
        self,
        objective: str,
        summation: str,
        fourier: tuple[float, int, float, float] | None,
        starts: NDArray[int64],
        classes: NDArray[int64],
        queries: NDArray[int64],
        below_starts: NDArray[int64],
        below_first: NDArray[int64],
        below_last: NDArray[int64],
        above_starts: NDArray[int64],
        above_first: NDArray[int64],
        above_last: NDArray[int64],
        weights: NDArray[float64] | None,
        threads: int,
    ) -> None: ...
    @property
    def pairs(self) -> int: ...
    @property
    def weight(self) -> float: ...
    @property
    def queries_without_pairs(self) -> int: ...
    def __call__(self, scores: NDArray[float64], slopes: NDArray[float64], scale: float, with_loss: bool) -> float: ...

# The oracles over the lists of a batch, classes mixed: (n,), one list, or (l, n), one a row; ``valid`` is None where
# all rows count. Loss of list i: u_k at weights[weights_begin[i] + k − 1], D(p) at discount[discount_begin[i] + p − 1].
# Writes (l,) values, which lists have both classes, and the row weights.
def solve_lists(
    algorithm: str,
    unimodal: bool,
    form: str,
    scores: _Values,
    positive: NDArray[bool_],
    valid: NDArray[bool_] | None,
    weights_begin: NDArray[int64],
    weights: NDArray[float64],
    discount_begin: NDArray[int64],
    discount: NDArray[float64],
    values: NDArray[float64],
    counts: NDArray[bool_],
    row_weights: _Values,
    threads: int,
    /,
) -> None: ...
def count_classes(
    positive: NDArray[bool_], valid: NDArray[bool_] | None
) -> list[tuple[int, int]]: ...  # (positives, negatives)

# Smooth-AP, or with ``places`` recall among the first K, of the same lists by the Laplace kernel, whose width is
# ``relative`` to each list's standard deviation or in units of the scores. Writes the same.
def soft_rank_losses(
    scores: _Values,
    positive: NDArray[bool_],
    valid: NDArray[bool_] | None,
    tau: float,
    relative: bool,
    places: NDArray[float64],
    tau_rank: float,
    values: NDArray[float64],
    counts: NDArray[bool_],
    slopes: _Values,
    threads: int,
    /,
) -> None: ...
def decaying_sums(
    decay: NDArray[float64],
    values: NDArray[float64],
    sums: NDArray[float64],
    channels: int,
    lists: int,
    reverse: bool,
    threads: int,
) -> None: ...

class SvmlightError(ValueError):
    args: tuple[int, int, str]  # line, column, message

class SvmlightParser:
    def __init__(
        self,
        *,
        zero_based: bool = False,
        float32: bool = False,
        n_features: int = -1,
        max_features: int = -1,
        ignore_unknown: bool = False,
        sort_features: bool = False,
        multilabel: bool = False,
        fill_if: float = 0.0,
        narrow_limit: int = 2147483647,
        threads: int = 1,
        least_chunk: int = 262144,
    ) -> None: ...
    def feed(self, block: bytes) -> None: ...
    def wait(self) -> None: ...
    def take(
        self, dense: bool = False
    ) -> tuple[
        _Index,
        _Index | None,
        _Values,
        NDArray[float64],
        NDArray[int64] | None,
        NDArray[float64] | None,
        int,
        int,
        NDArray[float64],
        NDArray[int64],
        NDArray[int64] | None,
        NDArray[int64],
    ]: ...
    def finish(
        self, dense: bool = False
    ) -> tuple[
        _Index,
        _Index | None,
        _Values,
        NDArray[float64],
        NDArray[int64] | None,
        NDArray[float64] | None,
        int,
        int,
        NDArray[float64],
        NDArray[int64],
        NDArray[int64] | None,
        NDArray[int64],
    ]: ...

class WarpRows:
    def __init__(
        self,
        w: NDArray[float64],
        squares: NDArray[float64],
        steps: NDArray[float64],
        positives: NDArray[int64],
        starts: NDArray[int64],
        counts: NDArray[int64],
        members: NDArray[int64],
        loss_of_rank: NDArray[float64],
        estimator: str,
        scale: float,
        max_trials: int,
        rule: str,
        rate: float,
        l2: float,
        instalment: int,
        seed: int,
        threads: int,
    ) -> None: ...
    def run_csr(self, X: CsrMatrix, order: NDArray[int64]) -> tuple[int, int, float]: ...
    def run_dense(self, X: _Values, order: NDArray[int64]) -> tuple[int, int, float]: ...
    def settle(self) -> None: ...

class WarpItems:
    def __init__(
        self,
        parameters: NDArray[float32],
        squares: NDArray[float32],
        steps: NDArray[float32],
        items: int,
        factors: int,
        loss_of_rank: NDArray[float64],
        estimator: str,
        scale: float,
        max_trials: int,
        rule: str,
        rate: float,
        l2: float,
        instalment: int,
        seed: int,
        threads: int,
    ) -> None: ...
    def run(self, indptr: _Index, indices: _Index, users: NDArray[int64]) -> tuple[int, int, float]: ...
    def settle(self) -> None: ...
