"""``apsvm train --scheduler``: on a dask cluster, where each worker reads its own parts and features stay."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from apsvm.cli.reading import in_queries_beside, say_remarks
from apsvm.cli.shared import MISSING, NO_INPUT, Failure, bad_data, is_set, say
from apsvm.data.file_patterns import parts_of
from apsvm.data.read_options import ReadOptions
from apsvm.data.takes import Takes

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.trainers.base import AnyTrainer


@contextmanager
def rows_on_cluster(data: str, read: ReadOptions, trainer: AnyTrainer, scheduler: str) -> Iterator[Dataset]:
    """The rows to train on, with features on the workers while the context lasts; failures end the command."""
    if find_spec("distributed") is None or find_spec("dask") is None:
        raise Failure(MISSING, "--scheduler needs dask.distributed: pip install 'apsvm[dask]'")
    from apsvm.dask.cluster import ClusterError, cluster_at
    from apsvm.dask.fitting import refusal
    from apsvm.dask.parts import FilePart
    from apsvm.dask.reading import read_to_train
    from apsvm.trainers.base import unseen

    refused = refusal(trainer)
    if refused is not None:
        raise click.UsageError(refused)
    if data == "-":
        raise click.UsageError("with --scheduler DATA is a pattern of files that the workers read, not standard input")
    names = [os.path.abspath(part) for part in parts_of(data)]
    if not os.path.lexists(names[0]):
        raise Failure(NO_INPUT, f"no file is called {data}")
    several = trainer.capabilities.labels is Takes.CLASSES
    try:
        with ExitStack() as stack:
            try:
                workers = stack.enter_context(cluster_at(scheduler, unseen if is_set("quiet") else say))
            except ValueError as error:
                raise click.UsageError(str(error)) from None
            parts = [FilePart(name, read, multilabel=several) for name in names]
            with bad_data(data):
                dataset = in_queries_beside(read_to_train(workers, parts, data), names)
            say_remarks(dataset)
            yield dataset
    except (ClusterError, OSError) as error:
        if isinstance(error, BrokenPipeError) or getattr(error, "filename", None) is not None:
            raise
        raise Failure(NO_INPUT, f"the cluster at {scheduler}: {error}") from None
