"""Does ``apsvm verify`` cry wolf, and does it nod? Honest models over losses × bounds × C × scales × separability, and
forgeries of them.

    python scripts/study/certificates.py FOLDER [--models 1000] [--forgeries 1300] [--processes 2] [--seed 77]

Small sets of rows are made, models of them trained by ``apsvm train`` into FOLDER, and verified within 10 seconds each.
Some trainings are cut off, and end before the gap asked for. Then models are changed by hand, of each kind in turn
(``FORGERIES``): a model that was changed should never end with exit code 0. Of some models there is no forgery of a
kind, or none that rounding to float64 would not hide: they are left out. Prints how many models of each kind ended with
which exit code, every model that is called false or left undecided, and every forgery that is accepted.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np

from apsvm import load_model
from apsvm.cli import run
from apsvm.models.header import Bounds
from apsvm.models.linear import LinearRanker

RANKINGS = ("ap", "ndcg", "mrr", "auc", "p@3", "ndcg@5", "ndcg-chakrabarti", "rbp(0.8)")
LOSSES = (*RANKINGS, "prbep", "f1", "zero-one", "set-p@5", "set-r@5")
SCALES = ("unit", "near 1e3", "near 1e5", "a column of 1e6", "spread", "tiny", "huge")
#: Seconds of each proof.
LIMIT = "10"


@dataclass(frozen=True)
class Verified:
    """How a verification ended: the number of the model, of which kind, the exit code, the seconds and the verdict."""

    number: int
    kind: str
    code: int
    seconds: float
    verdict: dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--forgeries", type=int, default=1300)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=77)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with Pool(options.processes) as pool:
        honest = partial(honest_model, options.folder, options.seed)
        show("honest", pool.imap(honest, range(options.models)), wrong=(1, 3, 4))
        forged = partial(forgery, options.folder, options.seed, options.models)
        show("forged", pool.imap(forged, range(options.forgeries)), wrong=(0, 1))


def show(title: str, results: Iterator[Verified | None], wrong: tuple[int, ...]) -> None:
    """How many of each kind ended how, and what ended as it should not."""
    codes: dict[str, Counter[int]] = {}
    seconds = []
    for result in results:
        if result is None:
            continue
        seconds.append(result.seconds)
        for kind in (title, result.kind):
            codes.setdefault(kind, Counter())[result.code] += 1
        if result.code in wrong:
            print(
                f"{title} {result.number} ({result.kind}): exit {result.code}, {json.dumps(result.verdict)}", flush=True
            )
    for kind, counts in codes.items():
        print(f"{kind:30s}", "   ".join(f"exit {code}: {counts[code]}" for code in sorted(counts)))
    print(f"{'seconds':30s} {np.mean(seconds):.2f} in the mean, {np.max(seconds):.2f} at the most", flush=True)


def honest_model(folder: Path, seed: int, number: int) -> Verified | None:
    """Trains model ``number`` and verifies it; None where there was nothing to train."""
    rng = np.random.default_rng([seed, number])
    loss = LOSSES[number % len(LOSSES)]
    n, d, scale = int(rng.integers(7, 121)), int(rng.integers(1, 9)), SCALES[int(rng.integers(len(SCALES)))]
    rows = rng.normal(size=(n, d))
    direction = rng.normal(size=d)
    noise = (0.0, 0.7, 1e6)[int(rng.integers(3))]  # separable, in part, not at all
    scores = rows @ direction / np.linalg.norm(direction) + noise * rng.normal(size=n)
    positives = np.argsort(-scores)[: max(1, min(n - 1, int(n * rng.uniform(0.05, 0.6))))]
    labels = np.full(n, -1)
    labels[positives] = 1
    queries = np.sort(rng.integers(0, max(1, n // 10), size=n)) if rng.random() < 0.25 else None
    write_rows(folder / f"{number}.svm", scaled(rows, scale, rng), labels, queries)
    bound = "tight" if loss in RANKINGS and rng.random() < 0.5 else "hinge"
    command = ["--loss", loss, "--scale", str(rng.choice(["none", "none", "standard", "maxabs"]))]
    command += ["--bound", bound] if loss in RANKINGS else []
    command += ["-C", f"{10.0 ** rng.uniform(-3, 6):.6g}", "-e", str(rng.choice(["1e-3", "1e-3", "1e-5", "0.1"]))]
    command += ["--max-iterations", str(rng.integers(1, 20))] if rng.random() < 0.15 else []
    files = [str(folder / f"{number}.svm"), str(folder / f"{number}.model")]
    (folder / f"{number}.json").write_text(json.dumps(command))
    code, _ = quiet(["train", "-q", *command, *files])
    if code not in (0, 3):
        return None
    return verified(number, scale, Path(files[1]), Path(files[0]))


def scaled(rows: np.ndarray, scale: str, rng: np.random.Generator) -> np.ndarray:
    """Rows of deviation 1 about 0, brought to a scale."""
    if scale == "a column of 1e6":
        return np.column_stack([1e6 * rows[:, :1], rows[:, 1:]])
    if scale == "spread":
        return rows * 10.0 ** rng.uniform(-4, 4, size=rows.shape[1])
    unit, origin = {"near 1e3": (1.0, 1e3), "near 1e5": (1.0, 1e5), "tiny": (1e-6, 0.0), "huge": (1e6, 1e7)}.get(
        scale, (1.0, 0.0)
    )
    return unit * rows + origin


def write_rows(path: Path, rows: np.ndarray, labels: np.ndarray, queries: np.ndarray | None) -> None:
    with path.open("w") as stream:
        for row, values in enumerate(rows.tolist()):
            query = "" if queries is None else f" qid:{queries[row]}"
            stream.write(f"{labels[row]}{query} {' '.join(f'{j}:{value!r}' for j, value in enumerate(values, 1))}\n")


def quiet(command: list[str]) -> tuple[int, str]:
    """The exit code of a command, and what it writes to standard output."""
    output = io.TextIOWrapper(io.BytesIO())
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
        code = run(command)
    output.flush()
    return code, output.buffer.getvalue().decode()  # type: ignore[attr-defined]


def verified(number: int, kind: str, model: Path, data: Path) -> Verified:
    began = time.perf_counter()
    code, text = quiet(["verify", "--json", "--time-limit", LIMIT, str(model), str(data)])
    verdict = json.loads(text)["certificates"][0] if text else {}
    return Verified(number, kind, code, time.perf_counter() - began, verdict)


# Forgeries: of a ranker, its bounds and random numbers another ranker, or None where it would be no forgery.
# ``objective`` is that of a ranker's weights, as verify recomputes it, and what rounding may do to it.

Objective = Callable[[LinearRanker], tuple[float, float]]
Forge = Callable[[LinearRanker, Bounds, np.random.Generator, Objective], LinearRanker | None]


def with_bounds(ranker: LinearRanker, primal: float, dual: float, **changes: float) -> LinearRanker:
    """The ranker with bounds that agree with each other."""
    assert ranker.header.certificate is not None
    bounds = replace(ranker.header.certificate, primal=primal, dual=dual, gap=max(primal - dual, 0.0), **changes)
    return replace(ranker, header=replace(ranker.header, certificate=bounds))


def moved(ranker: LinearRanker, bounds: Bounds, rng: np.random.Generator, objective: Objective) -> LinearRanker | None:
    """Other weights, whose objective is higher by more than the gap and a thousandth of itself."""
    for size in 10.0 ** np.arange(-4.0, 3.0):
        changed = replace(ranker, coef=ranker.coef * (1.0 + size * rng.normal(size=ranker.coef.size)))
        value, rounding = objective(changed)
        if value > bounds.primal + 2.0 * bounds.gap + max(1e-3 * abs(bounds.primal), 2.0 * rounding):
            return changed
    return None


def other_weights(
    ranker: LinearRanker, bounds: Bounds, rng: np.random.Generator, objective: Objective
) -> LinearRanker | None:
    """Other weights under the same certificate."""
    return moved(ranker, bounds, rng, objective)


def other_weights_raised_dual(
    ranker: LinearRanker, bounds: Bounds, rng: np.random.Generator, objective: Objective
) -> LinearRanker | None:
    """Other weights, whose objective is said rightly, with the gap of the old ones."""
    changed = moved(ranker, bounds, rng, objective)
    if changed is None:
        return None
    primal = objective(changed)[0]
    return with_bounds(changed, primal, primal - bounds.gap)


def no_gap(ranker: LinearRanker, bounds: Bounds, rng: np.random.Generator, objective: Objective) -> LinearRanker | None:
    """Other weights, whose objective is said rightly, and said to be the optimum."""
    changed = moved(ranker, bounds, rng, objective)
    if changed is None:
        return None
    primal = objective(changed)[0]
    return with_bounds(changed, primal, primal)


def raised_dual(
    ranker: LinearRanker, bounds: Bounds, rng: np.random.Generator, objective: Objective
) -> LinearRanker | None:
    """A lower bound above the objective."""
    dual = bounds.primal * (1.0 + 10.0 ** rng.uniform(-3, 0))
    hidden = dual - bounds.primal <= 2.0 * objective(ranker)[1]
    return None if hidden else with_bounds(ranker, bounds.primal, dual)


def lowered_primal(
    ranker: LinearRanker, bounds: Bounds, rng: np.random.Generator, objective: Objective
) -> LinearRanker | None:
    primal = bounds.primal * (1.0 - 10.0 ** rng.uniform(-3, 0))
    hidden = bounds.primal - primal <= 2.0 * objective(ranker)[1]
    return None if hidden else with_bounds(ranker, primal, min(bounds.dual, primal))


def both_scaled(
    ranker: LinearRanker, bounds: Bounds, rng: np.random.Generator, objective: Objective
) -> LinearRanker | None:
    share = 10.0 ** rng.uniform(-1, 1)
    hidden = abs(share - 1.0) * bounds.primal <= 2.0 * objective(ranker)[1]
    return None if hidden else with_bounds(ranker, bounds.primal * share, bounds.dual * share)


def above_the_optimum(
    ranker: LinearRanker, bounds: Bounds, rng: np.random.Generator, objective: Objective
) -> LinearRanker | None:
    """A lower bound between the objective and that of a model that was trained to the end."""
    source = Path(ranker.header.data.file)
    if bounds.stationary:
        return None
    command = json.loads(source.with_suffix(".json").read_text())
    command = [*command[: command.index("-e")], "-e", "1e-7"]
    better = str(source.with_suffix(".better"))
    quiet(["train", "-q", *command, str(source), better])
    found = load_model(better).header.certificate
    if found is None or found.bound != bounds.bound or found.primal > 0.9999 * bounds.primal:
        return None
    between = found.primal + rng.uniform(0.1, 1.0) * (bounds.primal - found.primal)
    hidden = between - found.primal <= 2.0 * objective(ranker)[1]
    return None if hidden else with_bounds(ranker, bounds.primal, between)


def smaller_gap(
    ranker: LinearRanker, bounds: Bounds, rng: np.random.Generator, objective: Objective
) -> LinearRanker | None:
    """A gap that is not the difference of the bounds."""
    if bounds.gap < 1e-6 * abs(bounds.primal):
        return None
    changed = replace(bounds, gap=bounds.gap * rng.uniform(0.0, 0.99))
    return replace(ranker, header=replace(ranker.header, certificate=changed))


def nothing(
    ranker: LinearRanker, bounds: Bounds, rng: np.random.Generator, objective: Objective
) -> LinearRanker | None:
    """w = 0 with the trivial bound, and any epsilon."""
    zero = replace(ranker, coef=np.zeros_like(ranker.coef), intercept=0.0)
    C, epsilon = ranker.header.C or 1.0, 10.0 ** rng.uniform(0, 290)
    changed = with_bounds(zero, objective(zero)[0], 0.0, tolerance=epsilon * C)
    settings = {**ranker.header.settings, "epsilon": epsilon}
    return replace(changed, header=replace(changed.header, settings=settings))


def nothing_as_optimum(
    ranker: LinearRanker, bounds: Bounds, rng: np.random.Generator, objective: Objective
) -> LinearRanker | None:
    """w = 0, said to be the optimum."""
    zero = replace(ranker, coef=np.zeros_like(ranker.coef), intercept=0.0)
    primal = objective(zero)[0]
    return with_bounds(zero, primal, primal) if primal > 1.01 * bounds.primal else None


def noise(ranker: LinearRanker, bounds: Bounds, rng: np.random.Generator, objective: Objective) -> LinearRanker | None:
    """Random weights with the trivial bound, and an epsilon that is a whole number."""
    size = float(np.abs(ranker.coef).max()) or 1.0
    changed = replace(ranker, coef=size * rng.normal(size=ranker.coef.size))
    C, epsilon = ranker.header.C or 1.0, int(10.0 ** rng.uniform(0, 15))
    value = objective(changed)[0]
    if value < 0.02 * objective(replace(ranker, coef=0.0 * ranker.coef))[0]:
        return None  # good by chance
    changed = with_bounds(changed, value, 0.0, tolerance=epsilon * C)
    settings = {**ranker.header.settings, "epsilon": epsilon}
    return replace(changed, header=replace(changed.header, settings=settings))


def no_epsilon(
    ranker: LinearRanker, bounds: Bounds, rng: np.random.Generator, objective: Objective
) -> LinearRanker | None:
    """The right bounds, with any tolerance and no word of an epsilon."""
    settings = {name: value for name, value in ranker.header.settings.items() if name != "epsilon"}
    changed = replace(bounds, tolerance=10.0 ** rng.uniform(0, 300))
    return replace(ranker, header=replace(ranker.header, certificate=changed, settings=settings))


def tolerance(
    ranker: LinearRanker, bounds: Bounds, rng: np.random.Generator, objective: Objective
) -> LinearRanker | None:
    changed = replace(bounds, tolerance=bounds.tolerance * 10.0 ** rng.uniform(1, 6))
    return replace(ranker, header=replace(ranker.header, certificate=changed))


def other_C(
    ranker: LinearRanker, bounds: Bounds, rng: np.random.Generator, objective: Objective
) -> LinearRanker | None:
    """The bounds of another C."""
    share, C = 10.0 ** rng.choice([-1.0, 1.0]), ranker.header.C or 1.0
    changed = replace(ranker, header=replace(ranker.header, C=share * C))
    value, rounding = objective(changed)
    if abs(value - bounds.primal) < max(1e-3 * abs(bounds.primal), 2.0 * rounding):
        return None  # none of it is loss
    return with_bounds(changed, bounds.primal, bounds.dual, tolerance=share * bounds.tolerance)


FORGERIES: tuple[Forge, ...] = (
    other_weights, other_weights_raised_dual, no_gap, raised_dual, above_the_optimum, lowered_primal, both_scaled,
    smaller_gap, nothing, nothing_as_optimum, noise, no_epsilon, tolerance, other_C,
)  # fmt: skip


def forgery(folder: Path, seed: int, models: int, number: int) -> Verified | None:
    """Forges a model, of another kind each time, and verifies it; None where it would be no forgery."""
    rng = np.random.default_rng([seed, 1, number])
    forge, data = FORGERIES[number % len(FORGERIES)], number % models
    model, path = folder / f"{data}.model", folder / f"forged{number}.model"
    if not model.exists():
        return None
    ranker = load_model(model)
    data_of = replace(ranker.header.data, file=str(folder / f"{data}.svm"))
    ranker = replace(ranker, header=replace(ranker.header, data=data_of))
    bounds = ranker.header.certificate
    assert bounds is not None

    def objective(of: LinearRanker) -> tuple[float, float]:
        of.save(path)
        _, text = quiet(["verify", "--json", "--max-iterations", "0", str(path), str(folder / f"{data}.svm")])
        found = json.loads(text)["certificates"][0]
        return float(found["objective"]), float(found["rounding"])

    if bounds.primal < 1e-300:
        return None
    forged = forge(ranker, bounds, rng, objective)
    if forged is None:
        return None
    forged.save(path)
    return verified(number, forge.__name__, path, folder / f"{data}.svm")


if __name__ == "__main__":
    sys.exit(main())
