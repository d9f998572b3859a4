"""Reading svmlight files: speed against scikit-learn's load_svmlight_file, with 1 and 2 threads, with and without qid;
peak memory against the size of the matrix; and the data folder of apsvm convert: writing and opening it.

    .venv/bin/python scripts/bench/parse.py [--megabytes 200] [--threads 1 2] [--repeat 3] [--folder KEEP]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

SEED = 20261120

MEMORY = """
import sys
from apsvm.data import read_svmlight
import numpy, scipy.sparse
def peak():  # of this program alone: ru_maxrss begins at that of its parent
    return int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]) * 1024
before = peak()
data = read_svmlight(sys.argv[1], threads=int(sys.argv[2]))
X = data.X
size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + data.relevance.nbytes
size += 0 if data.groups is None else data.groups.nbytes
print(peak() - before, size)
"""


def sparse_lines(rng: np.random.Generator, qid: bool) -> Iterator[str]:
    """About 80 of 50 000 features a row, values of 6 digits."""
    row = 0
    while True:
        counts = rng.integers(40, 120, 500)
        columns = rng.integers(1, 50_001, (500, 120))
        values = rng.random((500, 120))
        for k, c, v in zip(counts.tolist(), columns, values, strict=True):
            label = 1 if v[0] < 0.1 else -1
            entries = zip(np.unique(c[:k]).tolist(), v.tolist(), strict=False)
            yield f"{label} {f'qid:{row // 50} ' if qid else ''}" + " ".join(f"{j}:{x:.6g}" for j, x in entries) + "\n"
            row += 1


def dense_lines(rng: np.random.Generator) -> Iterator[str]:
    """All of 200 features a row, values of 6 decimals."""
    while True:
        for x in rng.standard_normal((500, 200)).tolist():
            yield f"{1 if x[0] > 1 else -1} " + " ".join(f"{j}:{v:.6f}" for j, v in enumerate(x, 1)) + "\n"


def write(path: Path, lines: Iterator[str], megabytes: float) -> None:
    size = 0
    with path.open("w") as stream:
        for line in lines:
            size += stream.write(line)
            if size >= megabytes * 1e6:
                return


def best_of(repeat: int, work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(repeat):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def peak_memory(path: Path, threads: int) -> tuple[float, float]:
    """Bytes above those of the bare process, and bytes of the data set."""
    command = [sys.executable, "-c", MEMORY, str(path), str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    peak, size = done.stdout.split()
    return float(peak), float(size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=200, help="size of each file")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeat", type=int, default=3, help="number of runs, of which the best counts")
    parser.add_argument("--folder", help="keep the files here, and use those that are here")
    options = parser.parse_args()

    from sklearn.datasets import load_svmlight_file

    from apsvm.data import open_folder, read_svmlight, write_folder

    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}, files of {options.megabytes:g} MB, seed {SEED}")
    kinds = {
        "sparse": lambda: sparse_lines(np.random.default_rng(SEED), qid=False),
        "sparse qid": lambda: sparse_lines(np.random.default_rng(SEED), qid=True),
        "dense": lambda: dense_lines(np.random.default_rng(SEED)),
    }
    with contextlib.ExitStack() as stack:
        folder = Path(options.folder or stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        header = f"{'file':<11} {'threads':>7} {'MB/s':>6} {'sklearn':>8} {'ratio':>6} {'peak MB':>8} {'matrix MB':>9}"
        print(f"{header} {'peak/matrix':>11}")
        paths = {}
        for kind, lines in kinds.items():
            path = paths[kind] = folder / f"{kind.replace(' ', '_')}_{options.megabytes:g}.svm"
            if not path.exists():
                write(path, lines(), options.megabytes)
            megabytes = path.stat().st_size / 1e6
            # Without query_id, as that is quadratic in scikit-learn; it then skips the qid of a row.
            theirs = best_of(min(options.repeat, 2), lambda path=path: load_svmlight_file(str(path)))
            for threads in options.threads:
                ours = best_of(options.repeat, lambda path=path, threads=threads: read_svmlight(path, threads=threads))
                peak, size = peak_memory(path, threads)
                print(
                    f"{kind:<11} {threads:>7} {megabytes / ours:>6.0f} {megabytes / theirs:>8.1f} "
                    f"{theirs / ours:>6.1f} {peak / 1e6:>8.0f} {size / 1e6:>9.0f} {peak / size:>11.2f}",
                    flush=True,
                )
        print(f"\n{'folder':<11} {'MB':>6} {'write s':>8} {'open ms':>8} {'check s':>8}")
        for kind, path in paths.items():
            out = path.with_suffix(".dir")
            data = read_svmlight(path, threads=max(options.threads))
            seconds = best_of(1, lambda out=out, data=data: write_folder(data, out))
            size = sum(file.stat().st_size for file in out.iterdir())
            opened = best_of(options.repeat, lambda out=out: open_folder(out, check=False))
            checked = best_of(1, lambda out=out: open_folder(out))
            print(f"{kind:<11} {size / 1e6:>6.0f} {seconds:>8.2f} {opened * 1e3:>8.2f} {checked:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
