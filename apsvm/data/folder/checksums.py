"""Checksums of a data folder's members: SHA-256 of the whole, and of a large one the CRC-32 of each block, so that some
can be looked at where all would take too long. Which blocks is drawn anew each time: whoever opens a damaged folder
often enough learns of it."""

from __future__ import annotations

import hashlib
import random
import zlib
from pathlib import Path

from apsvm._support.types import JsonDict
from apsvm.data.dataset import DataError
from apsvm.data.folder.header import Member

#: Bytes of a block, the last one's but for.
BLOCK = 1 << 24
#: Members up to so many bytes are checked whole whenever they are opened; of larger ones so many blocks.
SMALL = 1 << 28
_BLOCKS_LOOKED_AT = 8


class Checksums:
    """Of what is written to a file, piece by piece."""

    def __init__(self) -> None:
        self.size = 0
        self._digest = hashlib.sha256()
        self._blocks = [0]
        self._left = BLOCK  # bytes that the last block lacks

    def update(self, data: bytes | memoryview) -> None:
        view = memoryview(data).cast("B")
        self.size += view.nbytes
        self._digest.update(view)
        while view.nbytes:
            if self._left == 0:
                self._blocks.append(0)
                self._left = BLOCK
            part = view[: self._left]
            self._blocks[-1] = zlib.crc32(part, self._blocks[-1])
            self._left -= part.nbytes
            view = view[part.nbytes :]

    def member(self) -> JsonDict:
        """What the header says of the file."""
        result: JsonDict = {"size": self.size, "sha256": self._digest.hexdigest()}
        if self.size > SMALL:
            result["blocks"] = "".join(f"{block:08x}" for block in self._blocks)
        return result


def verify_member(path: Path, member: Member, *, whole: bool) -> None:
    """Raises DataError if the file is not what the header says, as far as is looked: all of it where that is asked for,
    or where it is small; some blocks of a large one. OSError."""
    if whole or member.size <= SMALL:
        with path.open("rb") as stream:
            result = hashlib.file_digest(stream, "sha256").hexdigest()
        if result != member.sha256:
            raise DataError(f"{path}: damaged: its sha256 is {result}, expected {member.sha256}")
    elif member.blocks is not None:
        if len(member.blocks) != -(-member.size // BLOCK):
            raise DataError(f"{path}: damaged: its header has checksums of {len(member.blocks)} blocks")
        with path.open("rb") as stream:
            for block in sorted(random.sample(range(len(member.blocks)), min(_BLOCKS_LOOKED_AT, len(member.blocks)))):
                stream.seek(block * BLOCK)
                if zlib.crc32(stream.read(BLOCK)) != member.blocks[block]:
                    end = min((block + 1) * BLOCK, member.size)
                    raise DataError(f"{path}: damaged: bytes {block * BLOCK} to {end - 1} are not what was written")
