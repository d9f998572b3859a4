"""Time the sums of RankNCG: a gradient's coefficients, for m = 1e3 … 1e7 rows, one thread, best of several; CPU time,
which is what the clock shows on a quiet machine.

    python scripts/bench/wmw.py                 two classes, standard normal scores, beside np.sort of the scores
    python scripts/bench/wmw.py --csv FILE      the same figures as a table for a plot
    python scripts/bench/wmw.py --spread 10 --classes 5 --largest 1e6
    python scripts/bench/wmw.py --training      iterations and seconds of a training, m = 1e6, d = 20

"direct" is measured up to --direct rows (1e5 rows take some 20 s a call) and prolonged by its square beyond, marked ~.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from apsvm.data.rows import Rows
from apsvm.trainers.base import Watch
from apsvm.trainers.rank_ncg.descent import train_rank_ncg
from apsvm.trainers.rank_ncg.pair_loss import make_pair_loss
from apsvm.trainers.rank_ncg.preferences import Classes, classes_by_label, full
from apsvm.trainers.rank_ncg.settings import RankNCGSettings

#: Name: objective, summation, accuracy of the series, with the loss.
SUMS = {
    "logistic": ("logistic", "chebyshev", 1e-3, False),
    "+ loss": ("logistic", "chebyshev", 1e-3, True),
    "erfc": ("erfc", "chebyshev", 1e-3, False),
    "fourier 1e-3": ("erfc", "fourier", 1e-3, False),
    "fourier 1e-6": ("erfc", "fourier", 1e-6, False),
}


def fastest(call: Callable[[], object], budget: float) -> float:
    """CPU seconds of the fastest call of at least three, and as many as ``budget`` seconds hold."""
    taken: list[float] = []
    while len(taken) < 3 or (sum(taken) < budget and len(taken) < 500):
        began = time.process_time_ns()
        call()
        taken.append((time.process_time_ns() - began) / 1e9)
    return min(taken)


def seconds(scores: np.ndarray, classes: Classes, sums: tuple[str, str, float, bool], budget: float = 2.0) -> float:
    objective, summation, accuracy, with_loss = sums
    rows = Rows(np.zeros((scores.size, 1), dtype=np.float32))
    loss = make_pair_loss(
        rows, classes, full(classes.names.size), objective=objective, summation=summation, accuracy=accuracy
    )
    out = np.empty(scores.size)
    call = partial(loss.tangent if with_loss else loss.slopes, scores, out)
    if summation != "direct":
        call()
    return fastest(call, budget)


def sums_table(options: argparse.Namespace) -> None:
    rng = np.random.default_rng(0)
    names = [*SUMS, "direct", "np.sort"]
    print(f"{options.classes} classes, normal scores of deviation {options.spread:g}: milliseconds a call, one thread")
    print(f"{'m':>9}" + "".join(f"{name:>13}" for name in names) + f"{'ns/row':>8}{'/ sort':>8}{'direct /':>10}")
    table, direct_cost = [], 0.0
    for m in [int(10**power) for power in np.arange(3, np.log10(options.largest) + 0.25, 0.5)]:
        scores = options.spread * rng.normal(size=m)
        classes = Classes(rng.integers(0, options.classes, m), np.arange(float(options.classes)))
        found = {name: seconds(scores, classes, sums) for name, sums in SUMS.items()}
        measured = m <= options.direct
        if measured:
            found["direct"] = seconds(scores, classes, ("logistic", "direct", 0.1, False), budget=0.0)
            direct_cost = found["direct"] / m**2
        else:
            found["direct"] = direct_cost * m**2
        found["np.sort"] = fastest(partial(np.sort, scores), 1.0)
        table.append({"rows": m, **found, "direct measured": measured})
        cells = "".join(
            f"{'~' if name == 'direct' and not measured else ''}{1e3 * found[name]:.4g}".rjust(13) for name in names
        )
        fast = found["logistic"]
        ratios = f"{1e9 * fast / m:>8.1f}{fast / found['np.sort']:>8.2f}{found['direct'] / fast:>10.0f}"
        print(f"{m:>9}{cells}{ratios}", flush=True)
    if options.csv:
        with Path(options.csv).open("w", newline="") as stream:
            writer = csv.DictWriter(stream, table[0])
            writer.writeheader()
            writer.writerows(table)


def training_table(m: int, d: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, d))
    noisy = X @ rng.normal(size=d) + 3.0 * rng.normal(size=m)
    classes = classes_by_label((noisy > np.median(noisy)).astype(float))
    print(f"training, m = {m:,}, d = {d}, two classes, λ = 1e-5, tolerance 1e-5, one thread")
    for objective, optimizer in (("logistic", "lbfgs"), ("logistic", "prcg"), ("erfc", "lbfgs"), ("erfc", "prcg")):
        began = time.perf_counter()
        settings = RankNCGSettings(objective=objective, optimizer=optimizer, regularisation=1e-5)
        solution = train_rank_ncg(Rows(X), classes, full(2), None, settings, Watch()).solution
        print(
            f"{objective:>9} {optimizer:>6}: {solution.state}, {solution.iterations} iterations, "
            f"{solution.evaluations} evaluations, {time.perf_counter() - began:.2f} s, J = {solution.objective:.9f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--classes", type=int, default=2)
    parser.add_argument("--spread", type=float, default=1.0)
    parser.add_argument("--largest", type=float, default=1e7)
    parser.add_argument("--direct", type=float, default=1e5)
    parser.add_argument("--csv")
    parser.add_argument("--training", action="store_true")
    options = parser.parse_args()
    if options.training:
        training_table(1_000_000, 20)
    else:
        sums_table(options)


if __name__ == "__main__":
    main()
