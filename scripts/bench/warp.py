"""The speed and the memory of WARP's sampling loop.

    python scripts/bench/warp.py [--rows 200000] [--epochs 6]

Trained are made sets with 10 % positives, a linear signal plus noise. After every epoch a plain loop takes as many dot
products of random rows (``Rows.scores``, one thread), so that both see the machine in the same state. A trial is one
dot product, and so is the score of each drawn positive; "ratio" is WARP's CPU time for one over the plain loop's. The
first epoch, in which nearly every trial is an update, is shown apart from the others.

"2 thr." is how many times the dot products per second of one thread two of them make (Hogwild), by the clock, and
"by CPU" twice one thread's CPU time for a dot product over two threads' own: what two free cores would give, whatever
else runs. "memory" is what the data and the peak of the training take over the size of data and model.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from apsvm.data.rows import Rows
from apsvm.solvers.sgd import Epoch
from apsvm.trainers.base import Progress, Watch
from apsvm.trainers.warp.descent import train_warp
from apsvm.trainers.warp.settings import WarpSettings
from apsvm.trainers.warp.trainer import WarpTrainer

#: Seconds that the plain loop takes after an epoch, at least.
PLAIN_SECONDS = 0.2


@dataclass
class Beside:
    """Times the plain loop after each epoch."""

    rows: Rows
    rng: np.random.Generator
    #: Of each epoch: dot products, ns of each by the clock, CPU ns of each of the plain loop's.
    epochs: list[tuple[int, float, float]] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    began: float = field(default_factory=time.process_time)

    def show(self, epoch: Epoch) -> Progress:
        self.cpu_seconds.append(time.process_time() - self.began)
        dots = epoch.passed.trials + epoch.passed.draws
        chosen = self.rows.select(self.rng.integers(0, len(self.rows), size=200_000))
        w, out = self.rng.normal(size=self.rows.dimension), np.empty(len(chosen))
        began, count = time.process_time(), 0
        while time.process_time() - began < PLAIN_SECONDS:
            chosen.scores(w, out)
            count += len(chosen)
        plain = (time.process_time() - began) / count
        self.epochs.append((dots, 1e9 * epoch.seconds / dots, 1e9 * plain))
        self.began = time.process_time()
        return WarpTrainer().show(epoch)

    def cpu(self, first: int) -> float:
        """CPU seconds a dot product of the epochs from ``first`` on."""
        return sum(self.cpu_seconds[first:]) / sum(dots for dots, _, _ in self.epochs[first:])

    def ratio(self, first: int, last: int) -> float:
        """CPU time over the plain loop's, for all dot products of some epochs."""
        plain = sum(1e-9 * dots * each for dots, _, each in self.epochs[first:last])
        return sum(self.cpu_seconds[first:last]) / plain


def sparse(n: int, d: int, nnz: int, dtype: type, rng: np.random.Generator) -> sp.csr_array:
    columns = rng.integers(0, d // nnz, size=(n, nnz)) + np.arange(nnz) * (d // nnz)
    values = rng.normal(size=n * nnz).astype(dtype)
    return sp.csr_array(
        (values, columns.astype(np.int32).ravel(), np.arange(n + 1, dtype=np.int32) * nnz), shape=(n, d)
    )


def memory(what: str) -> int:
    """VmRSS or VmHWM of this process, bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what):
            return 1024 * int(line.split()[1])
    raise OSError(f"no {what} in /proc/self/status")


def measure(name: str, X, epochs: int, rng: np.random.Generator) -> None:
    score = Rows(X).scores(rng.normal(size=X.shape[1]))
    score += 0.5 * score.std() * rng.normal(size=score.size)
    relevant = score > np.quantile(score, 0.9)
    del score
    found = {}
    for threads in (1, 2):
        found[threads] = Beside(Rows(X), rng)
        settings = WarpSettings(epochs=epochs, threads=threads)
        train_warp(Rows(X), relevant, settings, Watch(), show=found[threads].show)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what the heap keeps of earlier runs would hide what this one takes
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    train_warp(Rows(X), relevant, WarpSettings(epochs=1), Watch(), show=WarpTrainer().show)
    added = memory("VmHWM") - before
    data = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes
    model = 8 * X.shape[1]
    one, two = found[1], found[2]
    seconds = [sum(dots * own for dots, own, _ in beside.epochs[1:]) / 1e9 for beside in (one, two)]
    speed = [
        sum(dots for dots, _, _ in beside.epochs[1:]) / taken for beside, taken in zip((one, two), seconds, strict=True)
    ]
    print(
        f"{name:<28} {1e9 / one.epochs[0][1]:>10,.0f} {one.ratio(0, 1):>6.2f} "
        f"{speed[0]:>12,.0f} {one.ratio(1, epochs):>6.2f} "
        f"{speed[1] / speed[0]:>7.2f} {2 * one.cpu(1) / two.cpu(1):>7.2f} "
        f"{data / 1e6:>8.1f} {model / 1e6:>9.2f} {added / 1e6:>9.1f} {(data + added) / (data + model):>7.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--epochs", type=int, default=6)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    n = arguments.rows
    print(
        f"{'':<28} {'dots/s':>10} {'ratio':>6} {'dots/s':>12} {'ratio':>6} {'2 thr.':>7} {'by CPU':>7} "
        f"{'data MB':>8} {'model MB':>9} {'added MB':>9} {'memory':>7}"
    )
    print(f"{'':<28} {'epoch 1':>17} {'later epochs':>19}")
    measure("CSR 1e5, 50 a row, float64", sparse(n, 100_000, 50, np.float64, rng), arguments.epochs, rng)
    measure("CSR 1e5, 50 a row, float32", sparse(n, 100_000, 50, np.float32, rng), arguments.epochs, rng)
    measure("dense 300, float32", rng.normal(size=(n // 2, 300)).astype(np.float32), arguments.epochs, rng)
    measure("dense 22, float64", rng.normal(size=(n, 22)), arguments.epochs, rng)


if __name__ == "__main__":
    main()
