"""The model: a weight a feature and a constant, in a file that cannot run code and cannot be damaged unnoticed.

File: an uncompressed ``.npz`` (``numpy.load`` reads it) with two members, ``header.npy`` (UTF-8 JSON as uint8) and
``coef.npy`` (float64, little-endian), and the SHA-256 of all bytes before it, in hexadecimal, as the archive's comment:
the last 64 bytes. Anything else in the file, or one bit changed, is a ``ModelError``.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apsvm.data.rows import Rows
from apsvm.files import standard_input, write_whole

SCHEMA = 1
_MEMBERS = ("header.npy", "coef.npy")
_DIGEST_LENGTH = 64
_NEEDED: dict[str, type | tuple[type, ...]] = {
    "schema": int,
    "loss": str,
    "width": int,
    "zero_based": bool,
    "intercept": (int, float),
    "positive_label": (int, float, type(None)),
}


class ModelError(ValueError):
    """A file that is not a whole, undamaged apsvm model; the message names the file and what is wrong."""


@dataclass(frozen=True, slots=True)
class LinearRanker:
    """score(x) = coef·x + intercept; the higher, the more relevant.

    coef : (width,) float64; column j belongs to file index j, or j + 1 if not ``zero_based``
    intercept : float, the constant; it moves every score alike, so no ranking depends on it
    header : JSON values that describe the training (loss, oracle, C, certificate, data …)
    """

    coef: NDArray[np.float64]
    intercept: float
    header: Mapping[str, Any]

    @property
    def width(self) -> int:
        """Number of features."""
        return self.coef.size

    @property
    def zero_based(self) -> bool:
        """Whether the training file counted features from 0."""
        return bool(self.header["zero_based"])

    @property
    def positive_label(self) -> float | None:
        """The label taken as positive in training, or None where labels were +1 against −1 or 0."""
        label = self.header["positive_label"]
        return None if label is None else float(label)

    @property
    def relevant_from(self) -> float | None:
        """The grade from which rows were positive in training, if it was one."""
        grade = self.header.get("relevant_from")
        return None if grade is None else float(grade)

    def score(self, X: Any, *, threads: int = 1) -> NDArray[np.float64]:
        """Scores of the rows of X, (n, width) CSR or dense: (n,) float64.

        Raises
        ------
        ValueError : X is not (n, width)
        """
        shape = np.shape(X)
        if len(shape) != 2 or shape[1] != self.width:
            raise ValueError(f"expected X of shape (n, {self.width}), found {shape}")
        return Rows(X, threads=threads).scores(self.coef) + self.intercept

    def to_bytes(self) -> bytes:
        """The content of the model's file; the same model always gives the same bytes."""
        header = {**self.header, "schema": SCHEMA, "width": self.width, "intercept": self.intercept}
        text = json.dumps(header, allow_nan=False, sort_keys=True, indent=1)
        arrays = {
            "header.npy": np.frombuffer(text.encode(), dtype=np.uint8),
            "coef.npy": self.coef.astype("<f8", copy=False),
        }
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
            for name in _MEMBERS:
                member = io.BytesIO()
                np.lib.format.write_array(member, arrays[name], version=(1, 0), allow_pickle=False)
                archive.writestr(zipfile.ZipInfo(name), member.getvalue())
            archive.comment = b"0" * _DIGEST_LENGTH
        content = buffer.getvalue()[:-_DIGEST_LENGTH]
        return content + hashlib.sha256(content).hexdigest().encode()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model whole or not at all (OSError); ``-`` is standard output."""
        write_whole(path, self.to_bytes())


def load_model(path: str | os.PathLike[str]) -> LinearRanker:
    """Reads a model (``-``: from standard input); never executes code.

    Raises
    ------
    OSError : the file cannot be read
    ModelError : it is not a whole, undamaged model of a schema this version knows
    """
    name = os.fspath(path)
    shown = "<stdin>" if name == "-" else name
    with nullcontext(standard_input()) if name == "-" else open(path, "rb") as stream:
        start = stream.read(4)
        # Do not read gigabytes of something else.
        if start != b"PK\x03\x04":
            raise ModelError(f"{shown}: not an apsvm model (no zip archive)")
        content = start + stream.read()
    try:
        return _parse(content)
    except ModelError as error:
        raise ModelError(f"{shown}: {error}") from None


def _parse(content: bytes) -> LinearRanker:
    if hashlib.sha256(content[:-_DIGEST_LENGTH]).hexdigest().encode() != content[-_DIGEST_LENGTH:]:
        raise ModelError("damaged or not an apsvm model: the checksum at its end does not match its content")
    # From here on the file is as its writer made it; the writer may still not have been this program.
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            infos = archive.infolist()
            if tuple(info.filename for info in infos) != _MEMBERS:
                raise ModelError(f"expected the members {', '.join(_MEMBERS)}")
            if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
                raise ModelError("its members must be stored uncompressed")
            text, coef = (
                np.lib.format.read_array(io.BytesIO(archive.read(info)), allow_pickle=False) for info in infos
            )
        if text.dtype != np.uint8 or text.ndim != 1:
            raise ModelError("its header is not text")
        header = json.loads(text.tobytes(), parse_constant=_no_constant)
    except ModelError:
        raise
    except (zipfile.BadZipFile, ValueError, RuntimeError, EOFError, MemoryError) as error:
        raise ModelError(f"not an apsvm model ({error})") from None
    _check(header, coef)
    return LinearRanker(np.ascontiguousarray(coef, dtype=np.float64), float(header["intercept"]), header)


def _check(header: Any, coef: NDArray[Any]) -> None:
    if not isinstance(header, dict):
        raise ModelError("its header is not a JSON object")
    if header.get("schema") != SCHEMA:
        raise ModelError(f"schema {header.get('schema')!r} is not known to this version of apsvm (it knows {SCHEMA})")
    for key, kinds in _NEEDED.items():
        if key not in header:
            raise ModelError(f"its header lacks {key!r}")
        value = header[key]
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise ModelError(f"its header's {key!r} is {value!r}")
    if not isinstance(header.get("relevant_from"), int | float | None):
        raise ModelError(f"its header's 'relevant_from' is {header['relevant_from']!r}")
    if not math.isfinite(header["intercept"]):
        raise ModelError("its constant is not finite")
    if coef.dtype != np.dtype("<f8") or coef.shape != (header["width"],):
        raise ModelError(f"expected {header['width']} float64 weights, found {coef.dtype} of shape {coef.shape}")
    if not np.isfinite(coef).all():
        raise ModelError("a weight is not finite")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} in its header")
