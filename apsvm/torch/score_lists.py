"""Generated lists of scores for training sorters (the paper's §3.1.2, as its authors' program draws them).

Ten types have equal chance; three of them are one distribution and two another. A separate generator draws on the CPU,
so that a seed gives the same lists on every device.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

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


#: The distributions of the ten types: generator, n, L → (n, L) float32.
TYPES: tuple[Draw, ...] = (
    _uniform, _uniform, _uniform, _normal, _spaced_in_order, _spaced_shuffled, _uniform_then_normal,
    _uniform_then_normal, _spaced_then_uniform, _whole_range,
)  # fmt: skip


def seeded(purpose: str, *numbers: int) -> Generator:
    """A generator on the CPU, different for each purpose and sequence of numbers, such as a seed and a step."""
    digest = hashlib.sha256(repr((purpose, *numbers)).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "little"))


def draw_lists(generator: Generator, lists: int, length: int) -> Tensor:
    """(lists, length) float32 on the CPU: lists of all types, mixed."""
    draws = list(dict.fromkeys(TYPES))
    numbers = torch.tensor([draws.index(draw) for draw in TYPES])
    number = numbers[torch.randint(len(TYPES), (lists,), generator=generator)]
    scores = torch.empty(lists, length)
    for at, draw in enumerate(draws):
        rows = (number == at).nonzero().squeeze(1)
        scores[rows] = draw(generator, len(rows), length)
    return scores
