"""Time of one call of every exact oracle for the AP loss, on the same scores, in one run.

Scores are normal, the positives' shifted by ``--shifts``: 1 leaves most negatives above some positive, as early in a
training, 5 leaves few, as at its end. Each figure is the fastest of several calls; in brackets, how many times faster
than greedy. Objectives are compared.

    python scripts/bench_oracles.py [--positives 100] [--negatives 1000,10000,100000,1000000] [--shifts 1,5]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from apsvm.losses import LOSSES
from apsvm.oracles import ORACLES, make_oracle
from apsvm.oracles.base import Violation

ORACLE_NAMES = [name for name in ORACLES if name not in ("brute-force", "zero-one")]


def fastest(call: Callable[[], Violation], budget: float) -> tuple[float, Violation]:
    """Seconds of the fastest of at least 3 calls within about ``budget`` seconds, and the last result."""
    best, spent, count = np.inf, 0.0, 0
    while count < 3 or (spent < budget and count < 200):
        began = time.perf_counter()
        result = call()
        taken = time.perf_counter() - began
        best, spent, count = min(best, taken), spent + taken, count + 1
    return best, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--positives", type=int, default=100)
    parser.add_argument("--negatives", default="1000,10000,100000,1000000")
    parser.add_argument("--shifts", default="1,5")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for shift in map(float, arguments.shifts.split(",")):
        table(np.random.default_rng(arguments.seed), arguments.positives, arguments.negatives, shift)


def table(rng: np.random.Generator, n_pos: int, negatives: str, shift: float) -> None:
    print(f"AP loss, P = {n_pos}, positives shifted by {shift:g}, one thread; ms a call (times faster than greedy)")
    print(f"{'N':>9} " + "".join(f"{name:>22}" for name in ORACLE_NAMES) + f"{'r <= P':>10} {'objectives differ':>18}")
    for n_neg in map(int, negatives.split(",")):
        scores_pos, scores_neg = rng.normal(size=n_pos) + shift, rng.normal(size=n_neg)
        loss = LOSSES["ap"]()
        cells: list[str] = []
        values: list[float] = []
        greedy = violating = 0.0
        for name in ORACLE_NAMES:
            oracle = make_oracle(name, loss).bind(loss, n_pos, n_neg)
            weights = np.empty(n_pos), np.empty(n_neg)
            seconds, found = fastest(partial(oracle, scores_pos, scores_neg, *weights), budget=1.0)
            greedy = greedy or seconds
            cells.append(f"{1e3 * seconds:>11.3f} ({greedy / seconds:>6.1f}x)")
            values.append(found.value)
            violating = found.violating
        spread = (max(values) - min(values)) / max(values)
        print(f"{n_neg:>9} " + "".join(f"{cell:>22}" for cell in cells) + f"{violating:>10} {spread:>18.1e}")
    print()


if __name__ == "__main__":
    main()
