"""Does ``apsvm verify`` cry wolf, and does it nod? Honest models over losses × bounds × C × scales × separability ×
feature maps, averages of such models, and forgeries of them.

    python scripts/study/certificates.py FOLDER [--models 1000] [--forgeries 1300] [--processes 2] [--seed 77]

Small sets of rows are made, models of them trained by ``apsvm train`` into FOLDER, and verified within 10 seconds of
the processor each. Some trainings are cut off, and end before the gap asked for. Then models are changed by hand, of
each kind in turn (``FORGERIES``, and ``OF_AVERAGES``): a model that was changed should never end with exit code 0. Of
some models there is no forgery of a kind, or none that rounding to float64 would not hide: they are left out. Prints
how many models of each kind ended with which exit code, every model that is called false or left undecided, and every
forgery that is accepted.
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
from apsvm.data.features import map_of_arrays
from apsvm.models.averages import average_of, members_of
from apsvm.models.header import Bounds, LabelKind, Labels
from apsvm.models.json import difference
from apsvm.models.linear import LinearRanker
from apsvm.verification.certificates import SHARE_AT_NOTHING

RANKINGS = ("ap", "ndcg", "mrr", "auc", "p@3", "ndcg@5", "ndcg-chakrabarti", "rbp(0.8)")
LOSSES = (*RANKINGS, "prbep", "f1", "zero-one", "set-p@5", "set-r@5")
SCALES = ("unit", "near 1e3", "near 1e5", "a column of 1e6", "spread", "tiny", "huge")
MAPS = ("linear", "piecewise:4", "rules:15:depth=2", "rules:15:depth=4", "products")
#: One model of this number is an average.
AVERAGES = 4
#: Seconds of the processor for each verification; by the clock a busy machine may take longer.
LIMIT, LIMIT_BY_CLOCK = 10.0, "120"


@dataclass(frozen=True)
class Verified:
    """End of a verification: number and kind of the model, the exit code (3, undecided, beyond the limit
    too), the seconds of the processor and the verdict."""

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
    """Prints counts of exit codes by kind, and wrong results."""
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
    """Trains model ``number``, or the members of an average, and verifies it; None where there was nothing to train."""
    rng = np.random.default_rng([seed, number])
    n, d, scale = int(rng.integers(7, 121)), int(rng.integers(1, 9)), SCALES[int(rng.integers(len(SCALES)))]
    rows = rng.normal(size=(n, d))
    direction = rng.normal(size=d)
    noise = (0.0, 0.7, 1e6)[int(rng.integers(3))]  # separable, in part, not at all
    scores = rows @ direction / np.linalg.norm(direction) + noise * rng.normal(size=n)
    positives = np.argsort(-scores)[: max(1, min(n - 1, int(n * rng.uniform(0.05, 0.6))))]
    labels = np.full(n, -1)
    labels[positives] = 1
    queries = np.sort(rng.integers(0, max(1, n // 10), size=n)) if rng.random() < 0.25 else None
    data, model = folder / f"{number}.svm", folder / f"{number}.model"
    write_rows(data, scaled(rows, scale, rng), labels, queries)
    if number % AVERAGES:
        features = "linear" if rng.random() < 0.6 else str(rng.choice(MAPS))
        if not trained(data, model, LOSSES[number % len(LOSSES)], features, rng):
            return None
        return verified(number, scale if features == "linear" else features, model, data)
    members = []
    for features in rng.choice(MAPS, size=int(rng.integers(2, 4)), replace=False).tolist():
        if trained(data, model, str(rng.choice(LOSSES)), features, rng):
            members.append(load_model(model))
    model.unlink(missing_ok=True)
    if len(members) < 2:
        return None
    average_of(members, (10.0 ** rng.uniform(-3, 3, size=len(members))).tolist()).save(model)
    return verified(number, f"average of {len(members)}", model, data)


def trained(data: Path, model: Path, loss: str, features: str, rng: np.random.Generator) -> bool:
    """True if a training by drawn options left a model."""
    bound = "tight" if loss in RANKINGS and rng.random() < 0.5 else "hinge"
    command = ["--loss", loss, "--scale", str(rng.choice(["none", "none", "standard", "maxabs"]))]
    command += ["--bound", bound] if loss in RANKINGS else []
    command += ["--features", features] if features != "linear" else []
    command += ["-C", f"{10.0 ** rng.uniform(-3, 6):.6g}", "-e", str(rng.choice(["1e-3", "1e-3", "1e-5", "0.1"]))]
    command += ["--max-iterations", str(rng.integers(1, 20))] if rng.random() < 0.15 else []
    data.with_suffix(".json").write_text(json.dumps(command))
    return quiet(["train", "-q", *command, str(data), str(model)])[0] in (0, 3)


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
    began = time.process_time()
    code, text = quiet(["verify", "--json", "--time-limit", LIMIT_BY_CLOCK, str(model), str(data)])
    seconds = time.process_time() - began
    verdicts = json.loads(text)["certificates"] if text else [{}]
    worst = next((one for one in verdicts if one.get("outcome") != "holds"), verdicts[0])
    return Verified(number, kind, 3 if code == 0 and seconds > LIMIT else code, seconds, worst)


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
    at_nothing = objective(replace(ranker, coef=0.0 * ranker.coef))[0]
    for size in 10.0 ** np.arange(-4.0, 3.0):
        changed = replace(ranker, coef=ranker.coef * (1.0 + size * rng.normal(size=ranker.coef.size)))
        value, rounding = objective(changed)
        hidden = max(1e-3 * abs(bounds.primal), 2.0 * rounding, 2.0 * SHARE_AT_NOTHING * at_nothing)
        if value > bounds.primal + 2.0 * bounds.gap + hidden:
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
    """Other weights, whose objective is said rightly, with the gap of the old ones. Where stationary points are claimed
    they may be another one."""
    if bounds.stationary:
        return None
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


# Forgeries of averages: of an average, a number of one of its members and random numbers another average, or None.

ForgeAverage = Callable[[LinearRanker, int, np.random.Generator], LinearRanker | None]


def with_member(average: LinearRanker, at: int, **changes: Any) -> LinearRanker:
    """The average whose member ``at`` says something else; its weights are as they were."""
    members = list(average.header.members)
    members[at] = replace(members[at], **changes)
    return replace(average, header=replace(average.header, members=tuple(members)))


def with_ranker(average: LinearRanker, at: int, ranker: LinearRanker) -> LinearRanker:
    """The average with another ranker in the place of member ``at``."""
    rankers = members_of(average)
    rankers[at] = ranker
    return average_of(rankers, [member.divisor for member in average.header.members])


def other_divisor(average: LinearRanker, at: int, rng: np.random.Generator) -> LinearRanker | None:
    """A member whose weights are another multiple of those of the whole."""
    if not members_of(average)[at].coef.any():
        return None
    own = average.header.members[at].divisor
    return with_member(average, at, divisor=own * 10.0 ** rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 1.5))


def swapped_certificates(average: LinearRanker, at: int, rng: np.random.Generator) -> LinearRanker | None:
    """Each of two members with the other's C, certificate and settings."""
    other = (at + 1) % len(average.header.members)
    result = average
    for one, another in ((at, other), (other, at)):
        source = members_of(average)[another].header
        own = members_of(average)[one].header
        header = replace(own, C=source.C, certificate=source.certificate, settings=source.settings)
        result = with_member(result, one, header=difference(header, replace(result.header, members=())))
    return result


