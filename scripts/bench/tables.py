"""A CSV of a million rows, from the file to the top hundred with reasons: what each step takes, by the clock.

    python scripts/bench/tables.py [--rows 1000000] [--json docs/figures/tables.json]

Made payments: 20 numeric columns of five decimals, an id, two in a thousand fraud. Reading is the fastest of five, in
one process; the commands are processes of their own, as they are typed: seconds from start to end, the better of
two runs, and the most memory that was held.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from apsvm.data import read_data
from apsvm.data.read_options import TableOptions

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "docs" / "figures" / "tables.json"
COLUMNS = 20
REPETITIONS = 5


def write_payments(path: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, COLUMNS)).astype(np.float32)
    risk = 0.6 * X @ rng.normal(size=COLUMNS) + rng.normal(size=rows)
    columns = {"id": pa.array(np.arange(rows) + 10**6)}
    columns |= {f"v{j}": pa.array(np.round(X[:, j].astype(np.float64), 5)) for j in range(COLUMNS)}
    columns["fraud"] = pa.array((risk > np.quantile(risk, 0.998)).astype(np.int8))
    pyarrow.csv.write_csv(pa.table(columns), path)


def fastest(call: Callable[[], object]) -> float:
    seconds = []
    for _ in range(REPETITIONS):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def reading(path: Path) -> dict[str, float]:
    """Megabytes a second of text, by who reads it."""
    import pandas as pd

    megabytes = path.stat().st_size / 1e6
    calls: dict[str, Callable[[], object]] = {
        "apsvm": lambda: read_data(path, table=TableOptions(label="fraud", drop=("id",))),
        "apsvm, with names of rows": lambda: read_data(path, table=TableOptions(label="fraud", id="id")),
        "pyarrow.csv": lambda: pyarrow.csv.read_csv(path),
        "pandas": lambda: pd.read_csv(path),
    }
    return {who: megabytes / fastest(call) for who, call in calls.items()}


def parquet_reading(path: Path) -> dict[str, float]:
    """Processor seconds for the CSV's rows as Parquet, each the least of several, taken in turn."""
    import pandas as pd

    parquet = path.with_suffix(".parquet")
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(path), parquet)
    calls: dict[str, Callable[[], object]] = {
        "apsvm": lambda: read_data(parquet, table=TableOptions(label="fraud", drop=("id",))),
        "pyarrow.parquet": lambda: pyarrow.parquet.read_table(parquet),
        "pandas": lambda: pd.read_parquet(parquet),
        "pandas, as a matrix": lambda: pd.read_parquet(parquet).to_numpy(dtype=np.float64),
    }
    seconds = dict.fromkeys(calls, np.inf)
    for _ in range(REPETITIONS):
        for who, call in calls.items():
            began = time.process_time()
            call()
            seconds[who] = min(seconds[who], time.process_time() - began)
    return seconds


def commands(folder: Path, data: Path) -> dict[str, dict[str, float]]:
    """Seconds and megabytes of each command."""
    apsvm, model = str(Path(sys.executable).with_name("apsvm")), str(folder / "payments.model")
    steps = {
        "apsvm train": ["train", "-q", str(data), model, "--label-column", "fraud", "--id-column", "id"],
        "apsvm predict --top 100 --explain 3": [
            "predict", str(data), model, str(folder / "top.txt"), "--top", "100", "--explain", "3",
        ],
        "apsvm eval": ["eval", str(data), "--model", model],
    }  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if not name.startswith("APSVM")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    result = {}
    for name, arguments in steps.items():
        runs = []
        for _ in range(2):
            began = time.perf_counter()
            process = subprocess.Popen([apsvm, *arguments], stdout=subprocess.DEVNULL, env=environment)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise SystemExit(f"apsvm {' '.join(arguments)}: exit code {process.returncode}")
            runs.append({"seconds": time.perf_counter() - began, "megabytes": usage.ru_maxrss / 1e3})
        result[name] = min(runs, key=lambda run: run["seconds"])
    return result


def measured(rows: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="bench-tables-") as name:
        folder = Path(name)
        data = folder / "payments.csv"
        # A process counts what its parent held when it began: what takes memory is done in others.
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            pool.submit(write_payments, data, rows).result()
            speeds = pool.submit(reading, data).result()
            seconds_of_parquet = pool.submit(parquet_reading, data).result()
        return {
            "rows": rows,
            "columns": COLUMNS + 2,
            "megabytes": data.stat().st_size / 1e6,
            "reading": speeds,
            "parquet": seconds_of_parquet,
            "commands": commands(folder, data),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--json", type=Path, default=FIGURES)
    arguments = parser.parse_args()
    figures = measured(arguments.rows)
    for who, speed in figures["reading"].items():
        print(f"{who:<40} {speed:>8.0f} MB/s")
    for who, seconds in figures["parquet"].items():
        print(f"{'Parquet, ' + who:<40} {seconds:>8.2f} s {seconds / figures['parquet']['pandas']:>8.2f} x pandas")
    for command, costs in figures["commands"].items():
        print(f"{command:<40} {costs['seconds']:>8.1f} s {costs['megabytes']:>8.0f} MB")
    arguments.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
