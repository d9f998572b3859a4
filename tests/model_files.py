"""Model files put together by hand."""

from __future__ import annotations

import hashlib
import io
import json
import os
import typing
import zipfile

import numpy as np

from apsvm.models.header import Header

HEADER = Header(family="structured-svm", loss="ap", C=1.0)


def sealed(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """A file whose checksum is right, whatever is in it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.comment = b"0" * 64
    content = buffer.getvalue()[:-64]
    return content + hashlib.sha256(content).hexdigest().encode()


def array_bytes(array: np.ndarray, *, allow_pickle: bool = False) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=allow_pickle)
    return buffer.getvalue()


def text(header: object) -> bytes:
    return array_bytes(np.frombuffer(json.dumps(header).encode(), dtype=np.uint8))


GOOD = {**HEADER.to_json(), "width": 2, "intercept": 0.0}
WEIGHTS = array_bytes(np.array([1.0, 2.0]))


class Bomb:
    def __reduce__(self):
        return (os.mkdir, ("executed",))


def replaced(content: typing.Any, path: tuple[str, ...], value: typing.Any) -> typing.Any:
    """A copy of JSON with another value in one place."""
    if not path:
        return value
    if isinstance(content, list):
        return [replaced(item, path[1:], value) if at == path[0] else item for at, item in enumerate(content)]
    return {**content, path[0]: replaced(content[path[0]], path[1:], value)}
