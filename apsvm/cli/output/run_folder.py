"""The folder of a run, ``apsvm train --run-dir``: its model and its log, for ``apsvm report``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from apsvm._support.machine import cores
from apsvm._support.types import JsonDict
from apsvm.cli.options.trainers import ChosenLoss
from apsvm.cli.shared import given_by_user, refuse_same_file, writing
from apsvm.data.read_options import ReadOptions
from apsvm.trainers.settings import Multiple

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset

MODEL = "ranker.model"
LOG = "log.jsonl"


def model_and_log(folder: str) -> tuple[str, str]:
    """Paths of model and log in ``folder``, which need not exist. It must hold no run yet: a log and a model of
    different runs would make a false report."""
    for name in (LOG, MODEL):
        if os.path.lexists(os.path.join(folder, name)):
            raise click.UsageError(f"{folder}: it holds a run already ({name}): name another folder, or remove it")
    return os.path.join(folder, MODEL), os.path.join(folder, LOG)


def check_folder(folder: str, data: str) -> None:
    """Checks that the folder can be made or written to, and is not the data."""
    from apsvm._support.files import check_writable

    refuse_same_file(folder, data=data)
    with writing(folder):
        if os.path.isdir(folder):
            check_writable(os.path.join(folder, LOG))
        elif os.path.lexists(folder):
            raise NotADirectoryError(20, "Not a directory", folder)
        else:
            check_writable(os.path.normpath(folder))


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
        "options": {name: as_json(value) for name, value in options.items() if _is_recorded(name)},
        "rows": int(X.shape[0]),
        "features": int(X.shape[1]),
        "values": dataset.n_values,
        "seconds": read_seconds,
        "machine": f"{platform.system()} {platform.machine()}, {cores()} cores",
    }


def _is_recorded(name: str) -> bool:
    return name not in ("data", "model", "log", "run_dir") and given_by_user(name)


def as_json(value: object) -> object:
    """The value of an option."""
    if isinstance(value, Multiple | ChosenLoss):
        return str(value)
    if isinstance(value, tuple | list):
        return [as_json(one) for one in value]
    if isinstance(value, Mapping):
        return {str(key): as_json(one) for key, one in value.items()}
    return value
