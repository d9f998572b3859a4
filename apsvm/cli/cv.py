"""``apsvm cv``: settings compared by k-fold cross-validation, the best one trained on all rows.

A setting is a loss, a bound, an ε and a C. Each fold's path of C is trained in one go, every value from the planes and
the solution of those before. Folds and paths run in threads on the rows read once: a fold is a selection of them, its
scaling a map in front of w, so that nothing of X is copied.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from apsvm.cli.completion import MetricName
from apsvm.cli.config import config_option
from apsvm.cli.evaluate import judged
from apsvm.cli.recipes import LossName, recipe_of
from apsvm.cli.recipes.base import Common, Job
from apsvm.cli.recipes.structured import Structured, shown_C
from apsvm.cli.shared import (
    BAD_DATA,
    INTERRUPTED,
    STOPPED_EARLY,
    TERMINATED,
    Failure,
    Multiple,
    NumberList,
    Several,
    how_to_read,
    put,
    say,
    thread_count,
    writing,
)
from apsvm.cli.training import check_output, read_to_train, signals_caught, training_options

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.metrics import Metric

#: Lists here, or of no use without a log.
_OTHERWISE = {"C", "epsilon", "bound", "log_ranks"}


class CvCommand(click.Command):
    """``apsvm cv`` with the options of the structured SVM that are not lists here."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.params += [option for option in Structured.options if option.name not in _OTHERWISE]


@click.command(name="cv", cls=CvCommand, context_settings={"auto_envvar_prefix": "APSVM_CV"})
@click.argument("data", metavar="DATA")
@click.option("--folds", type=click.IntRange(2), default=5, show_default=True, help="How many folds.")
@click.option(
    "-m", "--metric", metavar="NAME", type=MetricName(), multiple=True, default=("AP",), show_default=True,
    help="What settings are judged by, as apsvm eval names it; may be given more than once: the first one chooses.",
)  # fmt: skip
@click.option(
    "-C", "--C", "C", type=NumberList(0, open_low=True, multiples=True), default="0.001x:1000x:log10",
    show_default=True, metavar="NUMBER[,NUMBER…]",
    help="Weights of the risk to try: 1,10,100; 0.01:1e5:log10 (decades; log2: doublings); or multiples, 1x, of what "
    "fits the scale of the features of the fold's training rows (-C auto of apsvm train).",
)  # fmt: skip
@click.option("--loss", type=Several(LossName()), default="ap", show_default=True, help="Losses to try.")
@click.option(
    "--bound", type=Several(click.Choice(["hinge", "tight"])), default="hinge", show_default=True,
    help="Bounds on the loss to try.",
)  # fmt: skip
@click.option(
    "-e", "--epsilon", type=NumberList(0, open_low=True), default="1e-3", show_default=True,
    metavar="NUMBER[,NUMBER…]", help="Gaps to try, in units of the loss: training stops at a gap of epsilon·C.",
)  # fmt: skip
@click.option(
    "--one-standard-error", is_flag=True,
    help="Choose not the best C but the smallest whose mean is within one standard error of the best.",
)  # fmt: skip
@click.option("-o", "--output", metavar="MODEL", help="Train the chosen setting on all rows and write this model.")
@click.option("--json", metavar="FILE", help="Write all results, each fold's included; - for stdout.")
@click.option(
    "-j", "--jobs", type=click.IntRange(0, 1024), default=0, show_default=True,
    help="Paths trained at a time, in threads; 0: one a core. The result does not depend on it.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the folds.")
