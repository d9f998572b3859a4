"""The file of a model: a header and arrays, in a container that cannot run code and shows any damage.

It is an uncompressed ``.npz``, which ``numpy.load`` reads. The first member is ``header.npy``, UTF-8 JSON as uint8; the
others are the model's arrays, little-endian (``coef.npy``, float64, for a linear ranker). The archive's comment, the
last 64 bytes, is the SHA-256 of all bytes before it, in hexadecimal. Any other content, or one changed bit, is a
``ModelError``.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from apsvm._support.errors import ModelError as ModelError
from apsvm._support.types import JsonObject

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray

#: The first bytes of every such file.
MAGIC = b"PK\x03\x04"

#: Maximum depth of nested lists and objects in a header.
MOST_DEPTH = 100
TOO_DEEP = f"its header nests lists and objects more than {MOST_DEPTH} deep"

_HEADER = "header.npy"
_NPY_MAGIC = b"\x93NUMPY\x01\x00"
_NPY_HEADER = re.compile(
    rb"\{'descr': '(?P<dtype>[<|](?:b1|[iu][1248]|f[248]))', 'fortran_order': (?P<fortran>True|False), "
    rb"'shape': \((?P<shape>|[0-9]{1,18},|[0-9]{1,18}(?:, [0-9]{1,18}){1,30})\), \} *\n"
)
_DIGEST_LENGTH = 64


def member_names(arrays: Iterable[str]) -> list[str]:
    """Member names of the archive that holds these arrays."""
    return [_HEADER, *(f"{name}.npy" for name in arrays)]


def sealed(header: JsonObject, arrays: Mapping[str, AnyArray]) -> bytes:
    """Content of a file; equal headers and arrays give equal bytes."""
    text = json.dumps(header, allow_nan=False, sort_keys=True, indent=1)
    parts = [np.frombuffer(text.encode(), dtype=np.uint8), *arrays.values()]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in zip(member_names(arrays), parts, strict=True):
            member = io.BytesIO()
            np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(name), member.getvalue())
        archive.comment = b"0" * _DIGEST_LENGTH
    content = buffer.getvalue()[:-_DIGEST_LENGTH]
    return content + hashlib.sha256(content).hexdigest().encode()


def unsealed(content: bytes) -> tuple[Any, dict[str, AnyArray]]:
    """The header and the arrays by name, from the content that ``sealed`` made. Raises ModelError."""
    if hashlib.sha256(content[:-_DIGEST_LENGTH]).hexdigest().encode() != content[-_DIGEST_LENGTH:]:
        raise ModelError("damaged or not an apsvm model: the checksum at its end does not match its content")
    # The file is undamaged, but another program may have written it.
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            infos = archive.infolist()
            if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
                raise ModelError("its members must be stored uncompressed")
            names = [info.filename for info in infos]
            if names[:1] != [_HEADER]:
                raise ModelError(f"expected the members {_HEADER} and the model's arrays, found {', '.join(names)}")
            text, *arrays = (_array(archive.read(info)) for info in infos)
        if text.dtype != np.uint8 or text.ndim != 1:
            raise ModelError("its header is not text")
        header = json.loads(text.tobytes(), parse_constant=_no_constant)
        _check_depth(header)
    except ModelError:
        raise
    except RecursionError:  # JSON nested too deep for the parser
        raise ModelError(TOO_DEEP) from None
    except (zipfile.BadZipFile, ValueError, RuntimeError, EOFError, MemoryError) as error:
        raise ModelError(f"not an apsvm model ({error})") from None
    stems = [name.removesuffix(".npy") for name in names[1:]]
    if member_names(stems) != names or len(set(stems)) < len(stems):
        raise ModelError(f"expected the members {_HEADER} and the model's arrays, found {', '.join(names)}")
    return header, dict(zip(stems, arrays, strict=True))


def _array(content: bytes) -> AnyArray:
    """Array of a member written by ``sealed``; ValueError for any other. numpy's own reader trusts the sizes in a
    header, and raises various errors or warns if it is damaged."""
    start = len(_NPY_MAGIC) + 2
    end = start + int.from_bytes(content[len(_NPY_MAGIC) : start], "little")
    match = _NPY_HEADER.fullmatch(content[start:end])
    if not content.startswith(_NPY_MAGIC) or match is None:
        raise ValueError("a member is not an array")
    dtype, is_fortran = np.dtype(match["dtype"].decode()), match["fortran"] == b"True"
    shape = tuple(int(side) for side in match["shape"].split(b",") if side.strip())
    if math.prod(shape) * dtype.itemsize != len(content) - end:
        raise ValueError(f"a member has {len(content) - end} bytes, expected {math.prod(shape)} of {dtype}")
    array = np.frombuffer(content, dtype, offset=end).copy()
    return array.reshape(shape, order="F" if is_fortran else "C")


def _check_depth(value: object) -> None:
    """Raises ModelError if lists and objects are nested more than ``MOST_DEPTH`` deep."""
    level = [value]
    for _ in range(MOST_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer if isinstance(outer, list) else ())
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise ModelError(TOO_DEEP)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} in its header")
