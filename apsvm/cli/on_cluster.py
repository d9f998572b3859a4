"""``--scheduler``: the commands on a dask cluster, where each worker reads its own parts and rows stay."""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from apsvm.cli.progress import Display
from apsvm.cli.reading import one_ranker, read_any_model
from apsvm.cli.run_folder import make_folder, run_record
from apsvm.cli.shared import BAD_DATA, CANNOT_WRITE, MISSING, NO_INPUT, STOPPED_EARLY, Failure, reading, say, writing
from apsvm.cli.training import bad_data, check_data, exit_code, signals_caught
from apsvm.cli.training_log import end_record, open_log
from apsvm.data.read_options import ReadOptions
from apsvm.types import JsonObject

if TYPE_CHECKING:
    from distributed import Client

    from apsvm.cli.systems import EvaluatedSystem
    from apsvm.dask.data import ShardedData
    from apsvm.dask.fitting import ShardedFit
    from apsvm.dask.sources import FilePart
    from apsvm.data.labels import LabelOptions
    from apsvm.metrics import Metric
    from apsvm.metrics.evaluate import Evaluation
    from apsvm.model import Model, Ranker
    from apsvm.trainers.base import AnyTrainer, Outcome
    from apsvm.trainers.fitting import FeatureOptions

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def scheduler_option(command: CommandT) -> CommandT:
    """The option ``--scheduler``."""
    return click.option(
        "--scheduler",
        metavar="ADDRESS|local:N",
        help="Work on the dask cluster of this address, or on N processes here. DATA is then a pattern of parts, "
        "'part-*.svm': text, .npy or .npz with labels of their own, folders of apsvm convert, or Parquet. Each worker "
        "reads its own parts under the same names.",
    )(command)


class Run(Protocol):
    """A training that was asked for, checked."""

    @property
    def data(self) -> str: ...

    @property
    def models(self) -> Sequence[str]: ...

    @property
    def read_options(self) -> ReadOptions: ...

    @property
    def trainer(self) -> AnyTrainer: ...

    @property
    def labels(self) -> LabelOptions: ...

    @property
    def features(self) -> FeatureOptions: ...

    @property
    def given(self) -> JsonObject: ...


def check_run(run: Run) -> None:
    """Ends the command for what is not trained on a cluster, before anything is done."""
    from apsvm.dask.fitting import plan_refusal

    given = run.given
    refused = {
        "--one-vs-rest": given["one_vs_rest"],
        "--validation": given["validation"],
        "--checkpoint": given.get("checkpoint"),
    }
    for option, value in refused.items():
        if value:
            raise click.UsageError(f"{option} is not for training with --scheduler: leave one of them out")
    _check_reading(run.read_options)
    refusal = plan_refusal(run.trainer, run.features)
    if refusal is not None:
        raise click.UsageError(refusal)


def train_on_cluster(run: Run) -> int:
    """Trains, and writes each model as it is ready; the exit code."""
    need_dask()
    check_run(run)
    given, began = run.given, time.perf_counter()
    parts = parts_named(run.data)
    for model in run.models:
        if os.path.realpath(model) in {os.path.realpath(part) for part in parts}:
            raise click.UsageError(f"{model!r} is one of the parts: it would be overwritten")
    with cluster(given["scheduler"]) as client, bad_data(run.data):
        data = read_parts(client, run.data, [_part(part, run.read_options) for part in parts])
        fit = _fit(run, data)
        of_labels = fit.of_labels()
        if not given["quiet"]:
            check_data(run.trainer, of_labels, quiet=False)
        if given["verbose"] and not given["quiet"]:
            say(_described(data))
        return _train(run, fit, time.perf_counter() - began)


def _fit(run: Run, data: ShardedData) -> ShardedFit:
    from apsvm.dask.fitting import ShardedFit
    from apsvm.data.query_weights import read_query_weights

    weights, path = None, run.given["query_weights"]
    if path is not None:
        if not data.has_qid:
            raise Failure(BAD_DATA, f"{run.data}: --query-weights needs rows with qid:, found none")
        with reading(path):
            weights = read_query_weights(path)
    return ShardedFit.of(data, run.trainer, run.labels, run.features, query_weights=weights)


