"""The file of a checkpoint: the finished pieces of a training (``work``), in the container of the models, which runs
no code and in which every damaged byte is found.

Its header says of what training it is: the command, its settings, its data, and the versions that the last bits depend
on. Another training's checkpoint is refused, with what differs.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

import numpy as np

from apsvm._support.container import MAGIC, ModelError, sealed, unsealed
from apsvm._support.files import read_bytes, write_whole
from apsvm._support.types import JsonDict, JsonObject
from apsvm._support.work import Saved, Strand

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray

SCHEMA = 1
#: Seconds between two writes, at the least; and how many times longer than the writing itself that is.
SECONDS = 30.0
TIMES_ITS_WRITING = 20.0

_ARRAY, _FLOAT, _MAPPING = "array", "float", "mapping"


class CheckpointError(ValueError):
    """A file that is no whole, undamaged checkpoint, or one of another training; the message names it and says so."""


class Checkpoint:
    """A checkpoint in a file, read if there is one and written now and then (``apsvm._support.work.Store``).

    Parameters
    ----------
    path : of the file, which need not exist
    seconds : between two writes, at the least
    is_stopping : whether the work is being broken off: then it is written at once
    cannot_write : told why, the first time that it could not be written; the work goes on

    Attributes
    ----------
    strand : the work, as one strand
    resumed : whether there was a file

    Raises
    ------
    CheckpointError : the file is no checkpoint
    OSError : it cannot be read
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        seconds: float = SECONDS,
        is_stopping: Callable[[], bool] = lambda: False,
        cannot_write: Callable[[OSError], None] = lambda error: None,
    ) -> None:
        self._path = os.fspath(path)
        self._seconds = seconds
        self._is_stopping, self._cannot_write = is_stopping, cannot_write
        self._training: JsonObject = {}
        self._strands: dict[str, Saved] = {}
        self._lock = threading.Lock()
        self._last_write = time.monotonic()
        self._last_of_strand: dict[str, float] = {}
        self._writing_takes = 0.0
        self._failed = self._changed = False
        self.resumed = os.path.exists(path)
        if self.resumed and not os.path.isfile(path):
            raise CheckpointError(f"{self._path}: a checkpoint is a file, and this is something else: name another one")
        if self.resumed:
            self._training, self._strands = _read(self._path)
        self.strand = Strand(self)

    def of(self, training: JsonObject) -> None:
        """Says what training it is of: JSON values by name, each of which decides over the result.

        Raises
        ------
        CheckpointError : the file is of another one
        """
        if self.resumed:
            differing = [
                f"{name} was {_shown(self._training.get(name))} and is {_shown(training.get(name))}"
                for name in sorted({*self._training, *training})
                if self._training.get(name) != training.get(name)
            ]
            if differing:
                raise CheckpointError(
                    f"{self._path}: a checkpoint of another training: {'; '.join(differing)}. Remove it, or name "
                    "another file"
                )
        self._training = training

    def remove(self) -> None:
        """There is nothing to go on with any more."""
        with suppress(FileNotFoundError):
            os.unlink(self._path)

    def break_off(self) -> None:
        """The work ends before it is finished: writes what has changed since it was written last."""
        self.strand.break_off()
        with self._lock:
            if self._changed:
                self._write()

    # apsvm._support.work.Store

    def stored(self, strand: str) -> Saved | None:
        with self._lock:
            self._last_of_strand.setdefault(strand, time.monotonic())
            return self._strands.get(strand)

    def is_due(self, strand: str) -> bool:
        return time.monotonic() - self._last_of_strand[strand] >= self._gap

    def is_stopping(self) -> bool:
        return self._is_stopping()

    def store(self, strand: str, snapshot: Saved) -> None:
        with self._lock:
            self._strands[strand] = snapshot
            self._changed = True
            self._last_of_strand[strand] = now = time.monotonic()
            if self._is_stopping() or now - self._last_write >= self._gap:
                self._write()

    def drop(self, prefix: str) -> None:
        with self._lock:
            for name in [name for name in self._strands if name.startswith(prefix)]:
                del self._strands[name]
            for name in [name for name in self._last_of_strand if name.startswith(prefix)]:
                del self._last_of_strand[name]

    @property
    def _gap(self) -> float:
        return max(self._seconds, TIMES_ITS_WRITING * self._writing_takes if self._seconds else 0.0)

    def _write(self) -> None:
        began = time.monotonic()
        arrays: list[AnyArray] = []
        header = {
            "kind": "checkpoint",
            "schema": SCHEMA,
            "training": self._training,
            "strands": _packed(self._strands, arrays),
        }
        try:
            write_whole(self._path, sealed(header, {str(at): array for at, array in enumerate(arrays)}))
        except OSError as error:
            if not self._failed:
                self._cannot_write(error)
            self._failed = True
        else:
            self._failed = self._changed = False
        self._last_write = time.monotonic()
        self._writing_takes = self._last_write - began


def _read(path: str) -> tuple[JsonDict, dict[str, Saved]]:
    """Of what training it is, and its strands. Raises CheckpointError, OSError."""
    content = read_bytes(path)
    hint = "remove it to begin anew"
    try:
        if not content.startswith(MAGIC):
            raise ModelError("no zip archive")
        header, arrays = unsealed(content)
    except ModelError as error:
        what = str(error).replace("not an apsvm model", "not one of apsvm")
        raise CheckpointError(f"{path}: no checkpoint, or a damaged one ({what}): {hint}") from None
    if not isinstance(header, dict) or header.get("kind") != "checkpoint":
        raise CheckpointError(f"{path}: no checkpoint but another file of apsvm's: name another file")
    if header.get("schema") != SCHEMA:
        raise CheckpointError(f"{path}: a checkpoint of another version of apsvm: {hint}")
    try:
        strands = _unpacked(header["strands"], arrays)
        training = header["training"]
        if not (isinstance(strands, dict) and isinstance(training, dict)):
            raise TypeError
    except (KeyError, TypeError, ValueError):
        raise CheckpointError(f"{path}: no checkpoint that this version of apsvm has written: {hint}") from None
    return training, strands


def _packed(value: object, arrays: list[AnyArray]) -> object:
    """As JSON, arrays by their number in ``arrays``."""
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    elif isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, np.ndarray):
        arrays.append(np.asarray(value, dtype=value.dtype.newbyteorder("<")))
        return {_ARRAY: len(arrays) - 1}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {_FLOAT: str(value)}
    if isinstance(value, Mapping):
        # The file has the names of a mapping in alphabetical order, and the order may mean something.
        return {_MAPPING: [[name, _packed(one, arrays)] for name, one in value.items()]}
    if isinstance(value, list | tuple):
        return [_packed(one, arrays) for one in value]
    return value


def _unpacked(value: object, arrays: Mapping[str, AnyArray]) -> object:
    """The reverse of ``_packed``; KeyError, ValueError for what it has not made."""
    if isinstance(value, list):
        return [_unpacked(one, arrays) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {_ARRAY}:
        return arrays[str(value[_ARRAY])]
    if value.keys() == {_FLOAT}:
        return float(value[_FLOAT])
    return {name: _unpacked(one, arrays) for name, one in value[_MAPPING]}


def _shown(value: object) -> str:
    text = "not said" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
