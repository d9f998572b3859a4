"""``--scheduler``: the commands on a dask cluster, where each worker reads its own parts and rows stay."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from apsvm._support.shown import printable
from apsvm.cli.output.run_folder import make_folder
from apsvm.cli.reading import features_wanted, one_ranker, read_any_model, say_queries_unused
from apsvm.cli.shared import BAD_DATA, CANNOT_WRITE, INTERNAL, MISSING, NO_INPUT, Failure, bad_data, say
from apsvm.data.parts import parts_of
from apsvm.data.read_options import ReadOptions

if TYPE_CHECKING:
    from distributed import Client

    from apsvm.cli.systems import EvaluatedSystem
    from apsvm.dask.data import ShardedData
    from apsvm.dask.sources import FilePart
    from apsvm.data.labels import LabelOptions, Target
    from apsvm.metrics import Metric
    from apsvm.metrics.evaluate import Evaluation
    from apsvm.models.base import Model, Ranker


def evaluated(
    data: ShardedData,
    model: Ranker,
    target: Target,
    metrics: Mapping[str, Metric] | None,
    *,
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
    return evaluate_on_shards(data, model, target, metrics, leave_out_undefined=leave_out)


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
    check_reading(read)
    ranker = _ranker(model)
    parts = parts_named(data)
    names = [f"{os.path.basename(os.path.normpath(part))}.scores" for part in parts]
    if len(set(names)) < len(names):
        raise click.UsageError("parts of the same name in different folders would be scored into one file")
    make_folder(out)
    from apsvm.dask.prediction import score_parts

    sources = [_part_for(part, ranker, read, ignore_unknown=ignore_unknown, unlabelled=True) for part in parts]
    with cluster(scheduler) as client, bad_data(data):
        outputs = [os.path.abspath(os.path.join(out, name)) for name in names]
        try:
            rows, remarks = score_parts(client, sources, ranker, outputs)
        except OSError as error:
            if error.filename not in outputs:
                raise
            raise Failure(CANNOT_WRITE, f"cannot write {error.filename}: {error.strerror}") from None
    say_once(data, remarks)
    say(f"{rows} rows of {len(parts)} parts scored into {out}")


def evaluate_on_cluster(
    data: str,
    models: Mapping[str, Model],
    metrics: Mapping[str, Metric],
    scheduler: str,
    read: ReadOptions,
    options: LabelOptions,
    *,
    leave_out_undefined: bool,
    ignore_unknown: bool,
) -> list[EvaluatedSystem]:
    """An entry for each model; failures end the command."""
    need_dask()
    import numpy as np

    from apsvm.cli.systems import EvaluatedSystem, with_thresholds
    from apsvm.data.labels import judge
    from apsvm.metrics import MetricError
    from apsvm.metrics.evaluate import Judgements
    from apsvm.metrics.significance import System

    check_reading(read)
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
                    result = evaluated(shards, ranker, target, metrics, leave_out=leave_out_undefined)
                except MetricError as error:
                    raise Failure(BAD_DATA, f"{data}: {error}") from None
                shards.crew.close()
            undefined = [name for name in metrics if name not in result.values]
            system = System(np.empty(0), Judgements(np.empty(0, dtype=bool)), result)
            entry = EvaluatedSystem(path, system, "block", undefined=undefined)
            entries.append(with_thresholds(entry, metrics, [ranker.header.threshold]))
    return entries


def _ranker(path: str) -> Ranker:

    model = read_any_model(path)
    if not model.explainable:
        raise click.UsageError(f"{path} is {model.what}: with --scheduler rows are scored by one linear ranker")
    if model.header.features.pool is not None or model.header.latent:
        raise click.UsageError(f"{path} ranks bags: not with --scheduler")
    (ranker,) = model.rankers()
    return ranker


# What they share.


def need_dask() -> None:
    """Ends the command where the extra is not installed."""
    if find_spec("distributed") is None or find_spec("dask") is None:
        raise Failure(MISSING, "--scheduler needs dask.distributed: pip install 'apsvm[dask]'")


#: Schemes of addresses that dask's schedulers listen at.
_SCHEMES = ("tcp", "tls", "ws", "wss", "ucx", "inproc")


@contextmanager
def cluster(scheduler: str) -> Iterator[Client]:
    """A client of it; failures end the command."""
    scheme, separator, _ = scheduler.partition("://")
    if separator and scheme not in _SCHEMES:
        raise click.UsageError(
            f"--scheduler {scheduler}: expected {', '.join(_SCHEMES)}:// or local:N, not {scheme}://"
        )
    from apsvm.dask.actors import cluster_of, lost_with_scheduler
    from apsvm.dask.crew import ClusterError, WorkerError

    with ExitStack() as stack:
        try:
            client = stack.enter_context(cluster_of(scheduler))
        except ClusterError as error:
            raise Failure(NO_INPUT, str(error)) from None
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        try:
            with lost_with_scheduler(client):
                yield client
        except BrokenPipeError:
            raise
        except ClusterError as error:
            raise Failure(NO_INPUT, str(error)) from None
        except WorkerError as error:
            raise Failure(INTERNAL, str(error)) from None
        except OSError as error:
            what = f"the cluster at {scheduler}" if error.filename is None else f"cannot read {error.filename}"
            raise Failure(NO_INPUT, f"{what}: {error.strerror or error}") from None


def parts_named(pattern: str) -> list[str]:
    """The parts that ``pattern`` names, in the order of their names; none ends the command."""
    if pattern == "-":
        raise click.UsageError("with --scheduler DATA is a pattern of files that the workers read, not standard input")
    parts = parts_of(pattern)
    if not os.path.lexists(parts[0]):
        raise Failure(NO_INPUT, f"no file is called {pattern}")
    say_queries_unused(parts, "on a cluster")
    return [os.path.abspath(part) for part in parts]


def read_parts(client: Client, source: str, parts: Sequence[FilePart], *, width: int | None = None) -> ShardedData:
    """The rows of the parts, read by the workers."""
    from apsvm.dask.actors import ActorCrew
    from apsvm.dask.data import ShardedData

    sizes = [float(_size(part.path)) for part in parts]
    data = ShardedData.of(ActorCrew(client, parts, sizes), source, width=width)
    say_once(source, data.remarks)
    unknown = sum(one.unknown_features for one in data.about)
    if unknown:
        say(f"{unknown} feature values unknown to the model were ignored")
    return data


def say_once(source: str, remarks: Iterable[str]) -> None:
    """Remarks on tables, of which each part may have the same."""
    if not click.get_current_context().params.get("quiet"):
        for remark in dict.fromkeys(remarks):
            say(f"{source}: {printable(remark)}")


def _size(path: str) -> int:
    """Bytes, of a folder those in it; at least 1."""
    if not os.path.isdir(path):
        return max(1, os.path.getsize(path)) if os.path.exists(path) else 1
    return 1 + sum(entry.stat().st_size for entry in os.scandir(path) if entry.is_file())


def file_part(path: str, read: ReadOptions) -> FilePart:
    from apsvm.dask.sources import FilePart

    return FilePart(path, read)


def _part_for(
    path: str, ranker: Ranker, read: ReadOptions, *, ignore_unknown: bool, unlabelled: bool = False
) -> FilePart:
    from dataclasses import replace

    from apsvm.dask.sources import FilePart

    options = replace(read, zero_based=ranker.zero_based)
    return FilePart(path, options, _width(ranker), ignore_unknown, unlabelled, features_wanted(ranker))


def _width(ranker: Ranker) -> int:
    return ranker.width // ranker.header.features.columns_of_feature


def check_reading(read: ReadOptions) -> None:
    for option, value in (("groups", read.groups), ("labels", read.labels), ("multilabel", read.multilabel)):
        if value:
            raise click.UsageError(f"--{option} does not go with --scheduler, where parts have columns of their own")
    if read.bags is not None:
        raise click.UsageError("--bags does not go with --scheduler: rows stand for themselves there")
