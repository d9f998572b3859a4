"""The accuracies, Tables 1 and 2 and Figures 2 and 3 of Mohapatra, Rolínek, Jawahar, Kolmogorov and Kumar, "Efficient
Optimization for Rank-based Loss Functions" (CVPR 2018), on other data, the paper's figures beside ours.

    python scripts/reproduce/quicksort_2018.py [DATA...] [--output bench-output/quicksort-2018] [--quick]

DATA: svmlight files, every class of them against the rest, half the rows to train on; without any, scikit-learn's
digits. As in the paper C is chosen for
each class and loss by 5-fold cross-validation on the training rows, here by the metric that is reported, and every loss
is trained by the plain cutting-plane method.

The figures vary the number of rows of one class, as the paper does with "phoning": 1 positive to 10 negatives; 227
positives; 200 negatives. They are drawn twice: the oracle's time during a training on real rows, and, for sizes that
no data here has, of one call on made scores (normal, the positives' shifted by 1). --output gets the
tables, and with matplotlib the figures as PNG and SVG.

Section 4.3, networks trained a layer at a time, is repeated with small ones (``networks.py``); detection, section 4.2,
by ``latent_detection.py``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from experiments import (
    MULTIPLES,
    QUICK_MULTIPLES,
    Method,
    Problem,
    Timed,
    arguments,
    by_data,
    choose_C,
    describe,
    difference,
    formats,
    machine,
    means_by_class,
    number,
    problems,
    table,
    timed,
    verdicts,
)
from kept import Curves as Drawn
from kept import Pieces, data_files, draw, tables_kept
from networks import Networks, accuracies_of_networks, claims_of_networks, networks, times_of_networks
from threadpoolctl import threadpool_limits

from apsvm.data.labels import of_relevance
from apsvm.losses import make_loss
from apsvm.oracles import make_oracle
from apsvm.trainers.base import TrainingSet

METHODS = {
    "0-1": Method("zero-one"),
    "AP": Method("ap", "greedy"),
    "AP search+select": Method("ap", "search-select"),
    "AP_QS": Method("ap", "qs"),
    "AP bucket": Method("ap", "bucket"),
    "NDCG": Method("ndcg", "greedy"),
    "NDCG_QS": Method("ndcg", "qs"),
    "NDCG bucket": Method("ndcg", "bucket"),
}
#: Tables 1 (seconds) and 2 (milliseconds, their deviation); search+select is what §4.1 says of Mohapatra et al. 2014.
PAPER_SECONDS = {
    "0-1": 0.0694, "AP": 0.7154, "AP search+select": 0.0985, "AP_QS": 0.0625, "NDCG": 6.8019, "NDCG_QS": 0.0473,
}  # fmt: skip
PAPER_MILLISECONDS = {
    "0-1": (0.48, 0.03), "AP": (16.29, 0.18), "AP_QS": (1.48, 0.39), "NDCG": (71.07, 1.57), "NDCG_QS": (0.55, 0.11),
}  # fmt: skip
#: What is reported of which loss, at the C best for it; the tight bound is not in the paper.
ACCURACIES = (("AP", "zero-one"), ("AP", "ap"), ("AP", "ap, tight"), ("nDCG", "zero-one"), ("nDCG", "ndcg"))
ACCURATE = {
    "zero-one": Method("zero-one"),
    "ap": Method("ap"),
    "ap, tight": Method("ap", bound="tight", solver="line-search"),
    "ndcg": Method("ndcg"),
}
PAPER_ACCURACY = {
    "VOC 2011 action, linear": (47.934, 51.196, None, 84.3823, 85.521),
    "VOC 2007 detection, latent": (29.4995, 36.616, None, None, None),
    "CIFAR-10, a network's layers": (84.22, 85.28, None, 95.31, 96.14),
}
FIGURES = {
    "figure-2": ("0-1", "AP", "AP_QS", "AP bucket"),
    "figure-3": ("0-1", "NDCG", "NDCG_QS", "NDCG bucket"),
}
DRAWN = tuple(dict.fromkeys(name for names in FIGURES.values() for name in names))
#: Of phoning.
POSITIVES, NEGATIVES, NEGATIVES_A_POSITIVE = 227, 200, 10
#: A second of greedy's.
MOST_PAIRS = 1e9


@dataclass(frozen=True)
class Result:
    """A problem; by (metric, loss) the metric on the test rows; by method what its training took."""

    problem: Problem
    chosen: Mapping[tuple[str, str], float]
    accuracy: Mapping[tuple[str, str], float]
    runs: Mapping[str, Timed]


def accuracies(
    problem: Problem, multiples: Sequence[float]
) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], float]]:
    """By (metric, loss): the C of the best mean over the folds, and the metric on the test rows."""
    chosen, accuracy = {}, {}
    for loss, method in ACCURATE.items():
        metrics = [metric for metric, of in ACCURACIES if of == loss]
        for metric, C in choose_C(problem, method, metrics, multiples).items():
            chosen[metric, loss] = C
            accuracy[metric, loss] = problem.judge(metric, method.train(problem.training, C).w)
    return chosen, accuracy


def run(problem: Problem, multiples: Sequence[float], repeats: int) -> tuple[Any, ...]:
    """The record of a problem."""
    chosen, accuracy = accuracies(problem, multiples)
    runs = {}
    for name, method in METHODS.items():
        C = chosen["nDCG" if method.loss == "ndcg" else "AP", method.loss]
        runs[name] = timed(problem.training, method, C, repeats)
    return chosen, accuracy, runs


def table_of_accuracies(results: Sequence[Result]) -> str:
    heading = ["mean over the classes, %", *(f"{metric}, {loss} loss" for metric, loss in ACCURACIES)]
    rows = [
        [data, *("-" if value is None else f"{value:.2f}" for value in values)]
        for data, values in PAPER_ACCURACY.items()
    ]
    for data, of_it in by_data(results).items():
        means = (100 * np.mean([result.accuracy[key] for result in of_it]) for key in ACCURACIES)
        rows.append([f"{data}, linear", *(f"{mean:.2f}" for mean in means)])
    return table(heading, rows)


def table_of_seconds(results: Sequence[Result]) -> str:
    rows = [["VOC 2011 (paper)", *(number(PAPER_SECONDS.get(name)) for name in METHODS)]]
    for data, of_it in by_data(results).items():
        rows.append([data, *(number(np.mean([result.runs[name].seconds for result in of_it])) for name in METHODS)])
    for data, of_it in by_data(results).items():
        calls = (np.mean([result.runs[name].milliseconds.size for result in of_it]) for name in METHODS)
        rows.append([f"{data}: calls", *(f"{count:.0f}" for count in calls)])
    return table(["seconds", *METHODS], rows)


def table_of_calls(results: Sequence[Result]) -> str:
    rows = [["VOC 2011 (paper)", *(_with_deviation(PAPER_MILLISECONDS.get(name)) for name in METHODS)]]
    for data, of_it in by_data(results).items():
        every = {name: np.concatenate([result.runs[name].milliseconds for result in of_it]) for name in METHODS}
        rows.append([data, *(_with_deviation((float(ms.mean()), float(ms.std()))) for ms in every.values())])
    return table(["milliseconds", *METHODS], rows)


def _with_deviation(found: tuple[float, float] | None) -> str:
    return "-" if found is None else f"{number(found[0])} ± {found[1]:.2g}"


@dataclass(frozen=True)
class Curves:
    """Method → points (size, seconds), ``against`` rows, negatives or positives, of ``what``."""

    what: str
    against: str
    kept: str
    points: Mapping[str, Sequence[tuple[int, float]]]

    @classmethod
    def measured(
        cls,
        what: str,
        against: str,
        kept: str,
        pairs: Sequence[tuple[int, int]],
        take: Callable[[str, int, int], float],
    ) -> Curves:
        """By the seconds that ``take`` says of a method at P and N, the ``pairs``."""
        at = [{"rows": sum(pair), "negatives": pair[1], "positives": pair[0]}[against] for pair in pairs]
        points = {name: [(n, take(name, *pair)) for n, pair in zip(at, pairs, strict=True)] for name in DRAWN}
        return cls(what, against, kept, points)

    def table(self) -> str:
        sizes = [size for size, _ in self.points[DRAWN[0]]]
        rows = [
            [f"{size:,}", *(number(1e3 * self.points[name][at][1]) for name in DRAWN)] for at, size in enumerate(sizes)
        ]
        rows.append(["growth, power of n", *(f"{self.growth(name):.2f}" for name in DRAWN)])
        return table([f"{self.against} ({self.kept})", *DRAWN], rows)

    def growth(self, name: str) -> float:
        """The slope between the middle and the end of the curve, on two logarithmic axes."""
        half = list(self.points[name])[len(self.points[name]) // 2 :]
        n, seconds = np.log(np.array(half)).T
        return float(np.polyfit(n, seconds, 1)[0])

    def save(self, folder: Path, quick: bool) -> Iterator[Path]:
        for figure, names in FIGURES.items():
            title = f"the oracle in {self.what}, {self.kept}"
            sizes = {name: [size for size, _ in self.points[name]] for name in names}
            lines = {name: (sizes[name], [1e3 * taken for _, taken in self.points[name]]) for name in names}
            picture = Drawn(lines, (self.against, "milliseconds"), "xy", title)
            for end in formats(quick):
                path = folder / f"{figure}-{self.what.split()[-1]}-{self.against}.{end}"
                picture.save(path)
                yield path


def sizes(
    most_pos: int, most_neg: int, most_pairs: float, count: int
) -> Iterator[tuple[str, str, list[tuple[int, int]]]]:
    """The axis, what is constant, and the (P, N) of a curve's points, within the limits on each and on pairs, which
    greedy looks at one by one."""
    top = min(most_pos, most_neg // NEGATIVES_A_POSITIVE, int(np.sqrt(most_pairs / NEGATIVES_A_POSITIVE)))
    totals = _spread(max(2, top // 30), top, count)
    yield "rows", f"P:N = 1:{NEGATIVES_A_POSITIVE}", [(n, NEGATIVES_A_POSITIVE * n) for n in totals]
    n_pos, n_neg = min(POSITIVES, most_pos), min(NEGATIVES, most_neg)
    yield "negatives", f"P = {n_pos}", [(n_pos, n) for n in _spread(max(2, most_neg // 100), most_neg, count)]
    yield "positives", f"N = {n_neg}", [(n, n_neg) for n in _spread(max(2, most_pos // 30), most_pos, count)]


def _spread(low: int, high: int, count: int) -> list[int]:
    return sorted({round(size) for size in np.geomspace(low, high, count).tolist()})


def seconds_of_training(result: Result, repeats: int, name: str, n_pos: int, n_neg: int) -> float:
    """In the oracle, on the first rows of each class; the same rows for every method and in larger parts."""
    method, relevant = METHODS[name], result.problem.relevant
    rows = np.concatenate([np.flatnonzero(relevant)[:n_pos], np.flatnonzero(~relevant)[:n_neg]])
    C = result.chosen["nDCG" if method.loss == "ndcg" else "AP", method.loss]
    data = TrainingSet(result.problem.rows.select(rows), of_relevance(relevant[rows]))
    return timed(data, method, C, repeats).seconds


def seconds_of_call(budget: float, name: str, n_pos: int, n_neg: int) -> float:
    """CPU time on made scores, new ones for each call, as in a training: the median."""
    method = METHODS[name]
    loss = make_loss(method.loss)
    rng = np.random.default_rng(0)
    oracle = make_oracle(method.oracle, loss).bind(loss, n_pos, n_neg)
    out = np.empty(n_pos), np.empty(n_neg)
    taken: list[float] = []
    while len(taken) < 3 or (sum(taken) < budget and len(taken) < 100):
        scores = rng.normal(size=n_pos) + 1.0, rng.normal(size=n_neg)
        began = time.process_time()
        oracle(*scores, *out)
        taken.append(time.process_time() - began)
    return float(np.median(taken))


def verdict(results: Sequence[Result], of_networks: Sequence[Networks], made: Sequence[Curves], *, quick: bool) -> str:
    """Claims of the paper confirmed by the figures above."""

    def gain(metric: str, loss: str) -> tuple[bool, str]:
        means = (means_by_class(results, lambda r, of=of: r.accuracy[metric, of]) for of in (loss, "zero-one"))
        found = difference(*means)
        return found.is_shown and found.mean > 0, f"test {metric} {found}"

    def total(name: str) -> float:
        return sum(result.runs[name].seconds for result in results)

    def per_call(name: str) -> float:
        return float(np.mean(np.concatenate([result.runs[name].milliseconds for result in results])))

    def ratio(first: str, second: str) -> float:
        return per_call(first) / per_call(second)

    sooner = {name: sum(r.runs[name].seconds < r.runs["0-1"].seconds for r in results) for name in ("AP_QS", "NDCG_QS")}
    by_rows = next(curve for curve in made if curve.against == "rows")
    largest = by_rows.points["AP"][-1][0]

    def times(greedy: str, other: str) -> str:
        at_largest = by_rows.points[greedy][-1][1] / by_rows.points[other][-1][1]
        return f"{total(greedy) / total(other):.1f} times faster; {at_largest:.0f} times on {largest:,} made scores"

    by_negatives = next(curve for curve in made if curve.against == "negatives")
    growth = {name: by_negatives.growth(name) for name in DRAWN}
    claims = [
        ("the AP loss gives a better AP than the 0-1 loss (there by 3.26 points)", *gain("AP", "ap")),
        ("the tight bound of the AP loss does (not in the paper)", *gain("AP", "ap, tight")),
        ("the NDCG loss gives a better nDCG than the 0-1 loss (there by 1.14 points)", *gain("nDCG", "ndcg")),
        ("QS takes less than a tenth of greedy's time for the AP loss (there 11.4 times faster)",
         total("AP") >= 10 * total("AP_QS"), times("AP", "AP_QS")),
        ("and for the NDCG loss (there 144 times faster)", total("NDCG") >= 10 * total("NDCG_QS"),
         times("NDCG", "NDCG_QS")),
        ("QS is faster than search+select (there 1.6 times; the text says 3)",
         total("AP search+select") > total("AP_QS"), f"{total('AP search+select') / total('AP_QS'):.2f} times"),
        ("greedy is slower for NDCG than for AP (there 4.4 times a call)", ratio("NDCG", "AP") > 2,
         f"{ratio('NDCG', 'AP'):.2f} times a call: one kernel serves both here"),
        ("a call of QS costs little more than one for the 0-1 loss (there 3.1 times for AP, 1.1 for NDCG)",
         max(ratio("AP_QS", "0-1"), ratio("NDCG_QS", "0-1")) <= 3.1,
         f"{ratio('AP_QS', '0-1'):.1f} times for AP, {ratio('NDCG_QS', '0-1'):.1f} for NDCG; by buckets "
         f"{ratio('AP bucket', '0-1'):.1f} and {ratio('NDCG bucket', '0-1'):.1f}"),
        ("in some cases a training with QS takes less than one with the 0-1 loss, which needs more calls",
         any(sooner.values()), f"of {len(results)} trainings: " + ", ".join(f"{n} on {k}" for n, k in sooner.items())),
        ("QS's time grows no faster than linearly with the negatives, as the 0-1 loss's",
         max(growth["AP_QS"], growth["NDCG_QS"]) < 1.15,
         "power of N, P kept: " + ", ".join(f"{name} {power:.2f}" for name, power in growth.items())),
    ]  # fmt: skip
    return verdicts([*claims, *claims_of_networks(of_networks)], quick=quick)


def main() -> None:
    parser = arguments(__doc__, "bench-output/quicksort-2018")
    options = parser.parse_args()
    options.data = data_files(parser, options.data, "digits", options.output)
    with tables_kept(options.output):
        drawn = measure(options)
    draw(
        lambda: [print(path, file=sys.stderr) for curve in drawn for path in curve.save(options.output, options.quick)]
    )


def measure(options: argparse.Namespace) -> list[Curves]:
    """All tables, printed, and what is to be drawn."""
    multiples, repeats = (QUICK_MULTIPLES, 1) if options.quick else (MULTIPLES, 3)
    points = 4 if options.quick else 8
    largest = 1000 if options.quick else 100_000
    print(f"{machine()}\n")
    results, of_networks, pieces = [], [], Pieces(options)
    for problem in problems(options.data, splits=1 if options.quick else options.splits, quick=options.quick):
        results.append(Result(problem, *pieces(problem.full_name, partial(run, problem, multiples, repeats))))
        of_networks.append(Networks(problem, *pieces(f"{problem.full_name}, networks", partial(networks, problem))))
    phoning = max(results, key=lambda result: int(result.problem.relevant.sum()))
    n_pos, n_rows = int(phoning.problem.relevant.sum()), phoning.problem.relevant.size
    training = partial(seconds_of_training, phoning, repeats)
    real = [
        pieces(
            f"{phoning.problem.full_name}, against {size[0]}", partial(Curves.measured, "a training", *size, training)
        )
        for size in sizes(n_pos, n_rows - n_pos, MOST_PAIRS, points)
    ]
    call = partial(seconds_of_call, 0.01 if options.quick else 0.5)
    made = [
        pieces(f"made scores, against {size[0]}", partial(Curves.measured, "a call", *size, call))
        for size in sizes(largest, 10 * largest, MOST_PAIRS, points)
    ]
    print(
        "The data are not the paper's: PASCAL VOC 2011's poselet features are not to be had. In their place, one class"
    )
    print("against the rest:")
    print(describe([result.problem for result in results]))
    print("Section 4.2, detection by latent AP-SVM, is repeated by latent_detection.py, on made scenes.")
    print("The network of section 4.3 (CIFAR-10) is convolutional; ours have a hidden layer of 16 units.")
    print("ResNet18_CIFAR10_0 is a network's features of CIFAR-10, kept as they are.")
    for title, found in [
        ("Accuracies of sections 4.1 to 4.3; ours are of linear rankers.", table_of_accuracies(results)),
        ("Section 4.3. Networks trained a layer at a time.", accuracies_of_networks(of_networks)),
        ("Section 4.3. Times of their trainings.", times_of_networks(of_networks)),
        ("Table 1. Seconds in the oracle during a training, mean over the classes.", table_of_seconds(results)),
        ("Table 2. Milliseconds of one call, mean ± deviation over all calls.", table_of_calls(results)),
        *((f"Figures 2, 3. Milliseconds of {curve.what} ({phoning.problem.name}).", curve.table()) for curve in real),
        *((f"Figures 2, 3. Milliseconds of {curve.what} on made scores.", curve.table()) for curve in made),
        ("What of the paper is seen here?", verdict(results, of_networks, made, quick=options.quick)),
    ]:  # fmt: skip
        print(f"\n{title}\n\n{found}")
    return [*real, *made]


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
