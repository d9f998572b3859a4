"""Calls of every native entry, with arguments that fit together but for one or two that are hostile: what
``scripts/dev/fuzz --target native`` runs. A call may end in a result, or in a ValueError, TypeError or MemoryError of
the binding; what it must not do is read or write beyond an array, end the process, or never end.
"""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from apsvm._native import _kernels
from apsvm.losses import make_loss

#: What a binding may raise.
ERRORS = (ValueError, TypeError, MemoryError)
_INTEGERS = (0, 1, 2, -1, -(2**31), 2**31 - 1, 2**31, 2**32, -(2**63), 2**63 - 1, 2**40)
_NUMBERS = (0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 1e154)


class Hostile:
    """Makes sound arguments, and sometimes hands out others in their place.

    Parameters
    ----------
    seed : of all that is random
    rate : how often, of all arguments, one is made hostile
    """

    def __init__(self, seed: int, rate: float) -> None:
        self.chance = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self._rate = rate

    def __call__(self, value: Any) -> Any:
        if self.chance.random() >= self._rate:
            return value
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, bool):
            return self.chance.choice((not value, 2, None))
        if isinstance(value, int):
            return self.chance.choice((0, -1, value + 1, value - 1, 2**31, 2**63 - 1, 2**64, 1.5, None))
        if isinstance(value, float):
            return self.chance.choice((*_NUMBERS, None))
        if isinstance(value, str):
            return self.chance.choice(("", value + "x", None))
        return self.chance.choice((None, [], 1))

    def _array(self, array: np.ndarray) -> Any:
        """A copy of another length, type or layout, or with another number in one place."""
        changed = array.copy()
        kind = self.chance.randrange(12)
        if kind >= 6 and array.size:
            choices = _NUMBERS if array.dtype.kind == "f" else _INTEGERS
            with np.errstate(over="ignore", invalid="ignore"):
                at = self.chance.randrange(array.size)
                changed.reshape(-1)[at] = np.array(self.chance.choice(choices)).astype(array.dtype)
            if array.dtype == np.bool_:
                changed.view(np.uint8).reshape(-1)[at] = self.chance.choice((2, 255))
            return changed
        other = self.chance.choice([np.int16, np.float32, np.complex128, np.int64, np.float64])
        with np.errstate(over="ignore", invalid="ignore"):
            as_other = changed.astype(other)
        return (
            lambda: changed[:-1] if len(changed) else np.zeros(1, array.dtype),
            lambda: np.concatenate([changed, changed[:1] if len(changed) else np.zeros(1, array.dtype)]),
            lambda: changed[:0],
            lambda: np.repeat(changed, 2, axis=-1)[..., ::2],
            lambda: as_other,
            lambda: self.chance.choice((changed.reshape(-1)[:, None], changed[None], changed.tolist(), None)),
        )[kind % 6]()

    def size(self, least: int, most: int) -> int:
        """Mostly small; sometimes enough for another way of doing things."""
        return self.chance.randint(least, most if self.chance.random() < 0.9 else 40 * most)

    def threads(self) -> int:
        return self.chance.choice((1, 1, 2, 3))

    def scores(self, n: int) -> np.ndarray:
        kind = self.chance.randrange(5)
        if kind == 0:
            return self.rng.integers(-2, 3, size=n).astype(np.float64)
        if kind == 1:
            return np.full(n, self.rng.normal())
        return self.rng.normal(size=n) * self.chance.choice((1.0, 1e-300, 1e150, 1e307)) ** (kind == 2)

    def index(self, array: Any) -> np.ndarray:
        """In one of the two types of indices."""
        return np.asarray(array).astype(self.chance.choice((np.int32, np.int64)))

    def boundaries(self, parts: int, least: int, most: int) -> np.ndarray:
        return np.r_[0, np.cumsum(self.rng.integers(least, most + 1, size=parts))].astype(np.int64)


def ints(array: Any) -> np.ndarray:
    return np.asarray(array, dtype=np.int64)