def _train(run: Run, fit: ShardedFit, read_seconds: float) -> int:
    given = run.given
    as_asked, written = True, 0
    if given["run_dir"] is not None:
        make_folder(given["run_dir"])
    with signals_caught() as signals, open_log(given["log"]) as log:
        if given["run_dir"] is not None:
            log.write("run", **run_record(run.data, fit.fit.dataset, run.read_options, read_seconds))
        began = time.perf_counter()
        for name, outcome in zip(run.models, _outcomes(run, fit, log, signals), strict=False):
            model = fit.model(outcome)
            with writing(name):
                model.save(name)
            taken = time.perf_counter() - began + read_seconds
            seconds = {"reading": read_seconds, **outcome.seconds}
            seconds["other"] = max(0.0, taken - sum(seconds.values()))
            log.write("end", state=outcome.state, model=name, **end_record(outcome), seconds=seconds)
            as_asked &= outcome.as_asked and outcome.ranks
            written += 1
            for caution in outcome.cautions:
                say(f"warning: {name}: {caution}")
            if not given["quiet"]:
                _say_what_became(fit, outcome, name, seconds, last=written == len(run.models))
            began, read_seconds = time.perf_counter(), 0.0
            if outcome.interrupted:
                return exit_code(signals)
        if signals and not written:
            raise Failure(exit_code(signals), "stopped, no model written")
        if log.failed:
            return CANNOT_WRITE
    return 0 if as_asked else STOPPED_EARLY


def _outcomes(run: Run, fit: ShardedFit, log: Any, signals: list[int]) -> Iterator[Outcome]:
    from threadpoolctl import threadpool_limits

    from apsvm.model import ModelError
    from apsvm.trainers.base import Watch

    given, start = run.given, None
    path = given["warm_start"]
    if path is not None:
        try:
            start = fit.fit.start(one_ranker(read_any_model(path), run.labels.positive_label, path))
        except ModelError as error:
            raise Failure(BAD_DATA, f"{path}: {error}") from None
    display = Display(verbose=given["verbose"], quiet=given["quiet"])
    remark = (lambda line: None) if given["quiet"] else say
    with threadpool_limits(1, user_api="blas"):
        for outcome in fit.outcomes(Watch(log, display.show, remark, lambda: bool(signals)), start):
            display.finish()
            yield outcome


def _say_what_became(fit: ShardedFit, outcome: Outcome, name: str, seconds: Mapping[str, float], *, last: bool) -> None:
    from apsvm.cli.training_metric import figures_of
    from apsvm.metrics import MetricError
    from apsvm.trainers.summary import summary

    for line in summary(outcome):
        say(line)
    if last:  # shards that are evaluated are no longer as the training wants them
        try:
            say(figures_of(evaluated(fit.data, fit.model(outcome), fit.fit.target, None), fit.fit.target.labels))
        except MetricError as error:
            say(f"training metric: {error}")
    say(f"{sum(seconds.values()):.2f} s: {', '.join(f'{part} {taken:.2f}' for part, taken in seconds.items())}")
    say(f"model written to {'standard output' if name == '-' else name}")


def evaluated(
    data: ShardedData,
    model: Ranker,
    target: Any,
    metrics: Mapping[str, Metric] | None,
    *,
    all_queries: bool = False,
    leave_out: bool = True,
) -> Evaluation:
    """The metrics, by default what the model was trained for and AP, of the rows as they are in the parts."""
    from apsvm.dask.evaluation import evaluate_on_shards
    from apsvm.metrics import trained_metric
    from apsvm.metrics.evaluate import parse_metrics

    if metrics is None:
        trained = trained_metric(model.header.metric)
        metrics = parse_metrics([trained, "AP"] if target.grades is None else [trained])
    data.crew.set_up("scale_rows")
    return evaluate_on_shards(data, model, target, metrics, all_queries=all_queries, leave_out_undefined=leave_out)


def _described(data: ShardedData) -> str:
    extent = data.of_labels().X
    return (
        f"{data.source}: {extent.shape[0]} rows, {data.n_pos} positive, {extent.shape[1]} features, {extent.size} "
        f"values, on {len(data.crew)} workers"
    )


# ``apsvm predict`` and ``apsvm eval``.


def predict_on_cluster(
    data: str, model: str, out: str, scheduler: str, read: ReadOptions, *, ignore_unknown: bool
) -> None:
    """Scores the parts, each worker its own, into files of the folder ``out``."""
    need_dask()
    if out == "-":
        raise click.UsageError("with --scheduler OUT is a folder that the workers write to: name one")
    if os.path.lexists(out) and not os.path.isdir(out):
        raise click.UsageError(f"with --scheduler OUT is a folder, and {out} is a file")
    _check_reading(read)
    ranker = _ranker(model)
    parts = parts_named(data)
    names = [f"{os.path.basename(os.path.normpath(part))}.scores" for part in parts]
    if len(set(names)) < len(names):
        raise click.UsageError("parts of the same name in different folders would be scored into one file")
    make_folder(out)
    from apsvm.dask.prediction import score_parts

    sources = [_part_for(part, ranker, read, ignore_unknown=ignore_unknown) for part in parts]
    with cluster(scheduler) as client, bad_data(data):
        rows = score_parts(client, sources, ranker, [os.path.abspath(os.path.join(out, name)) for name in names])
    say(f"{rows} rows of {len(parts)} parts scored into {out}")


