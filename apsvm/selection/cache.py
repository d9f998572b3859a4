"""Results kept in a folder: each path of settings in each fold, once it is finished, so that the same command goes on
where it was stopped (``apsvm cv --cache``).

An entry is found by a hash of all that its result depends on: rows, labels, fold, plan, features, metrics, where the
path begins, and versions. ``joblib.Memory`` keeps it, with the SHA-256 of its bytes: a damaged one is trained again.
"""

from __future__ import annotations

import hashlib
import inspect
import pickle
import platform
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from apsvm._support import sparse as sp
from apsvm._support.machine import installed
from apsvm.selection.race import Measured, PathInFold, Task

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.data.labels import Target
    from apsvm.selection.cross_validation import CrossValidation
    from apsvm.trainers.base import AnyTrainer

#: The packages on which the last bits of a result depend.
PACKAGES = ("apsvm", "numpy", "scipy")


class Cache:
    """The entries in ``folder``, which is made.

    Attributes
    ----------
    is_lossy : whether an entry could not be written

    Raises
    ------
    OSError : the folder cannot be made
    """

    def __init__(self, folder: str) -> None:
        from joblib import Memory

        self._entries = Memory(folder, verbose=0).cache(_entry, ignore=["content"])
        self._digests: dict[int, tuple[Dataset, str]] = {}
        self.is_lossy = False

    def paths(
        self,
        race: CrossValidation,
        tasks: Sequence[Task],
        run: Callable[[Sequence[Task]], Iterator[PathInFold]],
    ) -> Iterator[PathInFold]:
        """The tasks that are kept, and then those that ``run`` does, which are kept as they end unless they were
        stopped."""
        left: dict[Task, str] = {}
        for task in tasks:
            key = self._key(race, task)
            kept = self._read(key)
            if kept is None:
                left[task] = key
            else:
                yield PathInFold(task, *kept)
        if not left:
            return
        for path in run(list(left)):
            if path.failure or len(path.settings) == path.task.variant.length:
                self._write(left[path.task], path)
            yield path

    def _read(self, key: str) -> tuple[list[Measured], str] | None:
        """Settings and failure of the entry; None where there is none, or a damaged one."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if not self._entries.check_call_in_cache(key, None):
                    return None
                digest, content = self._entries.call_and_shelve(key, None).get()
            if hashlib.sha256(content).hexdigest() != digest:
                return None
            own_key, settings, failure = pickle.loads(content)
        except Exception:  # anything may come of damaged files
            return None
        return (settings, failure) if own_key == key else None

    def _write(self, key: str, path: PathInFold) -> None:
        content = pickle.dumps((key, path.settings, path.failure))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # what joblib says of a full disk
                self._entries.call(key, content)
        except (OSError, Warning):
            self.is_lossy = True

    def _key(self, race: CrossValidation, task: Task) -> str:
        from joblib import hash

        fit, fold, variant = race.fits[task.grid], race.folds[task.fold], task.variant
        key: str = hash(
            [
                [installed(name) for name in PACKAGES],
                platform.python_version(),
                platform.machine(),
                self._digest(fit.dataset),
                _of_target(fit.target),
                repr(fit.features),
                fit.query_weights and sorted(fit.query_weights.items()),
                _of_plan(variant.trainer),
                [[name, str(value)] for name, value in variant.choice.items()],
                variant.path,
                task.start,
                fold.training,
                fold.test,
                _of_target(race.target),
                race.groups,
                list(race.metrics),
            ]
        )
        return key

    def _digest(self, dataset: Dataset) -> str:
        """Hash of the rows of a data set, computed once."""
        from joblib import hash

        if id(dataset) not in self._digests:
            X = dataset.X
            arrays = [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]
            arrays += [dataset.relevance, dataset.groups, dataset.costs, dataset.bags]
            arrays += [dataset.deciding, dataset.stands_for]
            self._digests[id(dataset)] = dataset, hash([X.shape, dataset.ignores_bags, *arrays], coerce_mmap=True)
        return self._digests[id(dataset)][1]


def _entry(key: str, content: bytes | None) -> tuple[str, bytes]:
    """The content of an entry and its SHA-256, which joblib keeps by the ``key``."""
    if content is None:
        raise KeyError(key)
    return hashlib.sha256(content).hexdigest(), content


def _of_target(target: Target) -> list[object]:
    return [repr(target.labels), target.relevant, target.grades]


def _of_plan(trainer: AnyTrainer) -> list[object]:
    """The plan, with the source of a loss that is the user's own, and the content of files that settings name."""
    module, is_own, _ = trainer.loss_name.partition(":")
    source = inspect.getsource(sys.modules[module]) if is_own else ""
    files = {}
    for what, path in trainer.inputs().items():
        with open(path, "rb") as stream:
            files[what] = hashlib.file_digest(stream, "sha256").hexdigest()
    settings = repr(trainer.with_settings(threads=1).settings)
    return [trainer.family, trainer.loss_name, source, sorted(trainer.named), settings, files]
