"""Bytes made of other bytes, by a seed: what ``scripts/dev/fuzz`` gives to readers."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

#: Numbers at the edges of types, and what only looks like one.
NUMBERS = (
    b"0", b"-0", b"1", b"-1", b"127", b"128", b"255", b"256", b"65535", b"65536", b"2147483647", b"2147483648",
    b"-2147483648", b"4294967296", b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809",
    b"18446744073709551616", b"1e308", b"-1e308", b"1e309", b"1e-320", b"5e-324", b"0.1", b".5", b"5.", b"1e", b"nan",
    b"inf", b"-inf", b"Infinity", b"0x10", b"1_000", b"+1", b"--1", b"1e999999999", b"0" * 400 + b"1", b"9" * 400,
)  # fmt: skip
#: Characters with a meaning in one of the formats.
WORDS = (
    b"\n", b"\r", b"\r\n", b"\t", b" ", b"  ", b",", b";", b":", b"#", b'"', b'""', b"'", b"\\", b"\x00", b"\xff",
    b"\xef\xbb\xbf", b"\xff\xfe", b"{", b"}", b"[", b"]", b"<", b">", b"/", b"&", b"=", b"qid:", b"cost:", b"bag:",
    b"1:1", b"\x1f\x8b", b"PK\x03\x04", b"BZh9", b"\xfd7zXZ\x00", b"\x93NUMPY", b"null", b"true", b"NaN", b"\xc3\xa9",
    b"\xe2\x80\xae", b"\x1b[2J", b"\xed\xa0\x80",
)  # fmt: skip

_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?")


def mutated(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """``data`` with one to four changes: of bits, bytes, numbers, words, lines, ranges, or to the end of another."""
    result = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4))):
        result = _changed(result, chance, others)
    return bytes(result)


def _changed(data: bytearray, chance: random.Random, others: Sequence[bytes]) -> bytearray:
    if not data:
        return bytearray(chance.choice((b"", *WORDS, *others)))
    at = chance.randrange(len(data))
    end = min(len(data), at + chance.choice((1, 1, 2, 4, 16, 200)))
    kind = chance.randrange(10)
    if kind == 0:
        data[at] ^= 1 << chance.randrange(8)
    elif kind == 1:
        data[at] = chance.choice((0, 1, 9, 10, 13, 32, 34, 44, 45, 46, 48, 57, 58, 127, 128, 255))
    elif kind == 2:
        del data[at:end]
    elif kind == 3:
        data[at:at] = data[at:end] * chance.choice((1, 2, 50))
    elif kind == 4:
        data[at:at] = chance.choice(WORDS)
    elif kind == 5:
        return data[:at]
    elif kind == 6:
        return data[:at] + bytearray(chance.choice(others)[chance.randrange(40) :])
    elif kind == 7:
        lines = data.split(b"\n")
        i, j = chance.randrange(len(lines)), chance.randrange(len(lines))
        lines[i], lines[j] = lines[j], lines[i]
        return bytearray(b"\n".join(lines))
    else:
        numbers = list(_NUMBER.finditer(data))
        if numbers:
            number = chance.choice(numbers)
            data[number.start() : number.end()] = chance.choice(NUMBERS)
    return data
