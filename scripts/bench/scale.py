"""Training on a cluster: two workers against one process, growth with the rows, scores that stay open, many workers.

    python scripts/bench/scale.py [--quick] [--json FILE] [--repetitions N] [--largest ROWS]
                                  [--only two,growth,open,many]

Rows are made where they are needed (``MadePart``): 20 standard normal features in float32, 1 % of
the rows positive, or about 1,000 of them where the rows grow. Prints tables, and writes the figures as JSON. The
figures of many workers are computed, not measured; the assumptions are printed with them. --quick: sizes that only show
that everything runs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from apsvm.dask.actors import ActorCrew, cluster_of
from apsvm.dask.crew import LocalCrew, Traffic
from apsvm.dask.data import ShardedData
from apsvm.dask.fitting import ShardedFit
from apsvm.dask.long_list import ListRisk
from apsvm.dask.sources import ArrayPart
from apsvm.data.dataset import Dataset
from apsvm.data.labels import LabelOptions, threshold
from apsvm.losses import make_loss
from apsvm.oracles import make_oracle
from apsvm.risk import make_risk
from apsvm.selection.completion import outcomes
from apsvm.trainers.base import Outcome, Watch
from apsvm.trainers.fitting import FeatureOptions, Fit
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer

FEATURES = 20
#: Standard deviation of what is added to the plane's score.
NOISE = 2.0
#: Bytes a second that the driver's network moves, in one direction; and between two machines, there and back, seconds.
BANDWIDTH, LATENCY = 1.25e9, 5e-4


#: Iterations of the trainings whose rounds and bytes are counted.
COUNTED = 25
#: And their positives, about: what is gathered of these grows with them, and not with the rows.
POSITIVES = 1000


@dataclass(frozen=True)
class MadePart:
    """Rows drawn where they are needed: X standard normal, and labels that a plane with noise tells apart.

    Attributes
    ----------
    rows : int
    positives : the share of rows that are positive, about
    number : of the part, from 0
    """

    rows: int
    positives: float
    number: int

    @property
    def name(self) -> str:
        return f"made part {self.number}"

    def read(self, threads: int) -> Dataset:
        plane = np.random.default_rng(0).standard_normal(FEATURES)
        rng = np.random.default_rng([0, self.number])
        X = rng.standard_normal((self.rows, FEATURES), dtype=np.float32)
        scores = X @ (plane / np.linalg.norm(plane)).astype(np.float32) + NOISE * rng.standard_normal(self.rows)
        line = NormalDist(0.0, float(np.hypot(1.0, NOISE))).inv_cdf(1.0 - self.positives)
        return Dataset(X, (scores > line).astype(np.float64), None, None, False, self.name, "", 0)


def trainer(threads: int = 2, iterations: int = 10_000) -> StructuredSVMTrainer:
    return StructuredSVMTrainer("ap", StructuredSettings(bound="hinge", threads=threads, max_iterations=iterations))


def parts_of(rows: int, parts: int, share: float = 0.01) -> list[MadePart]:
    """``rows`` in all, of which this share is positive, about."""
    each = np.diff(np.linspace(0, rows, parts + 1).astype(int)).tolist()
    return [MadePart(size, share, number) for number, size in enumerate(each)]


class IterationsLog:
    """The records of iterations, and when each was written."""

    def __init__(self) -> None:
        self.iterations: list[dict[str, Any]] = []
        self.times: list[float] = []

    def write(self, event: str, **fields: Any) -> None:
        if event == "iteration":
            self.iterations.append(fields)
            self.times.append(time.perf_counter())


@dataclass
class Run:
    """A training: its outcome, seconds, and what each iteration took."""

    outcome: Outcome
    seconds: float
    iterations: list[dict[str, Any]]
    times: list[float]

    @property
    def seconds_alone(self) -> float:
        """What the driver worked in an iteration, without the workers; the first counts for what is done once."""
        waited = sum(iteration["cluster_seconds"] for iteration in self.iterations[1:])
        return (self.times[-1] - self.times[0] - waited) / (len(self.times) - 1)

    def each(self, field: str) -> float:
        """The mean over the iterations."""
        return float(np.mean([iteration[field] for iteration in self.iterations]))


def train_on(client: Any, rows: int, share: float = 0.01, iterations: int = 10_000) -> Run:
    crew = ActorCrew(client, parts_of(rows, 2, share))
    data = ShardedData.of(crew, "made rows")
    fit = ShardedFit.of(data, trainer(iterations=iterations), LabelOptions(), FeatureOptions())
    log, began = IterationsLog(), time.perf_counter()
    (outcome,) = fit.outcomes(Watch(log=log))
    seconds = time.perf_counter() - began
    crew.close()
    return Run(outcome, seconds, log.iterations, log.times)


def risk_on(client: Any, rows: int, w: NDArray[np.float64]) -> float:
    """Of the ranker w, as the shards find it."""
    crew = ActorCrew(client, parts_of(rows, 2))
    data = ShardedData.of(crew, "made rows")
    data.tell(threshold(data.labels))
    data.scale("none", None)
    data.take_list()
    risk = ListRisk(data.vectors, make_loss("ap"), data.n_pos, data.n_neg)
    value = risk.tangent(risk.scores(w), data.vectors.empty()).value
    crew.close()
    return value


def whole(rows: int, parts: int = 2) -> Fit:
    """The same rows in this process."""
    read = [part.read(1) for part in parts_of(rows, parts)]
    dataset = replace(
        read[0],
        X=np.concatenate([part.X for part in read]),
        relevance=np.concatenate([part.relevance for part in read]),
    )
    return Fit.of(dataset, trainer(), LabelOptions(), FeatureOptions())


def train_here(fit: Fit) -> Run:
    log, began = IterationsLog(), time.perf_counter()
    (outcome,) = outcomes(fit, Watch(log=log))
    return Run(outcome, time.perf_counter() - began, log.iterations, log.times)


def two_workers(rows: int, repetitions: int) -> dict[str, Any]:
    """Two workers of a thread against one process of two, in turn; the least time of each counts."""
    fit = whole(rows)
    here, there = [], []
    with cluster_of("local:2") as client:
        for _ in range(repetitions):
            there.append(train_on(client, rows))
            here.append(train_here(fit))
        w = here[0].outcome.w
        assert isinstance(w, np.ndarray)
        there_at_w = risk_on(client, rows, w)
    plain = make_risk(fit.rows(), fit.target.relevant, make_loss("ap"), make_oracle("auto", make_loss("ap")))
    here_at_w = plain.tangent(plain.scores(w), np.empty(rows)).value
    one, two = (min(runs, key=lambda run: run.seconds) for runs in (here, there))
    primal = [run.outcome.certificate.primal for run in (one, two)]  # type: ignore[union-attr]
    result = {
        "rows": rows,
        "one_process_seconds": one.seconds,
        "two_workers_seconds": two.seconds,
        "ratio": two.seconds / one.seconds,
        "iterations": [one.outcome.iterations, two.outcome.iterations],
        "relative_difference_of_objectives": abs(primal[0] - primal[1]) / primal[0],
        "relative_difference_of_risks_at_one_point": abs(there_at_w - here_at_w) / here_at_w,
        "rounds_per_iteration": two.each("rounds"),
        "waited_per_round_ms": 1e3 * two.each("cluster_seconds") / two.each("rounds"),
        "worked_per_round_ms": 1e3 * two.each("working_seconds") / two.each("rounds"),
    }
    print(f"two workers against one process of two threads, {rows:,} × {FEATURES} rows, least of {repetitions}")
    for name, value in result.items():
        print(f"  {name:36} {value}")
    return result


def growth(sizes: list[int]) -> list[dict[str, Any]]:
    """Rounds, and bytes of a worker, for each iteration."""
    print(f"growth, two workers, the first {COUNTED} iterations, about {POSITIVES} positives")
    print(f"{'rows':>12} {'iter':>5} {'seconds':>9} {'rounds/iter':>12} {'kB/iter/worker':>15}")
    result = []
    with cluster_of("local:2") as client:
        for rows in sizes:
            run = train_on(client, rows, POSITIVES / rows, iterations=COUNTED)
            sent, received = run.each("bytes_sent") / 2, run.each("bytes_received") / 2
            figures = {
                "rows": rows,
                "iterations": run.outcome.iterations,
                "seconds": run.seconds,
                "rounds_per_iteration": run.each("rounds"),
                "bytes_sent_per_iteration_and_worker": sent,
                "bytes_received_per_iteration_and_worker": received,
                "worked_seconds_per_iteration": run.each("working_seconds"),
                "driver_seconds_per_iteration": run.seconds_alone,
            }
            result.append(figures)
            print(
                f"{rows:>12,} {run.outcome.iterations:>5} {run.seconds:>9.2f} {figures['rounds_per_iteration']:>12.1f}"
                f" {(sent + received) / 1e3:>15.1f}"
            )
    return result


SCORES: dict[str, Callable[[np.random.Generator, int], NDArray[np.float64]]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "cauchy": lambda rng, n: rng.standard_cauchy(size=n),
    "rounded to .01": lambda rng, n: np.round(rng.normal(size=n), 2),
    "sorted": lambda rng, n: np.sort(rng.normal(size=n)),
}


def open_scores(rows: int, positives: list[int]) -> list[dict[str, Any]]:
    """Scores in open bins after the first count, and what settling them took: of a first call, whose bins are made of a
    sample of its scores, and of a second one nearby, which begins with the first one's bins."""
    print(
        f"open scores, {rows:,} negatives, two shards\n"
        f"{'scores':>16} {'P':>8} {'call':>5} {'open':>12} {'levels':>7} {'gathered':>9} {'rounds':>7}"
        f" {'kB/worker':>10}"
    )
    result = []
    for n_pos in positives:
        for name, draw in SCORES.items():
            rng = np.random.default_rng(0)
            y = np.repeat([1.0, 0.0], [n_pos, rows])
            X = np.column_stack([draw(rng, n_pos + rows) + 0.5 * y, rng.normal(size=n_pos + rows)])
            order = rng.permutation(y.size) if name != "sorted" else np.arange(y.size)
            X, y = X[order], y[order]
            half = y.size // 2
            crew = LocalCrew([[ArrayPart(X[:half], y[:half])], [ArrayPart(X[half:], y[half:])]])
            data = ShardedData.of(crew, "made scores")
            data.tell(threshold(data.labels))
            data.scale("none", None)
            data.take_list()
            risk = ListRisk(data.vectors, make_loss("ap"), data.n_pos, data.n_neg)
            for call, w in enumerate((np.array([1.0, 0.0]), np.array([1.02, 0.0]))):
                slopes = data.vectors.empty()
                crew.take_traffic()
                risk.tangent(risk.scores(w), slopes)
                traffic: Traffic = crew.take_traffic()
                effort = risk.effort
                figures = {
                    "scores": name,
                    "positives": n_pos,
                    "call": call + 1,
                    "open": effort.open_scores[-1],
                    "levels": effort.levels[-1],
                    "gathered": risk.account().calls[-1].ranks_evaluated,
                    "rounds": traffic.rounds,
                    "bytes_per_worker": (traffic.sent + traffic.received) / 2,
                }
                result.append(figures)
                print(
                    f"{name:>16} {n_pos:>8,} {call + 1:>5} {figures['open']:>12,} {figures['levels']:>7}"
                    f" {figures['gathered']:>9,} {figures['rounds']:>7} {figures['bytes_per_worker'] / 1e3:>10.1f}"
                )
    return result


