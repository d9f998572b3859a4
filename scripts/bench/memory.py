"""What training from a data folder takes besides the folder itself: memory a row, and time against rows in memory.

    python scripts/bench/memory.py [--rows 10000000] [--features 20] [--positives .01] [--dtype float32]
                                   [--losses ap …] [--bound hinge|auto|tight] [-C auto] [--order random|label]
                                   [--repeat 3] [--keep FOLDER]

A folder of made rows (a linear signal plus noise) is written, then each loss is trained on it in processes of their
own: from the mapped folder, and from a copy in memory, in turn. What a process holds besides files (RssAnon of
/proc/PID/status) is sampled every few milliseconds; the table shows the most of it above what there was before the
training, a row. Of several runs the shortest counts; processor time besides, for machines with other things to do. One
thread.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

SEED = 20261122
BLOCK = 1 << 18
SAMPLED_EVERY = 0.004

TRAINING = """
import json, sys, time
import numpy as np, scipy.sparse
from threadpoolctl import threadpool_limits
from apsvm.data.folder import open_folder
from apsvm.data.labels import LabelOptions
from apsvm.selection.completion import outcomes
from apsvm.trainers.base import Watch
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer
from apsvm.trainers.fitting import FeatureOptions, Fit
import apsvm.risk, apsvm.trainers.structured_svm.training
from dataclasses import replace

folder, loss, bound, C, copied = sys.argv[1:]
data = open_folder(folder)
if copied == "copy":
    data = replace(data, X=np.array(data.X))

def anonymous():
    return int(open("/proc/self/status").read().partition("RssAnon:")[2].split()[0]) * 1024

plain = StructuredSVMTrainer(loss)
settings = replace(plain.settings, bound=bound, threads=1, **({} if C == "auto" else {"C": (float(C),)}))
print(anonymous(), flush=True)
sys.stdin.readline()
with threadpool_limits(1):
    began, began_cpu = time.perf_counter(), time.process_time()
    fit = Fit.of(data, StructuredSVMTrainer(loss, settings), LabelOptions(), FeatureOptions())
    outcome = next(iter(outcomes(fit, Watch())))
    seconds, cpu = time.perf_counter() - began, time.process_time() - began_cpu
print(json.dumps({"seconds": seconds, "cpu": cpu, "iterations": outcome.iterations, "parts": dict(outcome.seconds),
                  "primal": outcome.certificate.primal, "gap": outcome.certificate.gap,
                  "sum": float(np.abs(outcome.w).sum())}), flush=True)
"""


def made_folder(path: Path, n: int, d: int, share: float, dtype: str, order: str) -> None:
    """n × d rows, of which a share is positive, as a data folder."""
    from apsvm.data.dataset import Dataset
    from apsvm.data.folder import write_folder

    rng = np.random.default_rng(SEED)
    w = rng.normal(size=d) / np.sqrt(d)
    scratch = path.with_suffix(".npy")
    X = np.lib.format.open_memmap(scratch, mode="w+", dtype=dtype, shape=(n, d))
    target = np.empty(n)
    for start in range(0, n, BLOCK):
        block = rng.standard_normal((min(BLOCK, n - start), d))
        target[start : start + BLOCK] = block @ w + 0.7 * rng.standard_normal(len(block))
        X[start : start + BLOCK] = block
    relevance = np.where(target > np.quantile(target, 1.0 - share), 1.0, -1.0)
    if order == "label":  # what sorting by label makes of the labels; which rows they are of does not matter here
        relevance = -np.sort(-relevance)
    data = Dataset(X, relevance, None, None, zero_based=False, source="made", fingerprint="0" * 64, unknown_features=0)
    try:
        write_folder(data, path, dense=True)
    finally:
        del X, data
        scratch.unlink()


def anonymous(process: int) -> int:
    """Bytes of memory of a process that are of no file."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/{process}/status").read_text().partition("RssAnon:")[2].split()[0]) * 1024
    return 0


def trained(folder: Path, loss: str, bound: str, C: str, how: str) -> dict[str, Any]:
    """A training in a process of its own, with ``bytes``, the most it held above what it began with."""
    command = [sys.executable, "-c", TRAINING, str(folder), loss, bound, C, how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        before = int(process.stdout.readline())
        process.stdin.write("\n")
        process.stdin.flush()
        most = 0
        while process.poll() is None:
            most = max(most, anonymous(process.pid))
            time.sleep(SAMPLED_EVERY)
        result: dict[str, Any] = json.loads(process.stdout.read())
    return {**result, "bytes": most - before}


@contextlib.contextmanager
def folder_of(arguments: argparse.Namespace) -> Iterator[Path]:
    shape = arguments.rows, arguments.features, arguments.positives, arguments.dtype, arguments.order
    if arguments.keep is not None:
        if not arguments.keep.exists():
            made_folder(arguments.keep, *shape)
        yield arguments.keep
        return
    with tempfile.TemporaryDirectory() as temporary:
        made_folder(Path(temporary) / "folder", *shape)
        yield Path(temporary) / "folder"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--positives", type=float, default=0.01, help="share of the rows")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--order", choices=["random", "label"], default="random", help="of the labels in the folder")
    parser.add_argument("--losses", nargs="+", default=["ap"])
    parser.add_argument("--bound", choices=["hinge", "auto", "tight"], default="hinge")
    parser.add_argument("-C", default="auto")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="the folder: used if it is there, else made and kept")
    arguments = parser.parse_args()
    print("| loss | bound | iterations | bytes a row | folder, s | in memory, s | ratio | of processor time |")
    print("|---|---|---|---|---|---|---|---|")
    with folder_of(arguments) as folder:
        for loss in arguments.losses:
            runs: dict[str, list[dict[str, Any]]] = {"map": [], "copy": []}
            for _ in range(arguments.repeat):
                for how, of_it in runs.items():
                    of_it.append(trained(folder, loss, arguments.bound, arguments.C, how))
            mapped, copied = (min(run["seconds"] for run in of_it) for of_it in runs.values())
            mapped_cpu, copied_cpu = (min(run["cpu"] for run in of_it) for of_it in runs.values())
            one = runs["map"][0]
            most = max(run["bytes"] for run in runs["map"]) / arguments.rows
            print(
                f"| {loss} | {arguments.bound} | {one['iterations']} | {most:.1f} | {mapped:.2f} | {copied:.2f} | "
                f"{mapped / copied:.2f} | {mapped_cpu / copied_cpu:.2f} |",
                flush=True,
            )
            parts = ", ".join(f"{name} {seconds:.2f}" for name, seconds in one["parts"].items())
            print(f"<!-- {parts}; objective {one['primal']:.12g}, gap {one['gap']:.3g} -->", flush=True)


if __name__ == "__main__":
    main()
