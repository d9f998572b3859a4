"""``apsvm train --scheduler … --one-vs-rest``: classes as tasks of a dask cluster, whose workers each hold all rows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from apsvm.cli.cluster.commands import check_reading, cluster, file_part, say_once
from apsvm.cli.options.training import numbered_query_weights, signals_caught
from apsvm.cli.output.run_folder import make_folder, run_record
from apsvm.cli.output.training_log import open_log
from apsvm.cli.output.written_models import TrainedModel, write_model
from apsvm.cli.shared import BAD_DATA, Failure, bad_data, say
from apsvm.trainers.one_vs_rest import ClassTraining, OneVsRestTrainer, outcome_of

if TYPE_CHECKING:
    from distributed import Client

    from apsvm._support.log import Log
    from apsvm.cli.cluster.training import Run
    from apsvm.dask.classes import AboutRows, ClassesPlan


def check_classes(run: Run) -> None:
    """Ends the command for what is not trained so, before anything is done."""
    options = run.options
    for name in ("validation", "warm_start", "time_limit", "pool"):
        if options[name] is not None:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} is not for --one-vs-rest with --scheduler: leave one of them out")
    check_reading(replace(run.read_options, multilabel=False))


def train_classes_on_cluster(run: Run, parts: Sequence[str]) -> int:
    """Trains, and writes the model; the exit code."""
    from apsvm.dask.classes import about_rows, let_go

    options, began = run.options, time.perf_counter()
    with cluster(options["scheduler"]) as client, bad_data(run.data):
        plan = _plan(run, parts)
        try:
            about = about_rows(client, plan)
            if plan.query_weights is not None and not about.has_qid:
                raise Failure(BAD_DATA, f"{run.data}: --query-weights needs rows with qid:, found none")
            if about.dataset.table is not None:
                say_once(run.data, about.dataset.table.remarks)
            if not options["quiet"]:
                for remark in about.remarks:
                    say(f"warning: {run.data}: {remark}")
            labels = about.dataset.relevance.tolist()
            threads = sum(client.nthreads().values())
            if run.trainer.capabilities.same_on_threads:
                plan = replace(plan, threads=max(1, threads // len(labels)))
            if not options["quiet"]:
                say(_described(about, len(client.nthreads())))
            return _train(run, client, plan, about, time.perf_counter() - began)
        finally:
            let_go(client)


def _plan(run: Run, parts: Sequence[str]) -> ClassesPlan:
    from apsvm.dask.classes import ClassesPlan

    assert isinstance(run.trainer, OneVsRestTrainer)
    return ClassesPlan(
        run.data,
        [file_part(part, replace(run.read_options, multilabel=True)) for part in parts],
        run.trainer,
        run.labels,
        run.features,
        numbered_query_weights(run.options["query_weights"], run.data, has_queries=True),  # which the workers find out
        logs=run.options["log"] is not None,
    )


def _train(run: Run, client: Client, plan: ClassesPlan, about: AboutRows, read_seconds: float) -> int:
    options = run.options
    if options["run_dir"] is not None:
        make_folder(options["run_dir"])
    with signals_caught() as signals, open_log(options["log"]) as log:
        if options["run_dir"] is not None:
            log.write("run", **run_record(run.data, about.dataset, run.read_options, read_seconds))
        trained = _trained(run, client, plan, about, log, signals)
        return write_model(
            run.model, trained, log, signals,
            read_seconds=read_seconds, quiet=options["quiet"], verbose=options["verbose"],
        )  # fmt: skip


def _trained(
    run: Run, client: Client, plan: ClassesPlan, about: AboutRows, log: Log, signals: list[int]
) -> Iterator[TrainedModel]:
    from apsvm.cli.output.training_metric import training_metric
    from apsvm.dask.classes import finished, train_classes

    classes: list[ClassTraining] = []
    began = time.perf_counter()
    for one in train_classes(client, plan, about.dataset.relevance.tolist(), log, lambda: bool(signals)):
        classes.append(one)
        if run.options["verbose"] and not run.options["quiet"]:
            for line in one.lines(about.dataset.shown_label):
                say(line)
    outcome = outcome_of(classes, time.perf_counter() - began)
    if outcome is not None:
        yield TrainedModel(*finished(client, plan, outcome, training_metric))


def _described(about: AboutRows, workers: int) -> str:
    dataset = about.dataset
    rows, features = dataset.X.shape
    return (
        f"{dataset.source}: {rows} rows, {dataset.relevance.size} classes, {features} features, "
        f"{dataset.n_values} values, on each of {workers} workers"
    )