def swapped_weights(average: LinearRanker, at: int, rng: np.random.Generator) -> LinearRanker | None:
    """The weights of the whole in another order of its columns."""
    coef = rng.permutation(average.coef)
    return replace(average, coef=coef)


def weights_of_noise(average: LinearRanker, at: int, rng: np.random.Generator) -> LinearRanker | None:
    """A whole whose weights are not those of its members."""
    return replace(average, coef=np.abs(average.coef).max() * rng.normal(size=average.coef.size))


def upside_down(average: LinearRanker, at: int, rng: np.random.Generator) -> LinearRanker | None:
    """A member that was trained to rank the positives low."""
    header = members_of(average)[at].header
    changed = replace(header, labels=Labels(kind=LabelKind.ONE_LABEL, positive=-1.0, negative=(1.0,)))
    return with_member(average, at, header=difference(changed, replace(average.header, members=())))


def of_unit_rows(average: LinearRanker, at: int, rng: np.random.Generator) -> LinearRanker | None:
    """A member of rows divided by their length, which the whole does not divide."""
    header = members_of(average)[at].header
    changed = replace(header, features=replace(header.features, scale="l2"))
    return with_member(average, at, header=difference(changed, replace(average.header, members=())))


def other_map(average: LinearRanker, at: int, rng: np.random.Generator) -> LinearRanker | None:
    """A feature map with other knots, or rules that ask for other values."""
    ranker = members_of(average)[at]
    if ranker.feature_map is None or not ranker.coef.any():
        return None
    arrays = {
        name: array * (1.0 + 0.3 * rng.normal(size=array.shape)) if array.dtype == np.float64 else array
        for name, array in ranker.feature_map.arrays().items()
    }
    try:
        changed = map_of_arrays(ranker.feature_map.name, ranker.width, arrays)
    except ValueError:
        return None
    return with_ranker(average, at, replace(ranker, feature_map=changed))