def round_time(workers: int, repetitions: int) -> float:
    """Seconds of a round without work: the least of some."""
    with cluster_of(f"local:{workers}") as client:
        crew = ActorCrew(client, parts_of(10 * workers, workers))
        times = []
        for _ in range(repetitions):
            began = time.perf_counter()
            crew.ask("ping")
            times.append(time.perf_counter() - began)
        crew.close()
    return min(times)


def many_workers(grown: dict[str, Any], rows: int, repetitions: int) -> dict[str, Any]:
    """Seconds of an iteration of ``rows`` rows on many workers, from what two took for ``grown["rows"]``."""
    # Medians: the difference of two clusters' least times is small beside what differs from one cluster to the next.
    one, two = np.median([[round_time(workers, repetitions) for workers in (1, 2)] for _ in range(3)], axis=0).tolist()
    for_each = max(two - one, 0.0)
    fixed = max(one - for_each, 0.0) + LATENCY
    rounds = grown["rounds_per_iteration"]
    moved = grown["bytes_sent_per_iteration_and_worker"] + grown["bytes_received_per_iteration_and_worker"]
    worked_for_a_row = 2 * grown["worked_seconds_per_iteration"] / grown["rows"]
    driver = grown["driver_seconds_per_iteration"]
    print(
        f"simulated: {rows:,} × {FEATURES} rows on W workers of one thread\n"
        f"assumptions: a round takes {1e3 * fixed:.2f} ms and {1e3 * for_each:.2f} ms for each worker (measured with\n"
        f"one and two local workers that have nothing to do, and {1e3 * LATENCY:g} ms of network on top); an\n"
        f"iteration has {rounds:.1f} rounds, moves {moved / 1e3:.0f} kB for each worker over the driver's one link of\n"
        f"{BANDWIDTH / 1e9:g} GB/s, and takes a worker {1e9 * worked_for_a_row:.1f} ns a row and the driver\n"
        f"{1e3 * driver:.1f} ms (measured with two workers and {grown['rows']:,} rows). Workers are as fast as these\n"
        "and all alike; none waits for the memory of another.\n"
        f"{'W':>6} {'work s':>9} {'rounds s':>9} {'network s':>10} {'driver s':>9} {'iteration s':>12}"
    )
    table = []
    for workers in (8, 30, 100, 300, 1000):
        work = worked_for_a_row * rows / workers
        in_rounds, network = rounds * (fixed + for_each * workers), moved * workers / BANDWIDTH
        total = work + in_rounds + network + driver
        table.append({"workers": workers, "work": work, "rounds": in_rounds, "network": network, "seconds": total})
        print(f"{workers:>6} {work:>9.3f} {in_rounds:>9.3f} {network:>10.3f} {driver:>9.3f} {total:>12.3f}")
    return {"rows": rows, "round_fixed": fixed, "round_for_each_worker": for_each, "table": table}


