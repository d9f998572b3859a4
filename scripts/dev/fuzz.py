"""Fuzzes readers with damaged files and native entries with hostile arguments.

    scripts/dev/fuzz [--sanitize] [--target svmlight csv native …] [--seconds 60] [--seed 19]

The targets are those of tests/fuzz_readers.py, and ``native``: every entry of tests/fuzz_natives.py in turn. A target
may return a result or raise its own error. Another exception, a warning, a signal or no end in minutes is a failure.
Execution i of a seed is always the same. The input of a failure is written to build/fuzz/TARGET/; after the repair,
move it to tests/corpus/TARGET/, where the tests use it. For a native entry the file holds its name and seed. A child
process does the work, so that a crash ends the child alone. The exit code is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import fuzz_natives  # noqa: E402
from fuzz_readers import TARGETS  # noqa: E402

FAILED = ROOT / "build" / "fuzz"
#: Seconds that one execution may take, with sanitizers on a busy machine.
PATIENCE = 300.0
#: Executions between two checks of the time.
TURN = 20
#: Most inputs that are saved for a target.
MOST_KINDS = 50


class Failures:
    """Saves inputs of failures, one for each place of an exception, and the first few of crashes.

    Attributes
    ----------
    count : number of failures, saved or not
    """

    def __init__(self, target: str) -> None:
        self.count = 0
        self._folder = FAILED / target
        self._kinds: set[str] = set()

    def add(self, data: bytes, what: str) -> None:
        self.count += 1
        lines = what.strip().splitlines()
        kind = "\n".join(line for line in lines if line.lstrip().startswith("File ")) or data.hex()
        if kind in self._kinds or len(self._kinds) >= MOST_KINDS:
            return
        self._kinds.add(kind)
        self._folder.mkdir(parents=True, exist_ok=True)
        place = self._folder / hashlib.sha256(data).hexdigest()[:12]
        place.write_bytes(data)
        print(f"{place.relative_to(ROOT)}: {what}", flush=True)


def executions(target: str, seed: int, folder: Path) -> Callable[[int], tuple[bytes, str | None]]:
    """The function of i that runs execution i: it writes its input to ``folder``/input, and returns the input and the
    failure, if any."""
    shown = folder / "input"
    if target == "native":
        names = list(fuzz_natives.ENTRIES)

        def call(i: int) -> tuple[bytes, str | None]:
            name, of_call = names[i % len(names)], seed * 1_000_003 + i
            data = f"{name} {of_call}\n".encode()
            shown.write_bytes(data)
            return data, fuzz_natives.failure(name, of_call)

        return call
    reader = TARGETS[target]
    seeds = reader.seeds()

    def read(i: int) -> tuple[bytes, str | None]:
        chance = random.Random(f"{target} {seed} {i}")
        data = reader.made(chance.choice(seeds), chance, seeds)
        shown.write_bytes(data)
        place = folder / "work"
        place.mkdir()
        try:
            return data, reader.failure(data, place)
        finally:
            shutil.rmtree(place)

    return read


def work(target: str, seed: int, first: int, seconds: float, folder: Path) -> None:
    """The work of a child: writes the number of executions and failures to ``folder``/done."""
    execute, failures = executions(target, seed, folder), Failures(target)
    end = time.monotonic() + seconds
    for i in itertools.count(first):
        (folder / "done").write_text(json.dumps([i - first, failures.count]))
        data, what = execute(i)
        if what is not None:
            failures.add(data, what)
        if i % TURN == 0 and time.monotonic() > end:
            (folder / "done").write_text(json.dumps([i + 1 - first, failures.count]))
            return


def fuzz(target: str, seed: int, seconds: float) -> tuple[int, int]:
    """The numbers of executions and failures of a target."""
    count, failed = 0, Failures(target)
    in_workers = 0
    end = time.monotonic() + seconds
    while count == 0 or time.monotonic() < end:
        with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
            place = Path(folder)
            left = max(0.0, end - time.monotonic())
            worker = subprocess.Popen(
                [sys.executable, __file__, "--work", target, str(seed), str(count), str(left), folder],
                stdin=subprocess.DEVNULL,
            )
            ended = _watched(worker, place)
            done, failures = json.loads((place / "done").read_text()) if (place / "done").exists() else (0, 0)
            count, in_workers = count + done, in_workers + failures
            if ended is None:
                return count, in_workers + failed.count
            if not (place / "input").exists():
                raise SystemExit(f"{target}: {ended} before the first execution")
            failed.add((place / "input").read_bytes(), ended)
            count += 1
    return count, in_workers + failed.count


def _watched(worker: subprocess.Popen[bytes], folder: Path) -> str | None:
    """The failure of the worker: its exit code, or no execution for ``PATIENCE`` seconds; None if it ended well."""
    shown, last, since = folder / "input", 0, time.monotonic()
    while True:
        try:
            code = worker.wait(0.5)
            return None if code == 0 else f"ended with {code}"
        except subprocess.TimeoutExpired:
            now = shown.stat().st_mtime_ns if shown.exists() else 0
            if now != last:
                last, since = now, time.monotonic()
            elif last and time.monotonic() - since > PATIENCE:
                worker.kill()
                worker.wait()
                return f"did not end within {PATIENCE:g} s"


def main() -> int:
    if sys.argv[1:2] == ["--work"]:
        target, seed, first, seconds, folder = sys.argv[2:]
        work(target, int(seed), int(first), float(seconds), Path(folder))
        return 0
    targets = [*TARGETS, "native"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--target", nargs="+", choices=targets, default=targets, metavar="NAME", help=", ".join(targets)
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target (default 60)")
    parser.add_argument("--seed", type=int, default=19, help="of all that is drawn (default 19)")
    options = parser.parse_args()
    total = 0
    for target in options.target:
        count, failures = fuzz(target, options.seed, options.seconds)
        print(f"{target}: {count} executions, {failures} failures", flush=True)
        total += failures
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
