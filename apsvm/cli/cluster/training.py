"""``apsvm train --scheduler``: training on a dask cluster, where each worker reads its own parts and rows stay."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

import click

from apsvm._support.blas import one_blas_thread
from apsvm._support.types import JsonObject
from apsvm.cli.cluster.classes import check_classes, train_classes_on_cluster
from apsvm.cli.cluster.commands import check_reading, cluster, evaluated, file_part, need_dask, parts_named, read_parts
from apsvm.cli.options.training import check_data, numbered_query_weights, signals_caught
from apsvm.cli.output.progress import Display
from apsvm.cli.output.run_folder import make_folder, run_record
from apsvm.cli.output.training_log import open_log
from apsvm.cli.output.written_models import TrainedModel, write_model
from apsvm.cli.reading import one_ranker, read_any_model
from apsvm.cli.shared import BAD_DATA, Failure, bad_data, given_by_user, refuse_if_given, refuse_same_file, say
from apsvm.data.read_options import ReadOptions

if TYPE_CHECKING:
    from apsvm._support.log import Log
    from apsvm.dask.data import ShardedData
    from apsvm.dask.fitting import ShardedFit
    from apsvm.data.labels import LabelOptions
    from apsvm.models.linear import LinearRanker
    from apsvm.trainers.base import AnyTrainer, Outcome
    from apsvm.trainers.fitting import FeatureOptions


class Run(Protocol):
    """A training, checked."""

    @property
    def data(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def read_options(self) -> ReadOptions: ...

    @property
    def trainer(self) -> AnyTrainer: ...

    @property
    def labels(self) -> LabelOptions: ...

    @property
    def features(self) -> FeatureOptions: ...

    @property
    def options(self) -> JsonObject: ...


def check_run(run: Run) -> None:
    """Ends the command for what is not trained on a cluster, before anything is done."""
    from apsvm.dask.fitting import plan_refusal

    options = run.options
    refuse_if_given(("threshold", "calibrate"), "is not for training with --scheduler: leave one of them out")
    missing = run.read_options.table.missing
    if given_by_user("missing") and missing in ("median", "indicator"):
        raise click.UsageError(
            f"--missing {missing} is learned from all rows, on one machine: zero and refuse go with --scheduler"
        )
    if options["one_vs_rest"]:
        check_classes(run)
        return
    if options["validation"]:
        raise click.UsageError("--validation is not for training with --scheduler: leave one of them out")
    check_reading(run.read_options)
    refusal = plan_refusal(run.trainer, run.features)
    if refusal is not None:
        raise click.UsageError(refusal)


def train_on_cluster(run: Run) -> int:
    """Trains, and writes the model; the exit code."""
    need_dask()
    check_run(run)
    options, began = run.options, time.perf_counter()
    parts = parts_named(run.data)
    refuse_same_file(run.model, data=run.data)
    if options["one_vs_rest"]:
        return train_classes_on_cluster(run, parts)
    with cluster(options["scheduler"]) as client, bad_data(run.data):
        data = read_parts(client, run.data, [file_part(part, run.read_options) for part in parts])
        fit = _fit(run, data)
        of_labels = fit.of_labels()
        if not options["quiet"]:
            check_data(run.trainer, of_labels, quiet=False)
        if not options["quiet"]:
            say(_described(data))
        return _train(run, fit, time.perf_counter() - began)


def _fit(run: Run, data: ShardedData) -> ShardedFit:
    from apsvm.dask.fitting import ShardedFit

    weights = numbered_query_weights(run.options["query_weights"], run.data, has_queries=bool(data.has_qid))
    return ShardedFit.of(data, run.trainer, run.labels, run.features, query_weights=weights)


def _train(run: Run, fit: ShardedFit, read_seconds: float) -> int:
    options = run.options
    if options["run_dir"] is not None:
        make_folder(options["run_dir"])
    with signals_caught() as signals, open_log(options["log"]) as log:
        if options["run_dir"] is not None:
            log.write("run", **run_record(run.data, fit.fit.dataset, run.read_options, read_seconds))
        trained = (
            TrainedModel(outcome, model, _figures(fit, model)) for outcome, model in _outcomes(run, fit, log, signals)
        )
        return write_model(
            run.model, trained, log, signals,
            read_seconds=read_seconds, quiet=options["quiet"], verbose=options["verbose"],
        )  # fmt: skip


def _outcomes(run: Run, fit: ShardedFit, log: Log, signals: list[int]) -> Iterator[tuple[Outcome, LinearRanker]]:
    from apsvm._support.container import ModelError
    from apsvm.trainers.base import Watch

    options, start = run.options, None
    path = options["warm_start"]
    if path is not None:
        try:
            start = fit.fit.start(one_ranker(read_any_model(path), run.labels.positive_label, path))
        except ModelError as error:
            raise Failure(BAD_DATA, f"{path}: {error}") from None
    display = Display(verbose=options["verbose"], quiet=options["quiet"])
    remark = (lambda line: None) if options["quiet"] else say
    with one_blas_thread():
        for outcome in fit.outcomes(Watch(log, display.show, remark, lambda: bool(signals)), start):
            yield outcome, fit.decided(outcome)


def _figures(fit: ShardedFit, model: LinearRanker) -> Iterator[str]:
    from apsvm.cli.output.training_metric import figures_of
    from apsvm.metrics import MetricError

    try:
        yield figures_of(evaluated(fit.data, model, fit.fit.target, None))
    except MetricError as error:
        yield f"training metric: {error}"


def _described(data: ShardedData) -> str:
    extent = data.of_labels().X
    return (
        f"{data.source}: {extent.shape[0]} rows, {data.n_pos} positive, {extent.shape[1]} features, {extent.size} "
        f"values, on {len(data.crew)} workers"
    )