@contextmanager
def written_to(path: str | None) -> Iterator[dict[str, Any]]:
    """What is put in goes to the file, also where the rest was broken off."""
    figures: dict[str, Any] = {}
    try:
        yield figures
    finally:
        if path is not None:
            with open(path, "w", encoding="utf-8") as stream:
                json.dump(figures, stream, indent=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--largest", type=int, default=20_000_000, help="rows of the growth at most")
    parser.add_argument("--repetitions", type=int, default=3, help="of two workers against one process")
    parser.add_argument("--only", default="two,growth,open,many", help="some of: two, growth, open, many")
    parser.add_argument("--simulate", action="store_true", help="--only growth,many")
    options = parser.parse_args()
    wanted = ["growth", "many"] if options.simulate else options.only.split(",")
    # One BLAS thread, as the command and the estimators have it: two workers and a driver are three already.
    with written_to(options.json) as figures, threadpool_limits(1, user_api="blas"):
        if "two" in wanted:
            figures["two_workers"] = two_workers(20_000 if options.quick else 4_000_000, options.repetitions)
        grown: list[dict[str, Any]] = []
        if "growth" in wanted or "many" in wanted:
            sizes = [10_000, 20_000] if options.quick else [100_000, 300_000, 1_000_000, 4_000_000, 20_000_000]
            figures["growth"] = grown = growth([rows for rows in sizes if rows <= options.largest])
        if "open" in wanted:
            positives = [100] if options.quick else [1_000, 100_000]
            figures["open_scores"] = open_scores(50_000 if options.quick else 10_000_000, positives)
        if "many" in wanted:
            rows = 1_000_000 if options.quick else 1_000_000_000
            figures["many_workers"] = many_workers(grown[-1], rows, 3 if options.quick else 50)


if __name__ == "__main__":
    main()