def own_certificate(average: LinearRanker, at: int, rng: np.random.Generator) -> LinearRanker | None:
    """A whole that says that it is itself an optimum."""
    header = members_of(average)[at].header
    return average.with_header(replace(average.header, C=header.C, certificate=header.certificate))


OF_AVERAGES: tuple[ForgeAverage, ...] = (
    other_divisor, swapped_certificates, swapped_weights, weights_of_noise, upside_down, of_unit_rows, other_map,
    own_certificate,
)  # fmt: skip
#: That trains again, by what is known of a model that is no average.
OF_ONE_ALONE = (above_the_optimum,)


def forgery(folder: Path, seed: int, models: int, number: int) -> Verified | None:
    """Forges a model, of another kind each time, and verifies it; None where it would be no forgery."""
    rng = np.random.default_rng([seed, 1, number])
    data = number % models
    model, path, rows = folder / f"{data}.model", folder / f"forged{number}.model", folder / f"{data}.svm"
    if not model.exists():
        return None
    whole = load_model(model)
    at = int(rng.integers(max(1, len(whole.header.members))))
    ranker = members_of(whole)[at]
    turn = number // AVERAGES if whole.header.members else number
    if whole.header.members and turn % 2:
        of_average = OF_AVERAGES[turn // 2 % len(OF_AVERAGES)]
        forged, kind = of_average(whole, at, rng), of_average.__name__
    else:
        forge = FORGERIES[(turn // 2 if whole.header.members else turn) % len(FORGERIES)]
        kind = f"{forge.__name__}, of a member" if whole.header.members else forge.__name__
        if whole.header.members and forge in OF_ONE_ALONE:
            return None

        def put_back(of: LinearRanker) -> LinearRanker:
            return with_ranker(whole, at, of) if whole.header.members else of

        def objective(of: LinearRanker) -> tuple[float, float]:
            put_back(of).save(path)
            _, text = quiet(["verify", "--json", "--max-iterations", "0", str(path), str(rows)])
            found = json.loads(text)["certificates"][at]
            return float(found["objective"]), float(found["rounding"])

        ranker = replace(ranker, header=replace(ranker.header, data=replace(ranker.header.data, file=str(rows))))
        bounds = ranker.header.certificate
        assert bounds is not None
        if bounds.primal < 1e-300:
            return None
        changed = forge(ranker, bounds, rng, objective)
        forged = None if changed is None else put_back(changed)
    if forged is None:
        return None
    forged.save(path)
    return verified(number, kind, path, rows)


if __name__ == "__main__":
    sys.exit(main())