def evaluate_on_cluster(
    data: str,
    models: Mapping[str, Model],
    metrics: Mapping[str, Metric],
    scheduler: str,
    read: ReadOptions,
    options: LabelOptions,
    *,
    all_queries: bool,
    leave_out_undefined: bool,
    ignore_unknown: bool,
) -> list[EvaluatedSystem]:
    """An entry for each model; failures end the command."""
    need_dask()
    import numpy as np

    from apsvm.cli.systems import EvaluatedSystem
    from apsvm.data.labels import judge
    from apsvm.metrics import MetricError
    from apsvm.metrics.evaluate import Judgements
    from apsvm.metrics.significance import System

    _check_reading(read)
    parts, entries = parts_named(data), []
    with cluster(scheduler) as client:
        for path, model in models.items():
            ranker = one_ranker(model, options.positive_label, path)
            sources = [_part_for(part, ranker, read, ignore_unknown=ignore_unknown) for part in parts]
            with bad_data(data):
                shards = read_parts(client, data, sources, width=_width(ranker))
                graded = all(metric.graded for metric in metrics.values())
                target = judge(shards.of_labels(), options, ranker.header.labels, graded_metrics=graded)
                shards.tell(target)
                try:
                    result = evaluated(
                        shards, ranker, target, metrics, all_queries=all_queries, leave_out=leave_out_undefined
                    )
                except MetricError as error:
                    raise Failure(BAD_DATA, f"{data}: {error}") from None
                shards.crew.close()
            undefined = [name for name in metrics if name not in result.values]
            system = System(np.empty(0), Judgements(np.empty(0, dtype=bool)), result)
            entries.append(EvaluatedSystem(path, system, "block", undefined=undefined))
    return entries


def _ranker(path: str) -> Ranker:
    from apsvm.model import WeightedRanker

    model = read_any_model(path)
    if not isinstance(model, WeightedRanker):
        raise click.UsageError(f"{path} is {model.what}: with --scheduler rows are scored by one linear ranker")
    if model.header.features.pool is not None or model.header.latent:
        raise click.UsageError(f"{path} ranks bags: not with --scheduler")
    return model


# What they share.


def need_dask() -> None:
    """Ends the command where the extra is not installed."""
    if find_spec("distributed") is None or find_spec("dask") is None:
        raise Failure(MISSING, "--scheduler needs dask.distributed: pip install 'apsvm[dask]'")


@contextmanager
def cluster(scheduler: str) -> Iterator[Client]:
    """A client of it; failures end the command."""
    from apsvm.dask.actors import ClusterError, cluster_of

    try:
        with cluster_of(scheduler) as client:
            yield client
    except ClusterError as error:
        raise Failure(NO_INPUT, str(error)) from None
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def parts_named(pattern: str) -> list[str]:
    """The parts that ``pattern`` names, in the order of their names; none ends the command."""
    if pattern == "-":
        raise click.UsageError("with --scheduler DATA is a pattern of files that the workers read, not standard input")
    parts = sorted(glob.glob(pattern))
    if not parts and os.path.lexists(pattern):
        parts = [pattern]
    if not parts:
        raise Failure(NO_INPUT, f"no file is called {pattern}")
    return [os.path.abspath(part) for part in parts]


def read_parts(client: Client, source: str, parts: Sequence[FilePart], *, width: int | None = None) -> ShardedData:
    """The rows of the parts, read by the workers."""
    from apsvm.dask.actors import ActorCrew
    from apsvm.dask.data import ShardedData

    sizes = [float(_size(part.path)) for part in parts]
    data = ShardedData.of(ActorCrew(client, parts, sizes), source, width=width)
    unknown = sum(one.unknown_features for one in data.about)
    if unknown:
        say(f"{unknown} feature values unknown to the model were ignored")
    return data


def _size(path: str) -> int:
    """Bytes, of a folder those in it; at least 1."""
    if not os.path.isdir(path):
        return max(1, os.path.getsize(path)) if os.path.exists(path) else 1
    return 1 + sum(entry.stat().st_size for entry in os.scandir(path) if entry.is_file())


def _part(path: str, read: ReadOptions) -> FilePart:
    from apsvm.dask.sources import FilePart

    return FilePart(path, read)


def _part_for(path: str, ranker: Ranker, read: ReadOptions, *, ignore_unknown: bool) -> FilePart:
    from dataclasses import replace

    from apsvm.dask.sources import FilePart

    options = replace(read, zero_based=ranker.zero_based)
    return FilePart(path, options, n_features=_width(ranker), ignore_unknown=ignore_unknown, unlabelled=True)


def _width(ranker: Ranker) -> int:
    return ranker.width // ranker.header.features.columns_of_feature


def _check_reading(read: ReadOptions) -> None:
    for option, value in (("groups", read.groups), ("labels", read.labels), ("multilabel", read.multilabel)):
        if value:
            raise click.UsageError(f"--{option} does not go with --scheduler, where parts have columns of their own")
    if read.bags is not None:
        raise click.UsageError("--bags does not go with --scheduler: rows stand for themselves there")