@training_options
@how_to_read
@config_option
def cv(data: str, **given: Any) -> int:
    """Compare settings by cross-validation on DATA, and train the best one.

    Folds are of whole queries where rows have qid:, else of rows, each with its share of the positives. --time-limit is
    for each fold's path. The deviation is that between the folds' values.

    \b
    apsvm cv data.svm -C 0.01:1e5:log10 --metric AP -o best.model
    apsvm cv data.svm --loss ap,auc --bound hinge,tight --scale standard --json -
    """
    run = _Run.of_options(data, given)
    dataset = run.read()
    with signals_caught() as signals:
        run.cross_validate(dataset, lambda: bool(signals))
        stopped = (TERMINATED if signal.SIGTERM in signals else INTERRUPTED) if signals else 0
        rows = run.complete()
        if not rows:
            raise Failure(stopped or BAD_DATA, "stopped, nothing was finished in every fold")
        chosen = run.choose(rows)
        run.report(dataset, rows, chosen)
        if stopped:
            say("interrupted: the table is of what was finished" + (", no model written" if run.output else ""))
            return stopped
        converged = all(row.converged for row in rows)
        if run.output is not None:
            converged &= run.refit(dataset, chosen, len(rows), lambda: bool(signals))
            if signals:
                return TERMINATED if signal.SIGTERM in signals else INTERRUPTED
    return 0 if converged else STOPPED_EARLY


class Variant(NamedTuple):
    """All of a setting but C."""

    loss: str
    bound: str
    epsilon: float


class Fold(NamedTuple):
    """(m,) and (n − m,) int64, ascending."""

    training: Any
    test: Any


@dataclass
class Setting:
    """A row of the table. By fold: the C, the metrics, the seconds its training took after the C before, and why it
    stopped."""

    variant: Variant
    given: float | Multiple
    C: list[float] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    states: list[str] = field(default_factory=list)

    @property
    def converged(self) -> bool:
        return all(state == "converged" for state in self.states)

    def mean(self, metric: str) -> float:
        return math.fsum(self.values[metric]) / len(self.values[metric])

    def deviation(self, metric: str) -> float:
        """Between the folds, of a sample."""
        values, mean = self.values[metric], self.mean(metric)
        return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))

    def mean_C(self) -> float:
        return math.fsum(self.C) / len(self.C)


class _Outcome(NamedTuple):
    """A setting in one fold."""

    given: float | Multiple
    C: float
    values: Mapping[str, float]
    seconds: float
    state: str


