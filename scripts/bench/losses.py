"""The repository's benchmark of the losses: time a call of their oracles, in one run, one thread.

    python scripts/bench/losses.py [--json docs/figures/losses.json]

First the table of Mohapatra, Rolínek et al. (2018) for their data's size, 3,347 rows of which 9 % are positive: AP and
NDCG by the greedy baselines (Yue et al. 2007; Chakrabarti et al. 2008), qs and bucket, against the binary SVM's pass.
Then every loss by the oracle that ``auto`` takes, as the number of rows doubles. Each figure is the fastest of as many
calls as half a second holds. --json writes the first table.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from apsvm._support.types import JsonDict
from apsvm.cli.benchmarks import Scores, fastest, normal_scores
from apsvm.losses import LOSSES, make_loss
from apsvm.oracles import make_oracle

ROWS, SHARE = 3347, 0.09


def milliseconds(loss_name: str, oracle_name: str, scores: Scores) -> float:
    loss = make_loss(loss_name)
    n_pos, n_neg = scores[0].size, scores[1].size
    oracle = make_oracle(oracle_name, loss).bind(loss, n_pos, n_neg)
    call = partial(oracle, *scores, np.empty(n_pos), np.empty(n_neg))
    call()
    return 1e3 * fastest(call, budget=0.5)[0]


def made(n: int, share: float, shift: float) -> Scores:
    n_pos = max(1, round(share * n))
    return normal_scores(np.random.default_rng(0), n_pos, n - n_pos, shift)


def papers_table() -> list[JsonDict]:
    result: list[JsonDict] = []
    print(f"{ROWS} rows, {SHARE:.0%} positive; milliseconds a call (times the binary SVM's pass)")
    print(f"{'scores':<22} {'loss':<6}" + "".join(f"{name:>18}" for name in ("greedy", "qs", "bucket")) + f"{'0-1':>9}")
    for stage, shift in (("shift 1, as early", 1.0), ("shift 5, as late", 5.0)):
        scores = made(ROWS, SHARE, shift)
        binary = milliseconds("zero-one", "zero-one", scores)
        for loss in ("ap", "ndcg"):
            times = {oracle: milliseconds(loss, oracle, scores) for oracle in ("greedy", "qs", "bucket")}
            cells = "".join(f"{f'{ms:.3f} ({ms / binary:.1f}x)':>18}" for ms in times.values())
            print(f"{stage:<22} {loss:<6}{cells}{binary:>9.3f}", flush=True)
            result.append({"loss": loss, "shift": shift, "binary": binary, "milliseconds": times})
    return result


def growth() -> None:
    sizes = [1000 * 4**i for i in range(6)]
    print(
        f"\nrows, {SHARE:.0%} positive, shift 1, oracle auto; milliseconds a call, and the growth's exponent at the end"
    )
    print(f"{'loss':<18} {'oracle':<10}" + "".join(f"{n:>10,}" for n in sizes) + f"{'exponent':>10}")
    names = [LOSSES[form]().name for form in LOSSES]
    for name in [*dict.fromkeys(names), "ndcg@1000", "p@1000", "f(2.0)"]:
        times = [milliseconds(name, "auto", made(n, SHARE, 1.0)) for n in sizes]
        exponent = np.log(times[-1] / times[-3]) / np.log(sizes[-1] / sizes[-3])
        cells = "".join(f"{ms:>10.3f}" for ms in times)
        print(f"{name:<18} {make_oracle('auto', make_loss(name)).name:<10}{cells}{exponent:>10.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    path: Path | None = parser.parse_args().json
    with threadpool_limits(1):
        table = papers_table()
        if path is not None:
            path.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
        growth()


if __name__ == "__main__":
    main()
