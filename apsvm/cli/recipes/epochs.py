"""What the recipes that train by epochs share: their options, the validation after each epoch, what is shown of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import click

from apsvm.cli.completion import MetricName
from apsvm.cli.recipes.base import Common, Job, Made
from apsvm.cli.shared import BAD_DATA, Failure, Number, given_by_user, read_rows, say

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.model import LinearRanker, Model
    from apsvm.solvers.sgd import Ending, Epoch

LEARNING_RATE = click.Option(
    ["--learning-rate"],
    type=Number(0, open_low=True),
    help="How long a step is. [default: warp 0.05, with adadelta a factor of 1; direct 0.03 deviations of the scores]",
)
L2 = click.Option(
    ["--l2"],
    type=Number(0),
    help="Weight of ½‖w‖² against the loss; of direct, of ‖w‖² against the scores' variance. [default: 0; of direct 1]",
)
EPOCHS = click.Option(
    ["--epochs"],
    type=click.IntRange(1),
    default=30,
    show_default=True,
    help="Passes over the positives; of direct, over the rows, of ten steps at least.",
)
VALIDATION = click.Option(
    ["--validation"],
    metavar="FILE",
    help="Rows like DATA's that a metric is taken of after each epoch; the best epoch's model is kept.",
)
VALIDATION_METRIC = click.Option(
    ["--validation-metric"],
    type=MetricName(),
    metavar="NAME",
    help="As apsvm eval names it. [default: AP; of users P@10]",
)
PATIENCE = click.Option(
    ["--patience"],
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="Stop after this many epochs without a better validation.",
)


class Descent(Protocol):
    """What a training by epochs ends with."""

    @property
    def epochs(self) -> list[Epoch]: ...
    @property
    def best_epoch(self) -> int: ...
    @property
    def ending(self) -> Ending: ...


def check_epochs(common: Common, own: Mapping[str, Any], metric: str) -> None:
    """Raises click.UsageError for options of the epochs that do not go together."""
    from apsvm.metrics import MetricError, parse_metric

    for option in ("validation_metric", "patience"):
        if own["validation"] is None and given_by_user(option):
            raise click.UsageError(f"--{option.replace('_', '-')} is for --validation FILE")
    if own["validation"] == "-":
        raise click.UsageError("--validation is read once DATA has been: name a file")
    try:
        parse_metric(metric)
    except MetricError as error:
        raise click.UsageError(f"--validation-metric: {error}") from None
    if given_by_user("max_iterations"):
        raise click.UsageError(f"--max-iterations is not for --loss {common.loss}, which counts --epochs")


def read_validation(job: Job, *, unlabelled: bool) -> Dataset | None:
    path = job.own["validation"]
    if path is None:
        return None
    data = read_rows(
        path,
        dtype=job.common.dtype,
        sort_features=job.common.sort_features,
        zero_based=job.dataset.zero_based,
        n_features=job.dataset.X.shape[1],
        ignore_unknown=True,
        threads=job.common.threads,
        unlabelled=unlabelled,
        multilabel=job.common.one_vs_rest,
        second=True,
    )
    if data.unknown_features and not job.common.quiet:
        say(f"{data.source}: {data.unknown_features} feature values that {job.dataset.source} lacks were ignored")
    return data


def validator(job: Job, held_out: Dataset, relevant: Any, metric: str) -> Callable[[Any], float]:
    """The metric on the rows of ``held_out`` of weights w, one a column of the job's rows."""
    from apsvm.metrics import MetricError
    from apsvm.metrics.evaluate import evaluate

    rows = job.like(held_out.X)

    def validate(w: Any) -> float:
        try:
            (value,) = evaluate([metric], rows.scores(w), relevant, groups=held_out.groups).values.values()
        except MetricError as error:
            raise Failure(BAD_DATA, f"{held_out.source}: {error}") from None
        return value

    return validate


def header_of_epochs(trained: Descent, held_out: Dataset | None, metric: str) -> dict[str, Any]:
    """Of a model's header, what is said of its epochs."""
    best = trained.epochs[trained.best_epoch - 1]
    validation = None
    if held_out is not None:
        validation = {
            "file": os.path.basename(held_out.source),
            "sha256": held_out.fingerprint,
            "metric": metric,
            "value": best.validation,
        }
    return {
        "state": str(trained.ending),
        "epochs": len(trained.epochs),
        "best_epoch": trained.best_epoch,
        "estimated_loss": best.passed.loss,
        "validation": validation,
    }


def ending_of_epochs(trained: Descent, held_out: Dataset | None, metric: str) -> str:
    """Why it stopped and what was kept."""
    best = trained.epochs[trained.best_epoch - 1]
    kept = ""
    if held_out is not None:
        kept = f"; kept epoch {best.number}, {metric} {best.validation:.6f} on {held_out.source}"
    return f"{trained.ending} after {len(trained.epochs)} epochs{kept}"


def training_metrics(job: Job, ranker: LinearRanker, relevant: Any, queries: int) -> str:
    """AP and AUC of the training rows."""
    from apsvm.metrics import MetricError
    from apsvm.metrics.evaluate import evaluate

    grouped = job.dataset.groups is not None and queries > 1
    try:
        result = evaluate(
            ["AP", "AUC"], ranker.score(job.dataset.X), relevant, groups=job.dataset.groups if grouped else None
        )
    except MetricError as error:
        return f"training AP: {error}"
    values = ", ".join(f"{name} {value:.6f}" for name, value in result.values.items())
    mean = f", mean of {result.n_groups - result.groups_skipped} queries" if grouped else ""
    return f"training {values} ({result.n_positives} of {result.n_rows} rows positive{mean})"


def made_by_epochs(model: Model, trained: Descent, summary: Sequence[str]) -> Made:
    from apsvm.solvers.sgd import Ending

    best, last = trained.epochs[trained.best_epoch - 1], trained.epochs[-1]
    passes = sum(epoch.seconds for epoch in trained.epochs)
    return Made(
        model=model,
        state=trained.ending,
        converged=trained.ending.as_asked,
        interrupted=trained.ending is Ending.INTERRUPTED,
        record={
            "epochs": len(trained.epochs),
            "best_epoch": trained.best_epoch,
            "loss": best.passed.loss,
            "validation": best.validation,
        },
        summary=summary,
        seconds={"passes": passes, "validation": last.seconds_in_all - passes},
    )
