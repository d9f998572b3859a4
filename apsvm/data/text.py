"""The text of a file, a stream or standard input, plain or compressed, block by block.

What it is compressed by shows in its first bytes, never in its name.
"""

from __future__ import annotations

import bz2
import codecs
import io
import itertools
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Protocol

from apsvm._support.files import standard_input
from apsvm.data.dataset import DataError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_BLOCK = 2 << 20  # bytes


class _Decoder(Protocol):
    """Common interface of the standard library's three decompressors."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class _Compression:
    name: str
    magic: bytes
    decoder: Callable[[], _Decoder]
    nul_padding: bool  # the format's own tools accept NUL bytes behind a stream


_COMPRESSIONS = (
    _Compression("gzip", b"\x1f\x8b", lambda: zlib.decompressobj(wbits=31), nul_padding=True),
    _Compression("bzip2", b"BZh", bz2.BZ2Decompressor, nul_padding=False),
    _Compression("xz", b"\xfd7zXZ\0", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), nul_padding=True),
)
_ZSTD, _ZIP = b"\x28\xb5\x2f\xfd", b"PK\x03\x04"
_LONGEST_MAGIC = 6
#: What begins so is no plain text.
COMPRESSED = (*(compression.magic for compression in _COMPRESSIONS), _ZSTD, _ZIP)


def read_text(source: str | os.PathLike[str]) -> tuple[str, bytes]:
    """The name for messages and the whole text, decompressed, of a path or "-". Raises DataError, OSError."""
    with text_blocks(source) as (name, blocks):
        return name, b"".join(blocks)


@contextmanager
def text_blocks(
    source: str | os.PathLike[str] | BinaryIO, see: Callable[[bytes], object] = len
) -> Iterator[tuple[str, Iterator[bytes]]]:
    """The name for messages, and the text in blocks, decompressed, without the byte-order mark of UTF-8 that it may
    begin with; the bytes as they are stored are shown to ``see``. Raises DataError, OSError."""
    name, opened = opened_binary(source)
    with opened as stream:
        yield name, _without_mark(decompressed(blocks_of(stream, _BLOCK, see), _BLOCK, name))


def _without_mark(blocks: Iterator[bytes]) -> Iterator[bytes]:
    head = b""
    for block in blocks:
        head += block
        if len(head) >= len(codecs.BOM_UTF8):
            break
    yield head.removeprefix(codecs.BOM_UTF8)
    yield from blocks


class BlockStream(io.RawIOBase):
    """Blocks of bytes, such as the rest of a pipe, as a stream that can be read once."""

    def __init__(self, blocks: Iterator[bytes], name: str) -> None:
        self._blocks, self.name = blocks, name
        self._block = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        while not self._block:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._block = memoryview(block)
        size = min(len(self._block), memoryview(buffer).nbytes)
        memoryview(buffer)[:size] = self._block[:size]
        self._block = self._block[size:]
        return size


def opened_binary(source: str | os.PathLike[str] | BinaryIO) -> tuple[str, BinaryIO | nullcontext[BinaryIO]]:
    """The name for messages, and a context that gives the stream and closes it if it is ours. Raises OSError."""
    if source == "-":
        return "<stdin>", nullcontext(standard_input())
    if isinstance(source, str | os.PathLike):
        return os.fspath(source), open(source, "rb")
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<stream>", nullcontext(source)


def blocks_of(stream: BinaryIO, size: int, see: Callable[[bytes], object]) -> Iterator[bytes]:
    """The bytes of the stream up to its end in blocks of at most `size`, each shown to `see`."""
    while True:
        block = stream.read(size)
        if not isinstance(block, bytes):
            raise TypeError(f"expected a blocking stream opened in binary mode, found one that reads {type(block)}")
        if not block:
            return
        see(block)
        yield block


def decompressed(blocks: Iterator[bytes], size: int, name: str) -> Iterator[bytes]:
    """The text in the blocks, whether compressed or not, in blocks of at most about `size`. Raises DataError."""
    head = b""
    for block in blocks:  # a pipe may give fewer bytes at a time than the magic has
        head += block
        if len(head) >= _LONGEST_MAGIC:
            break
    if head.startswith((_ZIP, _ZSTD)):
        packed = io.BytesIO(head + b"".join(blocks))
        return _of_zip(packed, size, name) if head.startswith(_ZIP) else _of_zstd(packed, size, name)
    blocks = itertools.chain(iter((head,)), blocks)  # an iterator lets go of the block, a tuple would keep it
    for compression in _COMPRESSIONS:
        if head.startswith(compression.magic):
            return _members(blocks, compression, size, name)
    return blocks


def _of_zip(packed: io.BytesIO, size: int, name: str) -> Iterator[bytes]:
    """The text of the only file of an archive. Raises DataError."""
    try:
        with zipfile.ZipFile(packed) as archive:
            files = [member for member in archive.infolist() if not member.filename.endswith("/")]
            if len(files) != 1:
                names = ", ".join(member.filename for member in files[:8]) + ", …" * (len(files) > 8)
                raise DataError(f"{name}: a zip archive of one file is read, and this has {len(files)}: {names}")
            with archive.open(files[0]) as stream:
                yield b""
                while block := stream.read(size):
                    yield block
    except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, EOFError, OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{name}: the zip archive cannot be unpacked ({error})") from None


def _of_zstd(packed: io.BytesIO, size: int, name: str) -> Iterator[bytes]:
    """The text of zstd data. Raises DataError."""
    import pyarrow

    try:
        with pyarrow.CompressedInputStream(pyarrow.PythonFile(packed, mode="r"), "zstd") as stream:
            yield b""
            while block := stream.read(size):
                yield block
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(f"{name}: the zstd data are corrupt ({error})") from None


def _members(blocks: Iterator[bytes], compression: _Compression, size: int, name: str) -> Iterator[bytes]:
    """The text of all streams that stand one behind the other in the blocks. Raises DataError.

    Python's own file classes ignore what follows a complete stream; here only further streams may.
    """
    decoder: _Decoder | None = None
    is_first = True
    for block in blocks:
        data = block
        while data:
            if decoder is None:
                if not is_first:
                    if compression.nul_padding and not (data := data.lstrip(b"\0")):
                        break
                    magic = compression.magic
                    if data[: len(magic)] != magic[: len(data)]:
                        raise DataError(f"{name}: unexpected bytes behind the end of the {compression.name} data")
                decoder = compression.decoder()
                is_first = False
            while True:
                try:
                    text = decoder.decompress(data, size)
                except (zlib.error, OSError, lzma.LZMAError) as error:
                    raise DataError(f"{name}: the {compression.name} data are corrupt ({error})") from error
                yield text
                if decoder.eof:
                    data = decoder.unused_data
                    decoder = None
                    break
                data = getattr(decoder, "unconsumed_tail", b"")
                if not data and len(text) < size:
                    break
    if decoder is not None:
        raise DataError(f"{name}: the {compression.name} data end too early: the file is cut off")
