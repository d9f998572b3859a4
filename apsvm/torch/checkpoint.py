"""The file of a sorter: safetensors, which holds arrays and JSON and cannot run code, with a checksum.

The format's metadata hold one text, the JSON object ``header``. Its ``sha256`` is the digest of the whole file with 64
zeros in its place. Any changed byte is a ``CheckpointError``; safetensors itself would load the file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from importlib import import_module
from importlib.resources import files
from types import ModuleType
from typing import Any, NoReturn

import torch
from torch import Tensor

from apsvm import __version__
from apsvm._support.files import read_bytes, write_whole
from apsvm._support.registry import UnknownNameError
from apsvm._support.types import JsonDict, JsonObject
from apsvm.torch.sorters import SORTERS, Sorter, SorterError, make_sorter

#: Names of the sorters in the package, and their files.
SHIPPED = {"neighbours": "neighbours.safetensors"}
#: Distribution of the training lists.
DISTRIBUTION = "sodeep-2019"

#: Names of fields in the file, where they differ; types of their values in JSON.
_KEYS = {"l1": "L1", "version": "apsvm"}
_TYPES: dict[str, type | tuple[type, ...]] = {
    "str": str, "int": int, "int | None": (int, type(None)), "float": (float, int, type(None)),
    "Mapping[str, int | float]": dict,
}  # fmt: skip
_DIGEST = "sha256"
_BLANK = "0" * 64
_LENGTH_BYTES = 8


class CheckpointError(ValueError):
    """A file that is not a complete, undamaged sorter; the message names the file and the fault."""


@dataclass(frozen=True, kw_only=True)
class SorterHeader:
    """Header of a sorter's file.

    architecture : name of the sorter
    arguments, length : arguments of its constructor; length None: any
    trained_length, trained_longest : shortest and longest L of its training lists; the second is None if all had one L
    distribution : distribution of the training lists
    seen : number of training lists
    l1, climb : its quality on ``trained_length`` (``sorter_quality``); NaN if not measured
    seed : seed of its initial weights and of the lists
    version : version of apsvm
    """

    architecture: str
    arguments: Mapping[str, int | float]
    length: int | None
    trained_length: int
    trained_longest: int | None
    seen: int
    l1: float
    climb: float
    seed: int
    distribution: str = DISTRIBUTION
    version: str = __version__

    def to_json(self) -> JsonDict:
        values = {_KEYS.get(name, name): value for name, value in asdict(self).items()}
        unmeasured = {name: None for name in ("L1", "climb") if values[name] != values[name]}
        return {"kind": "sorter", **values, **unmeasured, "arguments": dict(self.arguments)}

    @classmethod
    def of_json(cls, content: JsonObject) -> SorterHeader:
        """Raises CheckpointError where a field is missing or of another type."""
        types = {item.name: _TYPES[str(item.type)] for item in fields(cls)}
        values = {name: _field(content, _KEYS.get(name, name), of_name) for name, of_name in types.items()}
        if not all(isinstance(value, int | float) for value in values["arguments"].values()):
            raise CheckpointError(f"its header's 'arguments' are {values['arguments']!r}: expected numbers")
        for name in ("l1", "climb"):
            values[name] = torch.nan if values[name] is None else float(values[name])
        return cls(**values)


@dataclass(frozen=True)
class Checkpoint:
    """A frozen sorter and its header."""

    sorter: Sorter
    header: SorterHeader


def load_sorter(name: str | os.PathLike[str]) -> Sorter:
    """Load a frozen sorter: the one in the package (``"neighbours"``), one that needs no training
    (``"handcrafted(10)"``, ``"laplace(50)"``), or one from a file of ``write_checkpoint``.

    Raises
    ------
    SorterError
        (a ValueError) an architecture that must be trained first, or a bad parameter.
    CheckpointError
        (a ValueError) the file is damaged or not a sorter.
    OSError
        The file cannot be read, or neither name nor file exists.
    """
    text = os.fspath(name)
    if text in SHIPPED:
        return sorter_of_bytes((files("apsvm.torch") / "sorters" / SHIPPED[text]).read_bytes(), text).sorter
    try:
        form = SORTERS.spelled(text).form
    except UnknownNameError as error:
        if not os.path.exists(text) and os.sep not in text and not text.endswith(".safetensors"):
            raise SorterError(f"{error}; nor is there a file of that name") from None
        return read_checkpoint(text).sorter
    if SORTERS[form].trained:
        raise SorterError(f"sorter {text!r} must be trained first (scripts/reproduce/sodeep.py --train): name its file")
    return make_sorter(text).freeze()


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Raises CheckpointError; OSError if the file cannot be read."""
    return sorter_of_bytes(read_bytes(path), os.fspath(path))