@dataclass
class _Run:
    data: str
    given: Mapping[str, Any]
    common: Common
    own: Mapping[str, Any]
    metrics: dict[str, Metric]
    variants: list[Variant]
    recipe: Structured
    output: str | None
    folds: list[Fold] = field(default_factory=list)
    outcomes: dict[tuple[Variant, int], list[_Outcome]] = field(default_factory=dict)

    @classmethod
    def of_options(cls, data: str, given: Mapping[str, Any]) -> _Run:
        """What was asked for, checked before anything is read."""
        from apsvm.metrics import MetricError
        from apsvm.metrics.evaluate import parse_metrics

        absent = {"loss": given["loss"][0], "threads": 1, "warm_start": None, "log": None}
        common = Common(**{one.name: {**given, **absent}.get(one.name, False) for one in fields(Common)})
        own = {option.name: given.get(option.name) for option in Structured.options if option.name is not None}
        if common.positive_label is not None and common.relevant_from is not None:
            raise click.UsageError("--positive-label and --relevant-from say the same thing twice: give one")
        try:
            metrics = parse_metrics(given["metric"])
        except MetricError as error:
            raise click.UsageError(str(error)) from None
        variants = [Variant(*names) for names in itertools.product(given["loss"], given["bound"], given["epsilon"])]
        for variant in variants:
            recipe = recipe_of(variant.loss)
            if not isinstance(recipe, Structured):
                raise click.UsageError(f"--loss {variant.loss}: apsvm cv chooses C, which it does not have")
            structured = recipe
            recipe.check(replace(common, loss=variant.loss), {**own, "bound": variant.bound})
        values = sorted(given["C"], key=lambda C: (isinstance(C, Multiple), C.factor if isinstance(C, Multiple) else C))
        if len({shown_C(C) for C in values}) < len(values):
            raise click.UsageError(f"-C: one value twice in {', '.join(shown_C(C) for C in values)}")
        run = cls(data, given, common, {**own, "C": tuple(values)}, metrics, variants, structured, given["output"])
        run._check_outputs()
        return run

    def _check_outputs(self) -> None:
        outputs = [path for path in (self.output, self.given["json"]) if path is not None]
        for path in outputs:
            check_output(path, data=self.data, **self.recipe.inputs(self.own), query_weights=self.own["query_weights"])
        places = ["-" if path == "-" else os.path.realpath(path) for path in outputs]
        if len(set(places)) < len(places):
            raise click.UsageError("the model and --json cannot go to the same place")

    def read(self) -> Dataset:
        """The data, stored as passes over it go fastest, once for all folds."""
        from apsvm.data.rows import Rows

        common = self.common
        dataset = read_to_train(self.data, replace(common, threads=self.given["jobs"]), unlabelled=False)
        for at, loss in enumerate(self.given["loss"]):
            # What there is to say of the data, it says once.
            quiet = common.quiet or at > 0
            self.recipe.check_data(dataset, replace(common, loss=loss, quiet=quiet), {**self.own, "bound": "hinge"})
        return replace(dataset, X=Rows(dataset.X).for_many_passes().in_memory().matrix)

    def cross_validate(self, dataset: Dataset, should_stop: Any) -> None:
        """All paths in all folds, into ``outcomes``; fewer if it is stopped."""
        from joblib import Parallel, delayed
        from threadpoolctl import threadpool_limits

        grades, threshold = judged(self.metrics, dataset, self.common.positive_label, self.common.relevant_from)
        relevant = grades if threshold is None else grades >= threshold
        self.folds = make_folds(relevant, dataset.groups, self.given["folds"], self.common.seed, dataset.source)
        job = Job(dataset, replace(self.common, quiet=True, verbose=False), self.own, _NoLog(), should_stop)
        jobs = [replace(job, selection=fold.training).with_scaling() for fold in self.folds]

        def path(variant: Variant, at: int) -> tuple[Variant, int, list[_Outcome]]:
            return variant, at, list(self._path(jobs[at], variant, self.folds[at].test, grades, threshold))

        parallel = Parallel(
            n_jobs=thread_count(self.given["jobs"]), backend="threading", return_as="generator_unordered"
        )
        tasks = [(variant, at) for at in range(len(self.folds)) for variant in self.variants]
        done = 0
        with threadpool_limits(1, user_api="blas"):
            for variant, at, outcomes in parallel(delayed(path)(*task) for task in tasks):
                done += 1
                self.outcomes[variant, at] = outcomes
                if outcomes and not self.common.quiet:
                    say(self._progress(done, len(tasks), variant, at, outcomes))

    def _path(self, job: Job, variant: Variant, test: Any, grades: Any, threshold: float | None) -> Iterator[_Outcome]:
        from apsvm.metrics import MetricError
        from apsvm.metrics.evaluate import evaluate

        dataset = job.dataset
        if job.should_stop():
            return
        job = replace(
            job,
            common=replace(job.common, loss=variant.loss),
            own={**job.own, "bound": variant.bound, "epsilon": variant.epsilon},
        )
        held_out = job.rows(test)
        groups = None if dataset.groups is None else dataset.groups[test]
        try:
            began = time.perf_counter()
            for fit in self.recipe.fits(job):
                if job.should_stop():
                    return
                seconds = time.perf_counter() - began
                scores = held_out.scores(fit.trained.w)
                result = evaluate(list(self.metrics.values()), scores, grades[test], groups, relevant_from=threshold)
                yield _Outcome(fit.given, fit.C, result.values, seconds, str(fit.trained.state))
                began = time.perf_counter()
        except (FloatingPointError, MetricError) as error:
            raise Failure(BAD_DATA, f"{dataset.source}: {error}") from None

    def _progress(self, done: int, tasks: int, variant: Variant, at: int, outcomes: Sequence[_Outcome]) -> str:
        metric = next(iter(self.metrics))
        best = max(outcomes, key=lambda outcome: outcome.values[metric])
        name = " ".join([*self._name(variant), ""]) if len(self.variants) > 1 else ""
        return (
            f" {done:>{len(str(tasks))}}/{tasks}  fold {at + 1}  {name}{len(outcomes)} values of C in "
            f"{sum(outcome.seconds for outcome in outcomes):.2f} s; best {metric} {best.values[metric]:.4f} at "
            f"C = {shown_C(best.given)}"
        )

    def _name(self, variant: Variant) -> list[str]:
        """What tells it from the other variants."""
        several = [len({other[part] for other in self.variants}) > 1 for part in range(len(variant))]
        shown = (variant.loss, variant.bound, f"{variant.epsilon:g}")
        return [part for part, wanted in zip(shown, several, strict=True) if wanted]

    def complete(self) -> list[Setting]:
        """The settings that were finished in every fold, by variant and C."""
        settings = []
        for variant in self.variants:
            paths = [self.outcomes.get((variant, at), []) for at in range(len(self.folds))]
            for outcomes in zip(*paths, strict=False):
                setting = Setting(variant, outcomes[0].given)
                for outcome in outcomes:
                    setting.C.append(outcome.C)
                    setting.seconds.append(outcome.seconds)
                    setting.states.append(outcome.state)
                    for metric, value in outcome.values.items():
                        setting.values.setdefault(metric, []).append(value)
                settings.append(setting)
        return settings

    def choose(self, settings: Sequence[Setting]) -> Setting:
        """Of the highest mean, the first if there are several; or by the rule of one standard error, along its path."""
        metric = next(iter(self.metrics))
        best = max(settings, key=lambda setting: setting.mean(metric))
        if not self.given["one_standard_error"]:
            return best
        least = best.mean(metric) - best.deviation(metric) / math.sqrt(len(self.folds))
        path = [setting for setting in settings if setting.variant == best.variant and setting.mean(metric) >= least]
        return min(path, key=Setting.mean_C)

    def report(self, dataset: Dataset, settings: Sequence[Setting], chosen: Setting) -> None:
        """The table, on stdout or where something else goes there on stderr, and the JSON."""
        from apsvm.files import write_whole

        as_json = self.given["json"]
        show = say if "-" in (as_json, self.output) else put
        if show is put or not self.common.quiet:
            for line in self._table(settings, chosen):
                show(f" {line}" if show is say else line)
        if as_json is not None:
            text = json.dumps(self._as_json(dataset, settings, chosen), indent=1, allow_nan=False) + "\n"
            with writing(as_json):
                write_whole(as_json, text.encode())

    def _table(self, settings: Sequence[Setting], chosen: Setting) -> Iterator[str]:
        several = [len({other[part] for other in self.variants}) > 1 for part in range(3)]
        heading = [part for part, wanted in zip(("loss", "bound", "epsilon"), several, strict=True) if wanted]
        multiples = any(isinstance(setting.given, Multiple) for setting in settings)
        heading += ["C", *(["mean C"] if multiples else []), *self.metrics, "seconds", ""]
        table = [heading]
        for setting in settings:
            cells = [*self._name(setting.variant), shown_C(setting.given)]
            if multiples:
                cells.append(f"{setting.mean_C():.4g}")
            cells += [f"{setting.mean(metric):.4f} ± {setting.deviation(metric):.4f}" for metric in self.metrics]
            cells += [f"{math.fsum(setting.seconds):.2f}"]
            marks = ["chosen" if setting is chosen else "", "" if setting.converged else "stopped early"]
            table.append([*cells, ", ".join(mark for mark in marks if mark)])
        widths = [max(len(row[at]) for row in table) for at in range(len(heading))]
        for row in table:
            cells = [cell.rjust(width) for cell, width in zip(row[:-1], widths[:-1], strict=True)]
            yield "  ".join([*cells, row[-1]]).rstrip()

    def _description(self, dataset: Dataset) -> dict[str, Any]:
        return {
            "folds": len(self.folds),
            "folds_of": "rows, stratified" if dataset.groups is None else "queries",
            "seed": self.common.seed,
            "metric": next(iter(self.metrics)),
            "rule": "one standard error" if self.given["one_standard_error"] else "highest mean",
        }

    def _as_json(self, dataset: Dataset, settings: Sequence[Setting], chosen: Setting) -> dict[str, Any]:
        return {
            "data": {
                "file": os.path.basename(dataset.source),
                "sha256": dataset.fingerprint,
                "rows": int(dataset.X.shape[0]),
                "test_rows": [int(fold.test.size) for fold in self.folds],
            },
            **self._description(dataset),
            "scale": self.common.scale,
            "settings": [
                {
                    **setting.variant._asdict(),
                    "C": setting.given if isinstance(setting.given, float) else str(setting.given),
                    "C_of_folds": setting.C,
                    "metrics": {
                        metric: {
                            "mean": setting.mean(metric),
                            "deviation": setting.deviation(metric),
                            "folds": setting.values[metric],
                        }
                        for metric in self.metrics
                    },
                    "seconds": setting.seconds,
                    "states": setting.states,
                    "chosen": setting is chosen,
                }
                for setting in settings
            ],
        }

    def refit(self, dataset: Dataset, chosen: Setting, n_settings: int, should_stop: Any) -> bool:
        """Trains ``chosen`` on all rows and writes the model; whether it converged."""
        from threadpoolctl import threadpool_limits

        variant, metric = chosen.variant, next(iter(self.metrics))
        assert self.output is not None
        common = replace(self.common, loss=variant.loss, threads=self.given["jobs"], verbose=False, quiet=True)
        own = {**self.own, "C": (chosen.given,), "bound": variant.bound, "epsilon": variant.epsilon}
        with threadpool_limits(1, user_api="blas"):
            (made,) = self.recipe.train(Job(dataset, common, own, _NoLog(), should_stop).with_scaling())
        selection = {
            **self._description(dataset),
            "settings": n_settings,
            "C": chosen.given if isinstance(chosen.given, float) else str(chosen.given),
            "mean": chosen.mean(metric),
            "deviation": chosen.deviation(metric),
        }
        model = replace(made.model, header={**made.model.header, "selection": selection})
        with writing(self.output):
            model.save(self.output)
        if not self.common.quiet:
            say(f"chosen of {n_settings} settings, by the {selection['rule']} of {metric}; trained on all rows:")
            for line in made.summary:
                say(line)
            say(f"model written to {'standard output' if self.output == '-' else self.output}")
        return made.converged


