"""The repository's oracle benchmark: time a call of every exact oracle for the AP loss, in one run.

    python scripts/bench_oracles.py            P = 100 and P = 1,000, N = 1e3 … 1e6, one thread
    python scripts/bench_oracles.py --large    the bucket oracle against qs up to N = 1e7, one and two threads, and on
                                               hostile scores

`apsvm bench oracle` prints the same tables for other sizes or one's own data.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

from apsvm.benchmarks import Scores, fastest, normal_scores, oracle_table
from apsvm.losses import LOSSES
from apsvm.oracles import make_oracle


def milliseconds(name: str, scores: Scores, threads: int = 1) -> float:
    loss = LOSSES["ap"]()
    n_pos, n_neg = scores[0].size, scores[1].size
    oracle = make_oracle(name, loss).bind(loss, n_pos, n_neg, threads=threads)
    call = partial(oracle, *scores, np.empty(n_pos), np.empty(n_neg))
    call()
    return 1e3 * fastest(call, budget=2.0)[0]


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
    rng = np.random.default_rng(0)
    n = 1_000_000
    hostile = {
        "Cauchy": rng.standard_cauchy(size=n),
        "log-normal": rng.lognormal(sigma=3.0, size=n),
        "constant": np.full(n, 0.5),
        "two values": rng.integers(0, 2, size=n) * 1.0,
        "sorted": np.sort(rng.normal(size=n)),
        "aimed at the sample": np.where(np.arange(n) % (n // 4096) == 0, rng.normal(size=n), 1e-6 * rng.normal(size=n)),
    }
    print("\nhostile scores, P = 1,000, N = 1,000,000: milliseconds a call")
    print(f"{'scores':<20} {'qs':>10} {'bucket':>10} {'ratio':>7}")
    for kind, scores_neg in hostile.items():
        scores = rng.choice(scores_neg, size=1000) + 0.5 * np.median(np.abs(scores_neg)), scores_neg
        qs, bucket = milliseconds("qs", scores), milliseconds("bucket", scores)
        print(f"{kind:<20} {qs:>10.3f} {bucket:>10.3f} {qs / bucket:>7.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true")
    if parser.parse_args().large:
        large()
        return
    for n_pos in (100, 1000):
        for shift in (1.0, 5.0):
            print(f"normal scores, the positives' shifted by {shift:g}")
            rng = np.random.default_rng(0)
            queries = [normal_scores(rng, n_pos, n_neg, shift) for n_neg in (1000, 10_000, 100_000, 1_000_000)]
            print("\n".join(oracle_table(queries)), end="\n\n")


if __name__ == "__main__":
    main()
