"""``apsvm train``: from a data file to a model, with its certificate and its log."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from apsvm._support.blas import one_blas_thread
from apsvm._support.types import JsonDict, JsonObject
from apsvm.cli import training
from apsvm.cli.options.config import config_option
from apsvm.cli.options.table import TRAINING, files
from apsvm.cli.options.table import options as with_options
from apsvm.cli.options.trainers import LOSS, TrainersCommand, planned, refuse_options_of_others
from apsvm.cli.output.progress import Bar, Display
from apsvm.cli.output.records import model_and_log, open_log, run_record
from apsvm.cli.reading import read_rows, with_read_options
from apsvm.cli.shared import Failure, all_given, bad_data, remark, say
from apsvm.data.file_patterns import parts_of
from apsvm.data.read_options import ReadOptions
from apsvm.data.takes import Takes
from apsvm.trainers.base import AnyTrainer, Watch, unseen
from apsvm.trainers.settings import declared

if TYPE_CHECKING:
    from apsvm._support.log import Log
    from apsvm.data.dataset import Dataset
    from apsvm.data.labels import Target
    from apsvm.models.base import Model
    from apsvm.trainers.base import Outcome, TrainingSet
    from apsvm.trainers.fitting import Fit


#: Options that ``--help`` lists, by section.
_COMMON = {
    "Data": "label_column qid_column id_column positive_label drop",
    "What is trained": "loss C features scale components one_vs_rest",
    "Decisions": "threshold calibrate",
    "Output": "run_dir threads time_limit quiet verbose",
}


@click.command(cls=TrainersCommand, common=_COMMON)
@files("DATA", "[MODEL]")
@click.option(
    "--loss", type=LOSS, default="ap", show_default="ap; of queries with grades ndcg",
    help="Loss that is optimised. package.module:Name is your own, two arrays in Python.",
)  # fmt: skip
@with_options("one_vs_rest", "threads", "seed", "log", "run_dir", "pool", "threshold", "calibrate",
         "time_limit", *TRAINING,
         scheduler={"excludes": "threshold calibrate validation pool groups labels bags"})  # fmt: skip
@config_option
@with_read_options
def train(data: str, model: str | None, read: ReadOptions, **options: Any) -> int:
    """Train a ranker on DATA and write MODEL.

    DATA is a table (CSV, TSV, Parquet, Arrow, JSON lines), svmlight text, a folder made by apsvm convert, a .npz or
    .npy matrix with --labels, or - for stdin; or several, by a pattern in quotes ('part-*.csv'). MODEL is by default
    DATA's name with .model added, in the current folder.

    \b
    apsvm train payments.csv --label-column fraud --id-column payment
    apsvm train search.csv --qid-column query --label-column grade search.model
    apsvm train payments.csv --label-column fraud --features rules --threshold precision=.9
    """
    from apsvm.selection.decision import DecisionRule, check_decision
    from apsvm.trainers.fitting import Fit

    began, named = time.perf_counter(), all_given()
    out = _model_file(data, model, options)
    refuse_options_of_others([options["loss"]], named)
    trainer = planned(options["loss"], options, named)
    labels, features = training.checked(trainer, options, read)
    if options["run_dir"] is None:
        others = {name: options[name] for name in ("validation", "query_weights")}
        training.check_outputs(out, "--log", options["log"], data=data, **trainer.inputs(), **others)
    with _rows(data, read, trainer, options["scheduler"]) as dataset:
        chosen = _chosen_by_rows(dataset, options, trainer)
        options |= chosen
        trainer = planned(options["loss"], options, named | chosen.keys())
        with bad_data(dataset.source):
            weights = training.query_weights(options["query_weights"], dataset)
            fit = Fit.of(dataset, trainer, labels, features, query_weights=weights)
            if options["validation"] is not None:
                fit = replace(fit, validation=_validation(options["validation"], dataset, fit, read))
            if options["scheduler"] is not None:
                from apsvm.dask.fitting import ClusterFit

                fit = ClusterFit.over(fit)
            rows = fit.training_set()
            training.say_of_rows(fit, rows)
            if DecisionRule(options["threshold"], options["calibrate"]).asks:
                check_decision(fit)
        training.describe(fit.dataset, fit.target)
        ready = time.perf_counter()
        with training.signals_caught() as signals, open_log(options["log"]) as log, bad_data(dataset.source):
            if options["run_dir"] is not None:
                log.write("run", **run_record(data, dataset, read, ready - began))
            with one_blas_thread():  # the solvers' products are small, and more would make the last bits depend on it
                trained = _trained(fit, rows, log, signals, options)
                if trained is None:
                    raise Failure(training.exit_code(signals), "stopped, no model written")
                return training.write_model(out, *trained, log, signals, began=ready, read_seconds=ready - began)


def _model_file(data: str, model: str | None, options: JsonDict) -> str:
    """MODEL, by default named after DATA or in the folder of --run-dir, where the log is too."""
    if options["run_dir"] is not None:
        if model is not None:
            raise click.UsageError("--run-dir has a place for the model: leave out MODEL")
        model, options["log"] = model_and_log(options["run_dir"], data)
    elif model is None:
        if data == "-" or options["scheduler"] is not None or len(parts_of(data)) > 1:
            raise click.UsageError("of standard input, of several files, or with --scheduler, name the MODEL")
        model = f"{os.path.basename(os.path.normpath(data))}.model"
    return model


@contextmanager
def _rows(data: str, read: ReadOptions, trainer: AnyTrainer, scheduler: str | None) -> Iterator[Dataset]:
    """The rows; a cluster lasts as long as the context."""
    takes = trainer.capabilities.labels
    if scheduler is None:
        yield training.read_to_train(data, read, unlabelled=takes is Takes.NOTHING, multilabel=takes is Takes.CLASSES)
        return
    from apsvm.cli.cluster import rows_on_cluster

    with rows_on_cluster(data, read, trainer, scheduler) as dataset:
        yield dataset


def _chosen_by_rows(dataset: Dataset, options: JsonObject, trainer: AnyTrainer) -> JsonDict:
    """Options chosen by the rows: the loss if labels are grades, --latent if rows are in bags."""
    named, chosen = all_given(), JsonDict()
    if not options["one_vs_rest"]:
        chosen |= training.chosen_by_grades(dataset, options, named)
    in_bags = dataset.bags is not None and not dataset.ignores_bags and options["pool"] is None
    if in_bags and "latent" not in named and "latent" in declared(type(trainer.settings)):
        chosen["latent"] = True
        remark(
            "rows in bags: --latent, the best row of a bag decides (--pool min,mean,max makes a row of each bag; "
            "apsvm cv compares the two)",
            dataset.source,
        )
    return chosen


def _validation(path: str, dataset: Dataset, fit: Fit, read: ReadOptions) -> tuple[Dataset, Target]:
    """The rows of --validation, with the columns of the training rows, and the meaning of their labels."""
    from apsvm.data.labels import recall
    from apsvm.models.columns import ForModel
    from apsvm.trainers.fitting import bags_settled

    takes, names = fit.trainer.capabilities.labels, fit.target.labels.names
    columns = None if dataset.table is None else dataset.table.columns
    rows = read_rows(
        path,
        read.of_a_second_file(),
        zero_based=dataset.zero_based,
        n_features=dataset.X.shape[1],
        ignore_unknown=True,
        unlabelled=takes is Takes.NOTHING,
        multilabel=takes is Takes.CLASSES,
        model=None if columns is None else ForModel(columns, columns.feature_names(), columns.width, names or ()),
    )
    if rows.unknown_features:
        remark(f"{rows.unknown_features} feature values that {dataset.source} lacks were ignored", rows.source)
    rows = bags_settled(rows, fit.trainer, fit.features.pool)
    return rows, recall(rows, fit.target.labels)


def _trained(
    raw: Fit, rows: TrainingSet, log: Log, signals: list[int], options: JsonObject
) -> tuple[Fit, Outcome, Model] | None:
    """The training ``raw`` of ``rows``, whose features are still as they were read, with its features learned; its
    outcome, and its model; None if it was stopped before there was one."""
    from apsvm.selection.completion import train_fit
    from apsvm.selection.maps import choose_features

    fit = raw.prepared()
    data = rows if fit is raw else fit.training_set()
    classes = raw.dataset.classes().size if options["one_vs_rest"] else None
    with Bar("training" if classes is None else "classes begun", classes) as bar:
        show = unseen if options["quiet"] else Display(bar, verbose=options["verbose"]).show
        is_said = not options["quiet"] and (options["verbose"] or classes is None)
        watch = Watch(log, show, say if is_said else unseen, lambda: bool(signals))
        if options["scheduler"] is not None:
            found = fit.outcomes(watch, data)  # type: ignore[attr-defined]
        elif options["features"] != "auto":
            found = train_fit(fit, watch, data)
        else:
            chosen = choose_features(raw, fit, data, watch)
            raw, fit, found = chosen.raw, chosen.fit, chosen.outcomes(watch)
        outcome = next(found, None)
        if outcome is None:
            return None
        return fit, *training.decided(raw, outcome, fit.model(outcome), options, watch.should_stop)