def write_checkpoint(path: str | os.PathLike[str], sorter: Sorter, header: SorterHeader) -> None:
    """Writes the complete file, or raises OSError and writes nothing."""
    write_whole(path, sealed(header.to_json(), sorter.state_dict()))


def sorter_of_bytes(content: bytes, name: str) -> Checkpoint:
    """The sorter in a file's content; ``name`` is for messages. Raises CheckpointError."""
    try:
        parsed, tensors = unsealed(content)
        if parsed.get("kind") != "sorter":
            raise CheckpointError(f"it holds no sorter but {parsed.get('kind')!r}")
        header = SorterHeader.of_json(parsed)
        sorter = _rebuilt(header, tensors).freeze()
        sorter.climb = header.climb
        return Checkpoint(sorter, header)
    except CheckpointError as error:
        raise CheckpointError(f"{name}: {error}") from None


def _rebuilt(header: SorterHeader, tensors: Mapping[str, Tensor]) -> Sorter:
    if header.architecture not in SORTERS:
        raise CheckpointError(str(SORTERS.unknown(header.architecture)))
    try:
        # On the meta device, without memory: sizes in the header are checked before memory is taken.
        with torch.device("meta"):
            sorter = SORTERS[header.architecture](header.length, **header.arguments)
    except (SorterError, TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise CheckpointError(f"its header makes no sorter: {error}") from None
    expected = {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in sorter.state_dict().items()}
    present = {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in tensors.items()}
    if expected != present:
        odd = sorted(name for name in expected.keys() | present.keys() if expected.get(name) != present.get(name))
        raise CheckpointError(
            f"tensor {odd[0]!r} is not as its header says: expected {expected.get(odd[0])}, found {present.get(odd[0])}"
        )
    sorter.load_state_dict(dict(tensors), assign=True)
    return sorter


def sealed(header: JsonObject, tensors: Mapping[str, Tensor]) -> bytes:
    """Content of a file; equal headers and tensors give equal bytes."""
    text = json.dumps({**header, _DIGEST: _BLANK}, allow_nan=False, sort_keys=True)
    arrays = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    content: bytes = _safetensors().save(arrays, metadata={"header": text})
    digest = hashlib.sha256(content).hexdigest()
    return content.replace(_BLANK.encode(), digest.encode(), 1)


def unsealed(content: bytes) -> tuple[JsonDict, dict[str, Tensor]]:
    """The header, without its digest, and the tensors. Raises CheckpointError."""
    load = _safetensors().load
    from safetensors import SafetensorError

    header = _checked(content)
    try:
        return header, load(content)
    except (SafetensorError, ValueError, RuntimeError, KeyError) as error:
        raise CheckpointError(f"not a file of safetensors: {error}") from None


def _safetensors() -> ModuleType:
    """Its module for torch; raises an ImportError that names the extra if it is missing. The losses do not need it."""
    try:
        return import_module("safetensors.torch")
    except ModuleNotFoundError as error:
        raise ImportError("sorters need safetensors: pip install 'apsvm[torch]'") from error


def _checked(content: bytes) -> JsonDict:
    """The header. Raises CheckpointError if its digest differs from the file's."""
    size = int.from_bytes(content[:_LENGTH_BYTES], "little")
    try:
        if len(content) < _LENGTH_BYTES + size:
            raise ValueError
        metadata = json.loads(content[_LENGTH_BYTES : _LENGTH_BYTES + size])["__metadata__"]
        header: JsonDict = json.loads(metadata["header"], parse_constant=_no_constant)
        digest = header.pop(_DIGEST).encode()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise CheckpointError("damaged or not a sorter of apsvm: it lacks the header of one") from None
    # A changed digest does not match the rest either.
    if len(digest) != len(_BLANK) or hashlib.sha256(content.replace(digest, _BLANK.encode(), 1)).hexdigest() != (
        digest.decode()
    ):
        raise CheckpointError("damaged: its checksum does not match its content")
    return header


def _field(content: JsonObject, key: str, types: type | tuple[type, ...]) -> Any:
    """A field of a header; a bool does not count as int."""
    if key not in content:
        raise CheckpointError(f"its header lacks {key!r}")
    value = content[key]
    if not isinstance(value, types) or isinstance(value, bool):
        raise CheckpointError(f"its header's {key!r} is {value!r}")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} in a header")
