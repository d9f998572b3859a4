"""``apsvm train``: from a data file to a model, with its certificate and its log."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from apsvm._support.blas import one_blas_thread
from apsvm._support.types import JsonDict, JsonObject
from apsvm.cli import training
from apsvm.cli.options.config import config_option
from apsvm.cli.options.table import TRAINING, files, options
from apsvm.cli.options.trainers import LOSS, ChosenLoss, TrainersCommand, planned, refuse_options_of_others
from apsvm.cli.output.progress import Bar, Display
from apsvm.cli.output.records import model_and_log, open_log, run_record
from apsvm.cli.reading import one_ranker, read_any_model, read_rows, with_read_options
from apsvm.cli.shared import Failure, all_given, bad_data, remark, say
from apsvm.data.file_patterns import parts_of
from apsvm.data.read_options import ReadOptions
from apsvm.data.takes import Takes
from apsvm.trainers.base import AnyTrainer, Watch, unseen
from apsvm.trainers.one_vs_rest import OneVsRestTrainer
from apsvm.trainers.settings import declared

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm._support.log import Log
    from apsvm.data.dataset import Dataset
    from apsvm.data.labels import LabelOptions, Target
    from apsvm.models.base import Model
    from apsvm.trainers.base import Outcome, TrainingSet
    from apsvm.trainers.fitting import FeatureOptions, Fit


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
@options("one_vs_rest", "threads", "seed", "warm_start", "log", "run_dir", "pool", "threshold", "calibrate",
         "time_limit", *TRAINING,
         scheduler={"excludes": "threshold calibrate validation pool"})  # fmt: skip
@config_option
@with_read_options
def train(data: str, model: str | None, read: ReadOptions, **values: Any) -> int:
    """Train a ranker on DATA and write MODEL.

    DATA is a table (CSV, TSV, Parquet, Arrow, JSON lines), svmlight text, a folder made by apsvm convert, a .npz or
    .npy matrix with --labels, or - for stdin; or several, by a pattern in quotes ('part-*.csv'). MODEL is by default
    DATA's name with .model added, in the current folder.

    \b
    apsvm train payments.csv --label-column fraud --id-column payment
    apsvm train search.csv --qid-column query --label-column grade search.model
    apsvm train payments.csv --label-column fraud --features rules --threshold precision=.9
    """
    began = time.perf_counter()
    run = _Run.of_options(data, model, read, values)
    with run.read() as dataset:
        return run.as_rows_ask(dataset).train(dataset, began)


@dataclass(frozen=True)
class _Run:
    """The options, checked before any reading; ``data`` is the file to read, ``model`` the file to write."""

    data: str
    model: str
    read_options: ReadOptions
    trainer: AnyTrainer
    labels: LabelOptions
    features: FeatureOptions
    options: JsonObject

    @classmethod
    def of_options(cls, data: str, model: str | None, read: ReadOptions, options: JsonDict) -> _Run:
        named, folder = all_given(), options["run_dir"]
        if folder is not None:
            if model is not None:
                raise click.UsageError("--run-dir has a place for the model: leave out MODEL")
            model, options["log"] = model_and_log(folder, data)
        if model is None:
            if data == "-" or options["scheduler"] is not None or len(parts_of(data)) > 1:
                raise click.UsageError("of standard input, of several files, or with --scheduler, name the MODEL")
            model = f"{os.path.basename(os.path.normpath(data))}.model"
        refuse_options_of_others([options["loss"]], named)
        trainer = planned(options["loss"], options, named)
        labels, features = training.checked(trainer, options, read, options["pool"])
        if folder is None:
            others = {name: options[name] for name in ("validation", "query_weights")}  # it may replace its start
            training.check_outputs(model, "--log", options["log"], data=data, **trainer.inputs(), **others)
        return cls(data, model, read, trainer, labels, features, options)

    @contextmanager
    def read(self) -> Iterator[Dataset]:
        """The rows; a cluster lasts as long as the context."""
        scheduler, takes = self.options["scheduler"], self.trainer.capabilities.labels
        if scheduler is None:
            is_unlabelled, has_classes = takes is Takes.NOTHING, takes is Takes.CLASSES
            yield training.read_to_train(self.data, self.read_options, unlabelled=is_unlabelled, multilabel=has_classes)
            return
        from apsvm.cli.cluster import rows_on_cluster

        with rows_on_cluster(self.data, self.read_options, self.trainer, scheduler) as dataset:
            yield dataset

    def as_rows_ask(self, dataset: Dataset) -> _Run:
        """The run with options chosen by the rows: the loss if labels are grades, --latent if rows are in bags."""
        named, options, chosen = all_given(), self.options, JsonDict()
        if not options["one_vs_rest"]:
            by_grades = training.chosen_by_grades(dataset, self.labels, options, named)
            chosen = {option: ChosenLoss.of(loss) for option, loss in by_grades.items()}
        in_bags = dataset.bags is not None and not dataset.ignores_bags and self.features.pool is None
        if in_bags and "latent" not in named and "latent" in declared(type(self.trainer.settings)):
            chosen["latent"] = True
            remark(
                "rows in bags: --latent, the best row of a bag decides (--pool min,mean,max makes a row of each bag; "
                "apsvm cv compares the two)",
                dataset.source,
            )
        options = {**options, **chosen}
        return replace(self, trainer=planned(options["loss"], options, named | chosen.keys()), options=options)

    def train(self, dataset: Dataset, began: float) -> int:
        """Trains and writes the model of a command that ``began`` then; returns the exit code."""
        from apsvm.trainers.fitting import Fit

        options, source = self.options, dataset.source
        validation = self._validation(dataset)
        with bad_data(source):
            weights = training.query_weights(options["query_weights"], dataset)
            fit = Fit.of(
                dataset, self.trainer, self.labels, self.features, query_weights=weights, validation=validation
            )
            if options["scheduler"] is not None:
                from apsvm.dask.fitting import ClusterFit

                fit = ClusterFit.over(fit)
            rows = fit.training_set()
            training.say_of_rows(fit, rows)
        training.check_decision_options(fit, options)
        training.describe(fit.dataset, fit.target)
        ready = time.perf_counter()
        with training.signals_caught() as signals, open_log(options["log"]) as log, bad_data(source):
            if options["run_dir"] is not None:
                log.write("run", **run_record(self.data, dataset, self.read_options, ready - began))
            with one_blas_thread():  # the solvers' products are small, and more would make the last bits depend on it
                trained = self._trained(fit, rows, log, signals)
                if trained is None:
                    raise Failure(training.exit_code(signals), "stopped, no model written")
                prepared, outcome, model = trained
                figures = self._figures(prepared, outcome, model)
                seconds = {"began": ready, "read_seconds": ready - began}
                return training.write_model(self.model, outcome, model, figures, log, signals, **seconds)

    def _validation(self, dataset: Dataset) -> tuple[Dataset, Target] | None:
        from apsvm.data.labels import decide
        from apsvm.models.columns import ForModel
        from apsvm.trainers.fitting import bags_settled

        path, takes = self.options["validation"], self.trainer.capabilities.labels
        if path is None:
            return None
        columns = None if dataset.table is None else dataset.table.columns
        rows = read_rows(
            path,
            self.read_options.of_a_second_file(),
            zero_based=dataset.zero_based,
            n_features=dataset.X.shape[1],
            ignore_unknown=True,
            unlabelled=takes is Takes.NOTHING,
            multilabel=takes is Takes.CLASSES,
            model=None if columns is None else ForModel(columns, columns.feature_names(), columns.width),
        )
        if rows.unknown_features:
            remark(f"{rows.unknown_features} feature values that {dataset.source} lacks were ignored", rows.source)
        rows = bags_settled(rows, self.trainer, self.features.pool)
        return rows, decide(rows, takes, self.labels)

    def _trained(self, raw: Fit, rows: TrainingSet, log: Log, signals: list[int]) -> tuple[Fit, Outcome, Model] | None:
        """The training ``raw`` of ``rows``, whose features are still as they were read, with its features learned; its
        outcome, and its model; None if it was stopped before there was one."""
        from apsvm.selection.completion import outcomes
        from apsvm.selection.maps import complete

        options, of_classes = self.options, self.options["one_vs_rest"]
        with bad_data(options["warm_start"] or raw.dataset.source):
            fit, start = self._started(raw.prepared())
        data = rows if fit is raw else fit.training_set()
        classes = raw.dataset.classes().size if of_classes else None
        with Bar("training" if classes is None else "classes begun", classes) as bar:
            show = unseen if options["quiet"] else Display(bar, verbose=options["verbose"]).show
            is_said = not options["quiet"] and (options["verbose"] or not of_classes)
            watch = Watch(log, show, say if is_said else unseen, lambda: bool(signals))
            if options["scheduler"] is not None:
                found = fit.outcomes(watch, start, data)  # type: ignore[attr-defined]
            elif options["warm_start"] is not None or options["features"] != "auto":
                found = outcomes(fit, watch, start, data)
            else:
                completed = complete(raw, fit, data, watch)
                raw, fit, found = completed.raw, completed.fit, completed.outcomes(watch)
            outcome = next(found, None)
            if outcome is None:
                return None
            return fit, *training.decided(raw, outcome, fit.model(outcome), options, watch.should_stop)

    def _started(self, fit: Fit) -> tuple[Fit, NDArray[np.float64] | None]:
        """The training and its start; with several classes, each starts from its own ranker."""
        from apsvm.models.sets import RankerSet

        path = self.options["warm_start"]
        if path is None:
            return fit, None
        model = read_any_model(path)
        if isinstance(self.trainer, OneVsRestTrainer) and isinstance(model, RankerSet):
            labels = [label for label in fit.dataset.classes().tolist() if label in model.classes]
            starts = {label: fit.start(model.ranker(label)) for label in labels}
            return replace(fit, trainer=OneVsRestTrainer(self.trainer.trainer, starts)), None
        return fit, fit.start(one_ranker(model, self.labels.positive_label, path))

    def _figures(self, fit: Fit, outcome: Outcome, model: Model) -> Iterator[str]:
        """Lines on the training metric (with --verbose, or if nothing was held out), and cautions."""
        first = outcome.classes[0][1] if outcome.classes else outcome
        choice = first.details.get("choice")
        is_chosen = isinstance(choice, dict) and bool(choice.get("candidates"))
        has_held_out = "held_out" in first.details or is_chosen or (first.epochs and first.epochs.validation)
        if self.options["verbose"] or not has_held_out:
            yield from training.training_metric(fit.dataset, model)
        if self.options["scheduler"] is None:
            yield from training.cautions_on_choice(fit, outcome)
