"""The text of a file, a stream or standard input, plain or compressed, block by block.

The first bytes show the compression. The file's name does not count.
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


#: First bytes → the format's name, and its decoder.
_DECODERS: dict[bytes, tuple[str, Callable[[], _Decoder]]] = {
    b"\x1f\x8b": ("gzip", lambda: zlib.decompressobj(wbits=31)),
    b"BZh": ("bzip2", bz2.BZ2Decompressor),
    b"\xfd7zXZ\0": ("xz", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ)),
}
_ZSTD, _ZIP = b"\x28\xb5\x2f\xfd", b"PK\x03\x04"
_LONGEST_MAGIC = 6
#: Folder in which macOS's archives keep attributes of files.
_OF_MACOS = "__MACOSX/"
#: First bytes of compressed text.
COMPRESSED = (*_DECODERS, _ZSTD, _ZIP)


def read_text(source: str | os.PathLike[str]) -> tuple[str, bytes]:
    """The name in messages, and the whole text, decompressed, of a path or "-". Raises DataError, OSError."""
    with text_blocks(source) as (name, blocks):
        return name, b"".join(blocks)


@contextmanager
def text_blocks(
    source: str | os.PathLike[str] | BinaryIO, see: Callable[[bytes], object] = len
) -> Iterator[tuple[str, Iterator[bytes]]]:
    """The name in messages, and the text in blocks, decompressed and without a byte order mark of UTF-8. ``see``
    receives the stored bytes. Raises DataError, OSError."""
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
    """Blocks of bytes as a stream that can be read once."""

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
    """The name in messages, and a context with the stream, which it closes if it opened it. Raises OSError."""
    if source == "-":
        return "<stdin>", nullcontext(standard_input())
    if isinstance(source, str | os.PathLike):
        return os.fspath(source), open(source, "rb")
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<stream>", nullcontext(source)


def blocks_of(stream: BinaryIO, size: int, see: Callable[[bytes], object]) -> Iterator[bytes]:
    """The bytes of the stream in blocks of at most `size`. ``see`` receives each."""
    while True:
        block = stream.read(size)
        if not isinstance(block, bytes):
            raise TypeError(f"expected a blocking stream opened in binary mode, found one that reads {type(block)}")
        if not block:
            return
        see(block)
        yield block


def decompressed(blocks: Iterator[bytes], size: int, name: str) -> Iterator[bytes]:
    """The text in the blocks, decompressed if necessary, in blocks of about `size`. Raises DataError."""
    head = b""
    for block in blocks:  # a pipe may give fewer bytes than the magic has
        head += block
        if len(head) >= _LONGEST_MAGIC:
            break
    if head.startswith((_ZIP, _ZSTD)):
        packed = io.BytesIO(head + b"".join(blocks))
        return _of_zip(packed, size, name) if head.startswith(_ZIP) else _of_zstd(packed, size, name)
    blocks = itertools.chain(iter((head,)), blocks)  # a tuple would keep the block in memory
    for magic, (compression, decoder) in _DECODERS.items():
        if head.startswith(magic):
            return _unpacked(blocks, compression, decoder, size, name)
    return blocks


def _of_zip(packed: io.BytesIO, size: int, name: str) -> Iterator[bytes]:
    """The text of the only file in a zip archive. Raises DataError."""
    try:
        with zipfile.ZipFile(packed) as archive:
            files = [file for file in archive.namelist() if not (file.endswith("/") or file.startswith(_OF_MACOS))]
            if len(files) != 1:
                some = ", ".join(files[:8]) + ", …" * (len(files) > 8)
                raise DataError(f"{name}: expected a zip archive of one file, found {len(files)}: {some}")
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


def _unpacked(
    blocks: Iterator[bytes], compression: str, new_decoder: Callable[[], _Decoder], size: int, name: str
) -> Iterator[bytes]:
    """The text of all compressed streams in the blocks. Raises DataError.

    Python's own file classes ignore bytes behind a complete stream. Here only NUL bytes or another stream may follow.
    """
    decoder: _Decoder | None = None
    for block in blocks:
        data, is_full = block, False
        while data or is_full:
            if decoder is None:
                data = data.lstrip(b"\0")
                if not data:
                    break
                decoder = new_decoder()
            try:
                text = decoder.decompress(data, size)
            except (zlib.error, OSError, lzma.LZMAError) as error:
                raise DataError(f"{name}: the {compression} data are corrupt ({error})") from error
            yield text
            if decoder.eof:
                data, is_full, decoder = decoder.unused_data, False, None
            else:
                data, is_full = getattr(decoder, "unconsumed_tail", b""), len(text) == size
    if decoder is not None:
        raise DataError(f"{name}: the {compression} data end too early: the file is cut off")