class _NoLog:
    """``records.NoLog``, which waits for no import."""

    def write(self, event: str, **fields: Any) -> None:
        pass


def make_folds(relevant: Any, groups: Any, k: int, seed: int, source: str) -> list[Fold]:
    """k folds of whole queries, those that can be ranked and the others each dealt out evenly; without queries (groups
    None) of rows, positives and negatives each dealt out evenly. relevant : (n,) bool.

    Raises ``Failure`` where a fold would go without.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    if groups is None:
        of_row, kinds = np.arange(relevant.size), relevant.astype(np.int64)
        needed = [("positive rows", int(relevant.sum())), ("negative rows", int((~relevant).sum()))]
    else:
        _, of_row = np.unique(groups, return_inverse=True)
        n_rows, n_positive = np.bincount(of_row), np.bincount(of_row, weights=relevant)
        kinds = ((n_positive > 0) & (n_positive < n_rows)).astype(np.int64)
        needed = [("queries with both a positive and a negative row", int(kinds.sum()))]
    for what, count in needed:
        if count < k:
            raise Failure(BAD_DATA, f"{source}: {k} folds need at least {k} {what}, found {count}")
    fold_of, dealt = np.empty(kinds.size, dtype=np.int64), 0
    for kind in (1, 0):
        members = rng.permutation(np.flatnonzero(kinds == kind))
        fold_of[members] = (dealt + np.arange(members.size)) % k
        dealt += members.size
    fold_of_row = fold_of[of_row]
    return [Fold(np.flatnonzero(fold_of_row != at), np.flatnonzero(fold_of_row == at)) for at in range(k)]
