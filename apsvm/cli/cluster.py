"""``--scheduler``: the commands on a dask cluster, where each worker reads its own parts and features stay."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from apsvm._support.shown import printable
from apsvm.cli.output.records import make_folder
from apsvm.cli.reading import features_wanted, in_queries_beside, read_any_model, say_remarks
from apsvm.cli.shared import (
    CANNOT_WRITE,
    INTERNAL,
    MISSING,
    NO_INPUT,
    Failure,
    bad_data,
    is_set,
    remark,
    say,
)
from apsvm.data.parts import parts_of
from apsvm.data.read_options import ReadOptions
from apsvm.data.takes import Takes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.dask.cluster import Cluster
    from apsvm.dask.parts import FilePart
    from apsvm.data.dataset import Dataset
    from apsvm.models.base import Model
    from apsvm.trainers.base import AnyTrainer

#: Schemes of addresses that dask's schedulers listen at.
_SCHEMES = ("tcp", "tls", "ws", "wss", "ucx", "inproc")


@contextmanager
def rows_on_cluster(data: str, read: ReadOptions, trainer: AnyTrainer, scheduler: str) -> Iterator[Dataset]:
    """The rows to train on, with features on the workers while the context lasts; failures end the command."""
    need_dask()
    from apsvm.dask.fitting import refusal
    from apsvm.dask.parts import FilePart
    from apsvm.dask.reading import read_to_train

    refused = refusal(trainer)
    if refused is not None:
        raise click.UsageError(refused)
    _check_reading(read)
    names = _parts_named(data)
    several = trainer.capabilities.labels is Takes.CLASSES
    with cluster(scheduler) as workers:
        parts = [FilePart(name, read, multilabel=several) for name in names]
        with bad_data(data):
            dataset = in_queries_beside(read_to_train(workers, parts, data), names)
        say_remarks(dataset)
        yield dataset


def predict_on_cluster(
    data: str, model: str, out: str, scheduler: str, read: ReadOptions, *, ignore_unknown: bool
) -> None:
    """Scores the parts on their workers, into files of the folder ``out``."""
    need_dask()
    if out == "-":
        raise click.UsageError("with --scheduler OUT is a folder that the workers write to: name one")
    if os.path.lexists(out) and not os.path.isdir(out):
        raise click.UsageError(f"with --scheduler OUT is a folder, and {out} is a file")
    ranker = read_any_model(model)
    _check_model(ranker, model)
    _check_reading(read)
    names = _parts_named(data)
    outputs = [
        os.path.abspath(os.path.join(out, f"{os.path.basename(os.path.normpath(name))}.scores")) for name in names
    ]
    if len(set(outputs)) < len(outputs):
        raise click.UsageError("parts of the same name in different folders would be scored into one file")
    make_folder(out)
    from apsvm.dask.prediction import write_scores

    parts = [_for_model(name, ranker, read, ignore_unknown=ignore_unknown, unlabelled=True) for name in names]
    with cluster(scheduler) as workers, bad_data(data):
        try:
            scored = write_scores(workers, parts, ranker, outputs)
        except OSError as error:
            if error.filename not in outputs:
                raise
            raise Failure(CANNOT_WRITE, f"cannot write {error.filename}: {error.strerror}") from None
    _say_of(data, scored)
    say(f"{sum(map(len, scored))} rows of {len(parts)} parts scored into {out}")


def scores_on_cluster(
    data: str, models: Mapping[str, Model], scheduler: str, read: ReadOptions, *, ignore_unknown: bool
) -> tuple[Dataset | None, dict[str, NDArray[np.float64]]]:
    """The rows without their features, and every model's scores by its path; failures end the command."""
    need_dask()
    from apsvm.dask.prediction import scores_of_parts

    _check_reading(read)
    names = _parts_named(data)
    columns, dataset = {}, None
    with cluster(scheduler) as workers:
        for path, model in models.items():
            _check_model(model, path)
            parts = [_for_model(name, model, read, ignore_unknown=ignore_unknown) for name in names]
            with bad_data(data):
                rows, columns[path] = scores_of_parts(workers, parts, model, data)
            dataset = dataset or in_queries_beside(rows, names)
            _say_of(data, [rows])
    return dataset, columns


def need_dask() -> None:
    """Ends the command if dask is not installed."""
    if find_spec("distributed") is None or find_spec("dask") is None:
        raise Failure(MISSING, "--scheduler needs dask.distributed: pip install 'apsvm[dask]'")


@contextmanager
def cluster(scheduler: str) -> Iterator[Cluster]:
    """The cluster at this address; failures end the command."""
    scheme, separator, _ = scheduler.partition("://")
    if separator and scheme not in _SCHEMES:
        raise click.UsageError(
            f"--scheduler {scheduler}: expected {', '.join(_SCHEMES)}:// or local:N, not {scheme}://"
        )
    from apsvm.dask.cluster import ClusterError, WorkerError, cluster_at
    from apsvm.trainers.base import unseen

    try:
        with ExitStack() as stack:
            try:
                workers = stack.enter_context(cluster_at(scheduler, unseen if is_set("quiet") else say))
            except ValueError as error:
                raise click.UsageError(str(error)) from None
            yield workers
    except ClusterError as error:
        raise Failure(NO_INPUT, str(error)) from None
    except WorkerError as error:
        raise Failure(INTERNAL, str(error)) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        what = f"the cluster at {scheduler}" if error.filename is None else f"cannot read {error.filename}"
        raise Failure(NO_INPUT, f"{what}: {error.strerror or error}") from None


def _parts_named(pattern: str) -> list[str]:
    """The parts that ``pattern`` names, ordered by name; ends the command if there are none."""
    if pattern == "-":
        raise click.UsageError("with --scheduler DATA is a pattern of files that the workers read, not standard input")
    parts = parts_of(pattern)
    if not os.path.lexists(parts[0]):
        raise Failure(NO_INPUT, f"no file is called {pattern}")
    return [os.path.abspath(part) for part in parts]


def _say_of(source: str, parts: Iterable[Dataset]) -> None:
    """Prints remarks on the parts' tables, each once, and on features unknown to the model."""
    parts = list(parts)
    for text in dict.fromkeys(line for part in parts if part.table is not None for line in part.table.remarks):
        remark(f"{source}: {printable(text)}")
    unknown = sum(part.unknown_features for part in parts)
    if unknown:
        say(f"{unknown} feature values unknown to the model were ignored")


def _for_model(
    name: str, model: Model, read: ReadOptions, *, ignore_unknown: bool, unlabelled: bool = False
) -> FilePart:
    from apsvm.dask.parts import FilePart

    width, several = model.width // model.header.features.columns_of_feature, model.header.labels.several
    options = replace(read, zero_based=model.zero_based)
    return FilePart(name, options, width, features_wanted(model), ignore_unknown, unlabelled, several)


def _check_model(model: Model, path: str) -> None:
    """Ends the command for a model that does not rank rows."""
    if model.lists_items:
        raise click.UsageError(f"{path} is {model.what}: not with --scheduler")
    if model.header.features.pool is not None or model.header.latent:
        raise click.UsageError(f"{path} ranks bags: not with --scheduler")


def _check_reading(read: ReadOptions) -> None:
    for option, value in (("groups", read.groups), ("labels", read.labels), ("bags", read.bags)):
        if value is not None:
            raise click.UsageError(f"--{option} does not go with --scheduler: it is for the rows of one file")
