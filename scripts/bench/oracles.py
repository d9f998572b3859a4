"""The repository's oracle benchmark: time a call of every oracle for a loss, in one run.

    python scripts/bench/oracles.py            P = 100 and P = 1,000, N = 1e3 … 1e6, one thread; --json FILE writes it
    python scripts/bench/oracles.py --loss ndcg    the same for another loss
    python scripts/bench/oracles.py --large    the bucket oracle against qs up to N = 1e7
    python scripts/bench/oracles.py --bars     against np.sort, by loss, on hostile scores, as a public function, in a
                                               training: each with the ratio that it is held to; --json FILE writes them

Of --bars, times but that of the training are CPU time of the calling thread, which of two threads has half the work and
what is not shared out: what two free cores would give, whatever else runs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from apsvm import most_violated_ranking
from apsvm._support.types import JsonDict
from apsvm.losses import make_loss
from apsvm.losses.base import Loss
from apsvm.oracles import make_oracle, serving
from apsvm.oracles.base import Violation
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.structured_svm.plan import Plan
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.stage import Trained
from apsvm.trainers.structured_svm.training import train

T = TypeVar("T")
Scores = tuple[NDArray[np.float64], NDArray[np.float64]]


def fastest(call: Callable[[], T], *, budget: float = 1.0, at_least: int = 3) -> tuple[float, T]:
    """Seconds of the fastest of ``at_least`` calls or as many as ``budget`` seconds hold, and the last result."""
    best, spent, count = np.inf, 0.0, 0
    while count < at_least or (spent < budget and count < 200):
        began = time.perf_counter()
        result = call()
        taken = time.perf_counter() - began
        best, spent, count = min(best, taken), spent + taken, count + 1
    return best, result


def normal_scores(rng: np.random.Generator, n_pos: int, n_neg: int, shift: float) -> Scores:
    """Normal scores, the positives' shifted: 1 leaves most negatives above some positive, as early in a training, 5
    leaves few, as at its end."""
    return rng.normal(size=n_pos) + shift, rng.normal(size=n_neg)


def oracle_table(loss: Loss, queries: Sequence[Scores], *, timings: list[JsonDict]) -> Iterator[str]:
    """Lines of a table: milliseconds a call of every oracle that serves the loss, and how many times faster than the
    first of them it is; beside it np.sort of all scores; the largest relative difference of their objectives.
    ``timings`` gets each of the oracles."""
    names = [name for name in serving(loss) if name != "brute-force"]
    yield f"loss {loss.name}, one thread; milliseconds a call (times faster than {names[0]})"
    yield (
        f"{'P':>7} {'N':>9} {'np.sort':>9} "
        + "".join(f"{name:>21}" for name in names)
        + f"{'r <= P':>10} {'differ':>8}"
    )
    for scores_pos, scores_neg in queries:
        n_pos, n_neg = scores_pos.size, scores_neg.size
        weights = np.empty(n_pos), np.empty(n_neg)
        sorting, _ = fastest(partial(np.sort, np.concatenate([scores_pos, scores_neg])), budget=0.3)
        cells: list[str] = []
        result: list[Violation] = []
        baseline = 0.0
        for name in names:
            oracle = make_oracle(name, loss).bind(loss, n_pos, n_neg)
            seconds, violation = fastest(partial(oracle, scores_pos, scores_neg, *weights))
            baseline = baseline or seconds
            cells.append(f"{1e3 * seconds:>11.3f} ({baseline / seconds:>6.1f}x)")
            result.append(violation)
            timings.append(
                {
                    "oracle": name,
                    "loss": loss.name,
                    "threads": 1,
                    "n_pos": n_pos,
                    "n_neg": n_neg,
                    "seconds": seconds,
                    "violating": violation.violating,
                }
            )
        values = [violation.value for violation in result]
        spread = (max(values) - min(values)) / (max(values) or 1.0)
        yield (
            f"{n_pos:>7} {n_neg:>9} {1e3 * sorting:>9.3f} "
            + "".join(f"{cell:>21}" for cell in cells)
            + f"{result[0].violating:>10} {spread:>8.0e}"
        )


def train_ap(data: TrainingSet, C: float, *, bound: str = "hinge", solver: str = "line-search") -> Trained:
    """An AP-SVM of which nothing is left to be chosen."""
    settings = StructuredSettings(C=(C,), bound=bound, solver=solver)
    (trained,) = train(Plan(loss=make_loss("ap"), settings=settings), data, Watch())
    return trained


def bound(name: str, scores: Scores, *, loss: str = "ap", threads: int = 1) -> Callable[[], object]:
    """A call of the oracle on these scores."""
    made = make_loss(loss)
    n_pos, n_neg = scores[0].size, scores[1].size
    oracle = make_oracle(name, made).bind(made, n_pos, n_neg, threads=threads)
    return partial(oracle, *scores, np.empty(n_pos), np.empty(n_neg))


def milliseconds(name: str, scores: Scores, threads: int = 1) -> float:
    call = bound(name, scores, threads=threads)
    call()
    return 1e3 * fastest(call, budget=2.0)[0]


def side_by_side(calls: Sequence[Callable[[], object]]) -> list[float]:
    """Processor seconds of the fastest of several rounds, of each of the calls: they take turns, so that what else the
    machine does meets all of them."""
    best, spent, rounds = [np.inf] * len(calls), 0.0, 0
    for call in calls:
        call()
    while rounds < 5 or (spent < len(calls) and rounds < 200):
        for which, call in enumerate(calls):
            began = time.thread_time()
            call()
            taken = time.thread_time() - began
            best[which], spent = min(best[which], taken), spent + taken
        rounds += 1
    return best


def hostile_scores(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    in_step = np.arange(n) % (n // 4096) == 0
    return {
        "Cauchy": rng.standard_cauchy(size=n),
        "log-normal": rng.lognormal(sigma=3.0, size=n),
        "constant": np.full(n, 0.5),
        "two values": rng.integers(0, 2, size=n) * 1.0,
        "sorted": np.sort(rng.normal(size=n)),
        "in step with 1 of 4096": np.where(in_step, rng.normal(size=n), 1e-6 * rng.normal(size=n)),
        "one outlier": np.where(np.arange(n) == n // 3, 1e9, rng.normal(size=n)),
        "denormal": 5e-324 * rng.integers(0, 1000, size=n),
    }


def large() -> None:
    print("normal scores, P = 1,000, shift 1: milliseconds a call, nanoseconds a negative")
    print(f"{'N':>9} {'qs':>10} {'bucket':>10} {'ratio':>7} {'ns/neg':>7} {'2 threads':>10} {'speed-up':>9}")
    for n_neg in (1000, 3000, 10_000, 100_000, 1_000_000, 10_000_000):
        scores = normal_scores(np.random.default_rng(0), 1000, n_neg, 1.0)
        qs, one, two = milliseconds("qs", scores), milliseconds("bucket", scores), milliseconds("bucket", scores, 2)
        print(
            f"{n_neg:>9} {qs:>10.3f} {one:>10.3f} {qs / one:>7.1f} {1e6 * one / n_neg:>7.1f} {two:>10.3f} "
            f"{one / two:>9.2f}"
        )


@dataclass(frozen=True, slots=True)
class Bar:
    """A time and its rival's from the same rounds, and what their ratio is held to.

    Attributes
    ----------
    what, against : str
    milliseconds, rival : float
    most : the largest ratio, or for ``faster`` the least times faster
    """

    what: str
    against: str
    milliseconds: float
    rival: float
    most: float
    faster: bool = False

    @property
    def ratio(self) -> float:
        return self.rival / self.milliseconds if self.faster else self.milliseconds / self.rival

    @property
    def held(self) -> bool:
        return self.ratio >= self.most if self.faster else self.ratio <= self.most

    def __str__(self) -> str:
        bar = f"{'>=' if self.faster else '<='} {self.most:g}"
        return (
            f"{self.what:<46} {self.milliseconds:>9.3f} {self.against:<20} {self.rival:>9.3f} {self.ratio:>7.2f} "
            f"{bar:>7} {'' if self.held else 'MISSED'}"
        )


def sorts_vectorised() -> bool:
    """Whether np.sort has AVX-512: it is then several times faster than a comparison sort."""
    features: dict[str, bool] = np._core._multiarray_umath.__cpu_features__
    return features.get("AVX512_SKX", False)


#: (P, N): few positives, as many as negatives, and what large data have.
SIZES = (
    (1000, 1_000_000),
    (10_000, 10_000),
    (10_000, 100_000),
    (10_000, 1_000_000),
    (100_000, 100_000),
    (100_000, 1_000_000),
    (30_000, 3_000_000),
)


def against_sorting() -> Iterator[Bar]:
    most = 2.5 if sorts_vectorised() else 1.0
    for n_pos, n_neg in SIZES:
        for shift in (0.0, 1.0, 5.0):
            scores = normal_scores(np.random.default_rng(0), n_pos, n_neg, shift)
            sort = partial(np.sort, np.concatenate(scores))
            one, rival = side_by_side([bound("bucket", scores), sort])
            size = f"P = {n_pos:,}, N = {n_neg:,}, shift {shift:g}"
            yield Bar(size, "np.sort", 1e3 * one, 1e3 * rival, most)
            if n_neg >= 10**6 and shift < 5.0:
                two, one = side_by_side([bound("bucket", scores, threads=2), bound("bucket", scores)])
                yield Bar(f"{size}, 2 threads", "1 thread", 1e3 * two, 1e3 * one, 1.6, faster=True)


def by_loss() -> Iterator[Bar]:
    losses = ("ndcg@10", "p@10", "f1", "set-p@10", "prbep")
    for shift in (1.0, 5.0):
        scores = normal_scores(np.random.default_rng(0), 1000, 10**6, shift)
        ap, *others = side_by_side([bound("auto", scores, loss=loss) for loss in ("ap", *losses)])
        for loss, seconds in zip(losses, others, strict=True):
            yield Bar(f"{loss}, N = 1,000,000, shift {shift:g}", "ap", 1e3 * seconds, 1e3 * ap, 1.5)


def on_hostile_scores() -> Iterator[Bar]:
    n = 10**6
    for n_pos in (1000, 10**5):
        rng = np.random.default_rng(0)
        normal = bound("bucket", normal_scores(rng, n_pos, n, 1.0))
        for kind, scores_neg in hostile_scores(rng, n).items():
            scores_pos = rng.choice(scores_neg, size=n_pos) + 0.5 * np.median(np.abs(scores_neg))
            seconds, rival = side_by_side([bound("bucket", (scores_pos, scores_neg)), normal])
            yield Bar(f"{kind}, P = {n_pos:,}", "normal scores", 1e3 * seconds, 1e3 * rival, 2.0)


def as_a_function() -> Iterator[Bar]:
    for n_pos in (1000, 10**5):
        rng = np.random.default_rng(0)
        relevant = rng.permutation(10**6) < n_pos
        scores = rng.normal(size=relevant.size) + relevant
        kernel = bound("bucket", (scores[relevant], scores[~relevant]))
        seconds, rival = side_by_side([partial(most_violated_ranking, scores, relevant), kernel])
        yield Bar(f"most_violated_ranking, P = {n_pos:,}, N = 1e6", "its kernel", 1e3 * seconds, 1e3 * rival, 1.5)


def in_training(n: int = 3_000_000) -> Iterator[Bar]:
    """A training on n x 20 normal rows, 1 % positive, C = 10: the oracle's share, and two threads."""
    from threadpoolctl import threadpool_limits

    from apsvm.data.labels import of_relevance
    from apsvm.data.rows import Rows

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20))
    target = X @ rng.normal(size=20) / np.sqrt(20) + 0.5 * rng.normal(size=n)
    relevant = of_relevance(target > np.quantile(target, 0.99))
    seconds = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            began = time.perf_counter()
            trained = train_ap(TrainingSet(Rows(X, threads=threads), relevant), 10.0)
            seconds.append(time.perf_counter() - began)
        if threads == 1:
            oracle = sum(stage.spans["oracle"].wall_ns / 1e9 for stage in trained.stages)
            yield Bar(f"oracle in {n:,} x 20", "training", 1e3 * oracle, 1e3 * seconds[0], 1 / 3)
    yield Bar(f"training on {n:,} x 20, 2 threads", "1 thread", 1e3 * seconds[1], 1e3 * seconds[0], 1.6, faster=True)