def bags(h: Hostile) -> None:
    offsets = h.boundaries(h.size(1, 8), 1, 5)
    sizes = np.diff(offsets)
    counts = ints([h.chance.randint(1, size) for size in sizes])
    scores = h.scores(offsets[-1])
    _kernels.best_of_bags(h(scores), h(offsets), h(np.zeros(sizes.size, np.int64)), h(h.threads()))
    _kernels.top_of_bags(h(scores), h(offsets), h(counts), h(np.zeros(counts.sum(), np.int64)), h(h.threads()))


def rules(h: Hostile) -> None:
    n, d, K, depth = h.size(1, 40), h.size(1, 5), h.size(1, 3), h.chance.randint(1, 4)
    codes = h.rng.integers(0, 256, size=(n, d), dtype=np.uint8)
    targets = (h.rng.random((K, n)) < 0.5).astype(float)
    features, _, values, _ = _kernels.boost(
        h(codes),
        h(targets),
        h(7),
        h(depth),
        h(0.1),
        h(max(1, n // 2)),
        h(d),
        h(3.0),
        h(0.3),
        h(1.0),
        h(True),
        h(h.chance.randrange(9)),
    )
    nodes = 2**depth - 1
    trees = features.size // nodes
    X, beside = (h.rng.normal(size=(n, k)) for k in (d, 2))
    sums = values.reshape(-1, h.chance.choice((1, 2)))
    sums = np.resize(sums, (trees << depth, sums.shape[1]))
    most = n * (2 + trees + sums.shape[1])
    _kernels.rows_of_rules(
        h(X),
        h(beside),
        h(features.reshape(trees, nodes)),
        h(h.rng.normal(size=(trees, nodes))),
        h(np.arange(2, 2 + (trees << depth), dtype=np.int32).reshape(trees, -1)),
        h(sums),
        h(depth),
        h(np.empty(n + 1, dtype=np.int64)),
        h(np.empty(most, dtype=np.int32)),
        h(np.empty(most)),
    )


def stored(h: Hostile, n: int) -> np.ndarray:
    """Values in one of the two types of values."""
    with np.errstate(over="ignore"):
        return h.scores(n).astype(h.chance.choice((np.float32, np.float64)))


def _csr(h: Hostile, n: int, d: int) -> Any:
    held = h.rng.random((n, d)) < h.chance.random()
    indptr, width = np.r_[0, np.cumsum(held.sum(axis=1))], h.chance.choice((np.int32, np.int64))
    values = stored(h, int(indptr[-1]))
    columns = np.nonzero(held)[1]
    return _kernels.CsrMatrix(h(indptr.astype(width)), h(columns.astype(width)), h(values), h(n), h(d))


def _selection(h: Hostile, n: int) -> np.ndarray | None:
    if n == 0 or h.chance.random() < 0.3:
        return None
    rows = h.rng.integers(0, n, size=h.size(0, 2 * n))
    return h.index(np.sort(rows) if h.chance.random() < 0.5 else rows)


def rows(h: Hostile) -> None:
    n, d = h.size(0, 30), h.size(0, 9)
    sparse = h.chance.random() < 0.5
    X = _csr(h, n, d) if sparse else stored(h, n * d).reshape(n, d)
    name = "csr" if sparse else "dense"
    X = X if sparse else h(X)
    for _ in range(3):
        which, k = _selection(h, n), h.chance.choice((1, 1, 2, 5))
        m = n if which is None else which.size
        W, C = h.scores(k * d).reshape(k, d), h.scores(m * k).reshape(m, k)
        getattr(_kernels, f"scores_{name}")(X, h(which), h(W), h(np.zeros((m, k))), h(h.threads()))
        getattr(_kernels, f"combine_{name}")(X, h(which), h(C), h(np.zeros((k, d))), h(h.threads()))


def order(h: Hostile) -> None:
    _kernels.descending_order(h(h.scores(h.size(0, 30))))
    _kernels.all_within(h(h.scores(h.size(0, 30))), h(float(h.rng.normal())))
    _kernels.build_info()


def _working_set(h: Hostile, n: int) -> tuple[Any, ...]:
    A = h.scores(n * 3).reshape(n, 3)
    with np.errstate(all="ignore"):
        room = np.zeros((n + 2, n + 3))
        room[:n, :n] = A @ A.T
    names = ints(np.sort(h.rng.choice(50, size=n, replace=False)))
    return h(room[:n, :n]), h(h.rng.normal(size=n)), h(h.rng.random(n) < 0.7), h(1.0), h(names)


def qp(h: Hostile) -> None:
    n = h.chance.randint(1, 8)
    solver, steps = _kernels.ActiveSet(), _kernels.LevelSteps()
    for _ in range(2):
        arguments = _working_set(h, n)
        solver.solve(*arguments, h(np.zeros(n)), h(1e-6))
        _kernels.feasible(h(h.rng.normal(size=n)), *arguments[2:4])
        steps.step(*arguments, h(h.rng.normal(size=n)), h(1.0), h(-1.0), h(1.0), h(1.0), h(1e-6))


def ranking(h: Hostile) -> None:
    names = ("greedy", "search", "select", "search-select", "qs", "bucket")
    loss = make_loss(h.chance.choice(("ap", "auc", "ndcg", "mrr")))
    oracle = _kernels.RankingOracle(h(h.chance.choice(names)), h(loss.unimodal), h(h.threads()))
    sizes = [(h.size(1, 5), h.size(1, 9)) for _ in range(3)]
    if h.chance.random() < 0.1:
        sizes = [(h.size(1, 5), 6000)]
    for n_pos, n_neg in sizes:
        oracle.add_tables(h(n_neg), *(h(array) for array in loss.tables(n_pos, n_neg)))
    first = np.r_[0, np.cumsum([n_pos + n_neg for n_pos, n_neg in sizes])]
    oracle.add_tasks(h(ints(first[:-1])), h(ints(np.arange(len(sizes)))), h(np.ones(len(sizes))))
    for _ in range(2):
        oracle(h(h.scores(first[-1])), h(np.zeros(first[-1])))
        _one_query(h, oracle, *sizes[0])


def _one_query(h: Hostile, oracle: Any, n_pos: int, n_neg: int) -> None:
    oracle.one(h(h.scores(n_pos)), h(h.scores(n_neg)), h(np.zeros(n_pos)), h(np.zeros(n_neg)))
    if h.chance.random() < 0.2:  # of labellings there are no ranks
        return
    relevant = h.rng.permutation(np.arange(n_pos + n_neg) < n_pos)
    n = relevant.size
    oracle.mixed(h(h.scores(n)), h(relevant), h(np.zeros(n)), h(np.zeros(n_neg, np.int32)))


def measure(h: Hostile) -> None:
    forms = ("ndcg-chakrabarti", "ndcg@k", "p@k", "f(beta)", "set-p@k", "set-r@k", "prbep")
    sizes = [(h.size(1, 5), h.size(1, 9)) for _ in range(3)]
    form, n = h.chance.choice(forms), max(n_pos + n_neg for n_pos, n_neg in sizes)
    discount = make_loss("ndcg-chakrabarti" if form == "ndcg-chakrabarti" else "ndcg").discount(n)
    parameter = h.chance.choice((1.0, 2.0, 5.0, 1e9, 0.5))
    oracle = _kernels.MeasureOracle(h(form), h(parameter), h(discount), h(h.threads()))
    first = np.r_[0, np.cumsum([n_pos + n_neg for n_pos, n_neg in sizes])]
    n_pos, n_neg = (ints(part) for part in zip(*sizes, strict=True))
    oracle.add_tasks(h(ints(first[:-1])), h(n_pos), h(n_neg), h(np.ones(3)))
    oracle(h(h.scores(first[-1])), h(np.zeros(first[-1])))
    _one_query(h, oracle, *sizes[0])


def by_score(h: Hostile) -> None:
    sizes = [(h.size(1, 4), h.size(1, 30)) for _ in range(3)]
    order = _kernels.RankingByScore(h(h.threads()))
    first = np.r_[0, np.cumsum([n_pos + n_neg for n_pos, n_neg in sizes])]
    n_pos, n_neg = (ints(part) for part in zip(*sizes, strict=True))
    order.add_tasks(h(ints(first[:-1])), h(n_pos), h(n_neg), h(np.ones(3)))
    order(h(h.scores(first[-1])), h(np.zeros(first[-1])))
    order.subtract(h(h.scores(first[-1])), h(np.zeros(first[-1])))
    _kernels.count_below(h(h.scores(h.size(1, 300))), h(h.scores(h.size(0, 30))))


def pairs(h: Hostile) -> None:
    classes_of = [sorted(h.rng.choice(3, size=h.chance.randint(1, 3), replace=False)) for _ in range(h.size(1, 4))]
    classes = ints(np.concatenate(classes_of))
    starts = h.boundaries(classes.size, 0, h.chance.choice((4, 4, 200)))
    queries = np.r_[0, np.cumsum([len(part) for part in classes_of])]
    below = ints([0, 0, 1, 2]), ints([0, 0]), ints([1, 2])
    above = ints([0, 1, 2, 2]), ints([1, 2]), ints([3, 3])
    fourier = h.chance.choice((None, (0.1, 8, 3.0, 0.5), (h(0.1), h(8), h(3.0), h(0.5))))
    sums = _kernels.PairSums(
        h(h.chance.choice(("logistic", "erfc"))), h(h.chance.choice(("direct", "auto", "chebyshev", "fourier"))),
        fourier, h(starts), h(classes), h(ints(queries)), *(h(part) for part in (*below, *above)),
        h(h.chance.choice((None, np.ones(max(0, int(starts[-1])))))), h(h.threads()),
    )  # fmt: skip
    n = int(starts[-1])
    sums(h(h.scores(n)), h(np.zeros(n)), h(1.0), h(True))


def lists(h: Hostile) -> None:
    shape = h.size(0, 6), h.size(0, h.chance.choice((5, 5, 3000)))
    positive = h.rng.random(shape) < 0.4
    valid = h.rng.random(shape) < 0.8 if h.chance.random() < 0.5 else None
    found = _kernels.count_classes(h(positive), h(valid))
    loss, begins, arrays = make_loss("ap"), ([], []), ([], [])
    for n_pos, n_neg in found:
        begins[0].append(sum(map(len, arrays[0])))
        begins[1].append(sum(map(len, arrays[1])))
        if n_pos and n_neg:
            tables = loss.tables(n_pos, n_neg)
            for array, part in zip(arrays, tables, strict=True):
                array.append(part)
    weights, discount = (np.concatenate([*array, []]) for array in arrays)
    dtype = h.chance.choice((np.float32, np.float64))
    with np.errstate(over="ignore"):
        scores = h.scores(positive.size).astype(dtype).reshape(shape)
    _kernels.solve_lists(
        h(h.chance.choice(("bucket", "qs", "greedy"))), h(True), h(h.chance.choice(("hinge", "ramp"))),
        h(scores), h(positive), h(valid), h(ints(begins[0])), h(weights), h(ints(begins[1])),
        h(discount), h(np.zeros(shape[0])), h(np.zeros(shape[0], bool)), h(np.zeros(shape, dtype)), h(h.threads()),
    )  # fmt: skip
    _kernels.soft_rank_losses(
        h(scores), h(positive), h(valid), h(0.1), h(h.chance.random() < 0.5),
        h(np.array(h.chance.choice(([], [1.0, 4.0])))), h(1.0), h(np.zeros(shape[0])),
        h(np.zeros(shape[0], bool)), h(np.zeros(shape, dtype)), h(h.threads()),
    )  # fmt: skip


def decays(h: Hostile) -> None:
    channels, lists, n = h.size(1, 3), h.size(1, 3), h.size(0, 20)
    values = h.scores(channels * lists * n)
    decay = h.rng.random(lists * max(0, n - 1))
    _kernels.decaying_sums(
        h(decay), h(values), h(np.zeros(values.size)), h(channels), h(lists), h(False), h(h.threads())
    )


def svmlight(h: Hostile) -> None:
    text = b"".join(
        b"%d qid:%d %s\n" % (i % 2, i // 5, b" ".join(b"%d:%g" % (j + 1, i * j) for j in range(h.size(0, 4))))
        for i in range(h.size(0, 30))
    )
    from mutator import mutated

    text = mutated(text, h.chance, [text]) if h.chance.random() < 0.5 else text
    options = {
        "zero_based": h(False), "float32": h(False), "n_features": h(-1), "max_features": h(-1),
        "ignore_unknown": h(False), "sort_features": h(False), "multilabel": h(False), "narrow_limit": h(2**31 - 1),
        "threads": h(h.threads()), "least_chunk": h(h.chance.choice((1, 7, 100))), "fill_if": h(1.25),
    }  # fmt: skip
    parser = _kernels.SvmlightParser(**options)
    for at in range(0, len(text), step := h.size(1, 200)):
        parser.feed(h(text[at : at + step]))
        if h.chance.random() < 0.1:
            parser.take(h(False))
    parser.wait()
    parser.finish(h(h.chance.random() < 0.2))


def warp_rows(h: Hostile) -> None:
    n, d = h.size(2, 12), h.size(1, 6)
    n_pos = h.chance.randint(1, n - 1)
    starts, counts = ints(np.zeros(n_pos)), ints(np.full(n_pos, n - n_pos))
    rule = h.chance.choice(("sgd", "adagrad", "adadelta"))
    memory = {"sgd": (0, 0), "adagrad": (d, 0), "adadelta": (d, d)}[rule]
    loop = _kernels.WarpRows(
        h(np.zeros(d)), h(np.ones(memory[0])), h(np.ones(memory[1])), h(ints(np.arange(n_pos))), h(starts), h(counts),
        h(ints(np.arange(n_pos, n))), h(np.arange(n - n_pos + 1.0)),
        h(h.chance.choice(("plugin", "log-unbiased", "exact"))), h(1.0), h.chance.choice((0, 1, 50, -1)), h(rule),
        h(0.1), h(h.chance.choice((0.0, 0.1))), h(16), h(1), h(h.threads()),
    )  # fmt: skip
    order = h(ints(h.rng.permutation(n_pos)))
    if h.chance.random() < 0.5:
        loop.run_csr(_csr(h, n, d), order)
    else:
        loop.run_dense(h(stored(h, n * d).reshape(n, d)), order)
    loop.settle()


def warp_items(h: Hostile) -> None:
    items, factors = h.size(2, 9), h.size(1, 4)
    size = items * (2 * factors + 1)
    rule = h.chance.choice(("sgd", "adagrad", "adadelta"))
    memory = {"sgd": (0, 0), "adagrad": (size, 0), "adadelta": (size, size)}[rule]
    loop = _kernels.WarpItems(
        h(h.rng.normal(size=size).astype(np.float32)), *(h(np.ones(part, np.float32)) for part in memory),
        h(items), h(factors), h(np.arange(items + 1.0)), h(h.chance.choice(("plugin", "log-unbiased", "exact"))),
        h(1.0), h.chance.choice((0, 1, 50, -1)), h(rule), h(0.1), h(h.chance.choice((0.0, 0.1))), h(16), h(1),
        h(h.threads()),
    )  # fmt: skip
    liked = h.rng.random((h.size(1, 5), items)) < 0.4
    width = h.chance.choice((np.int32, np.int64))
    indptr = np.r_[0, np.cumsum(liked.sum(axis=1))].astype(width)
    loop.run(h(indptr), h(np.nonzero(liked)[1].astype(width)), h(ints(np.arange(len(liked)))))
    loop.settle()


ENTRIES: dict[str, Callable[[Hostile], None]] = {
    entry.__name__: entry
    for entry in (
        bags, rows, rules, order, qp, ranking, measure, by_score, pairs, lists, decays,
        svmlight, warp_rows, warp_items,
    )
}  # fmt: skip


def failure(name: str, seed: int) -> str | None:
    """The fault of the calls of an entry; None if each ended, or raised an error of the binding."""
    try:
        ENTRIES[name](Hostile(seed, rate=random.Random(seed).choice((0.0, 0.03, 0.1))))
    except ERRORS:
        return None
    except Exception:
        return traceback.format_exc()
    return None
