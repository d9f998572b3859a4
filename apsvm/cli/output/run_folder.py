"""The folder of a run, ``apsvm train --run-dir``: its model and its log, for ``apsvm report``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from apsvm._support.machine import cores
from apsvm._support.types import JsonDict
from apsvm.cli.options.trainers import ChosenLoss
from apsvm.cli.shared import all_given, refuse_same_file, writing
from apsvm.data.read_options import ReadOptions
from apsvm.trainers.settings import Multiple

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset

MODEL = "ranker.model"
LOG = "log.jsonl"
#: Files, which stand elsewhere in the record.
_NOT_RECORDED = {"data", "model", "log", "run_dir"}


def model_and_log(folder: str, data: str) -> tuple[str, str]:
    """Paths of model and log in ``folder``, which is made later. It must hold no run yet: a log and a model of two runs
    would make a false report. Ends the command if it cannot be made or written to, or is the data."""
    from apsvm._support.files import check_writable

    model, log = (os.path.join(folder, name) for name in (MODEL, LOG))
    for path in (log, model):
        if os.path.lexists(path):
            name = os.path.basename(path)
            raise click.UsageError(f"{folder}: it holds a run already ({name}): name another folder, or remove it")
    refuse_same_file(folder, data=data)
    with writing(folder):
        if os.path.lexists(folder) and not os.path.isdir(folder):
            raise NotADirectoryError(20, "Not a directory", folder)
        check_writable(log if os.path.isdir(folder) else os.path.normpath(folder))
    return model, log


def make_folder(folder: str) -> None:
    with writing(folder):
        os.makedirs(folder, exist_ok=True)


def run_record(data: str, dataset: Dataset, read: ReadOptions, read_seconds: float) -> JsonDict:
    """Fields of the log's ``run`` record that a report needs and the model lacks."""
    import platform
    import time

    options = click.get_current_context().params
    X = dataset.X
    return {
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "data": data if data == "-" else os.path.abspath(data),
        "reading": read.to_json(),
        "options": {name: as_json(options[name]) for name in all_given() - _NOT_RECORDED},
        "rows": int(X.shape[0]),
        "features": int(X.shape[1]),
        "values": dataset.n_values,
        "seconds": read_seconds,
        "machine": f"{platform.system()} {platform.machine()}, {cores()} cores",
    }


def as_json(value: object) -> object:
    """The value of an option."""
    if isinstance(value, Multiple | ChosenLoss):
        return str(value)
    return [as_json(one) for one in value] if isinstance(value, tuple | list) else value