def bars(path: str | None) -> None:
    result: list[Bar] = []
    for table in (against_sorting, by_loss, on_hostile_scores, as_a_function, in_training):
        for bar in table():
            print(bar, flush=True)
            result.append(bar)
        print()
    print(f"{sum(bar.held for bar in result)} of {len(result)} bars held")
    if path is not None:
        rows = [{**asdict(bar), "ratio": bar.ratio, "held": bar.held} for bar in result]
        Path(path).write_text(json.dumps({"bars": rows}, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--bars", action="store_true")
    parser.add_argument("--loss", metavar="NAME", help="of the first table (ap)")
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    if arguments.json is not None and arguments.large:
        parser.error("--json does not go with --large")
    if arguments.loss is not None and (arguments.large or arguments.bars):
        parser.error("--loss is for the first table")
    if arguments.bars:
        bars(arguments.json)
        return
    if arguments.large:
        large()
        return
    loss = make_loss(arguments.loss or "ap")
    result: list[JsonDict] = []
    for n_pos in (100, 1000):
        for shift in (1.0, 5.0):
            print(f"normal scores, the positives' shifted by {shift:g}")
            rng = np.random.default_rng(0)
            queries = [normal_scores(rng, n_pos, n_neg, shift) for n_neg in (1000, 10_000, 100_000, 1_000_000)]
            timings: list[JsonDict] = []
            print("\n".join(oracle_table(loss, queries, timings=timings)), end="\n\n", flush=True)
            result += [{"shift": shift, **one} for one in timings]
    if arguments.json is not None:
        Path(arguments.json).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
