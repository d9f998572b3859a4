"""Generated lists of scores for training sorters (the paper's §3.1.2, as its authors' program draws them).

Ten types have equal chance; three of them are one distribution and two another, which leaves seven kinds. A separate
generator draws on the CPU, so that a seed gives the same lists on every device.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Generator, Tensor

Draw = Callable[[Generator, int, int], Tensor]


def _uniform(generator: Generator, lists: int, length: int) -> Tensor:
    """U[−1, 1]."""
    return 2 * torch.rand(lists, length, generator=generator) - 1


def _normal(generator: Generator, lists: int, length: int) -> Tensor:
    """N(0, 1)."""
    return torch.randn(lists, length, generator=generator)


def _spaced(generator: Generator, lists: int, length: int, count: Tensor | int) -> Tensor:
    """a + (b − a) i / count, i = 0, 1, …, where a, b ~ U[0, 1]."""
    a, b = torch.rand(2, lists, 1, generator=generator)
    return a + (b - a) * torch.arange(length) / count


def _spaced_in_order(generator: Generator, lists: int, length: int) -> Tensor:
    """A random sub-range of [0, 1], evenly spaced, rising or falling."""
    return _spaced(generator, lists, length, length)


def _spaced_shuffled(generator: Generator, lists: int, length: int) -> Tensor:
    """The same in random order."""
    scores = _spaced(generator, lists, length, length)
    return scores.gather(1, torch.rand(lists, length, generator=generator).argsort(dim=1))


def _left(generator: Generator, lists: int, length: int) -> tuple[Tensor, Tensor]:
    """Size of each list's left part, (lists, 1), uniform in 1 … L, and the mask (lists, L) of its places."""
    size = torch.randint(1, length + 1, (lists, 1), generator=generator)
    return size, torch.arange(length) < size


def _uniform_then_normal(generator: Generator, lists: int, length: int) -> Tensor:
    """Left part U[−1, 1], right part N(0, 1)."""
    _, is_left = _left(generator, lists, length)
    return torch.where(is_left, _uniform(generator, lists, length), _normal(generator, lists, length))


def _spaced_then_uniform(generator: Generator, lists: int, length: int) -> Tensor:
    """Left part a shuffled evenly spaced sub-range, right part U[−1, 1]."""
    size, is_left = _left(generator, lists, length)
    spaced = _spaced(generator, lists, length, size)
    # Random order within the left part, followed by the right part.
    order = torch.rand(lists, length, generator=generator).masked_fill(~is_left, 2.0).argsort(dim=1)
    return torch.where(is_left, spaced.gather(1, order), _uniform(generator, lists, length))


def _whole_range(generator: Generator, lists: int, length: int) -> Tensor:
    """−1 + 2 i / L in order: always the same list."""
    return (-1 + 2 * torch.arange(length) / length).expand(lists, length)


class Kind(NamedTuple):
    """share : number of the ten types; draw : generator, n, L → (n, L) float32"""

    share: int
    draw: Draw


KINDS: Mapping[str, Kind] = {
    "uniform": Kind(3, _uniform),
    "normal": Kind(1, _normal),
    "spaced": Kind(1, _spaced_in_order),
    "shuffled": Kind(1, _spaced_shuffled),
    "uniform|normal": Kind(2, _uniform_then_normal),
    "shuffled|uniform": Kind(1, _spaced_then_uniform),
    "range": Kind(1, _whole_range),
}
#: Kind of each of the ten types, as an index of ``KINDS``.
_KIND_OF_TYPE = [at for at, kind in enumerate(KINDS.values()) for _ in range(kind.share)]


def seeded(purpose: str, *numbers: int) -> Generator:
    """A generator on the CPU, different for each purpose and sequence of numbers, such as a seed and a step."""
    digest = hashlib.sha256(repr((purpose, *numbers)).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "little"))


def draw_lists(generator: Generator, lists: int, length: int) -> tuple[Tensor, Tensor]:
    """Lists of all kinds, mixed.

    Returns
    -------
    scores : (lists, length) float32, on the CPU
    kinds : (lists,) int64, index in ``KINDS`` of each list's kind
    """
    kinds = torch.tensor(_KIND_OF_TYPE)[torch.randint(len(_KIND_OF_TYPE), (lists,), generator=generator)]
    scores = torch.empty(lists, length)
    for at, kind in enumerate(KINDS.values()):
        rows = (kinds == at).nonzero().squeeze(1)
        scores[rows] = kind.draw(generator, len(rows), length)
    return scores, kinds
