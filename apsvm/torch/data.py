"""Batches that a ranking loss can learn from: where positives are rare, a random batch has none, and says nothing."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.utils.data import Sampler


class StratifiedBatchSampler(Sampler[list[int]]):
    """Batches of one size with the same number of positives in each, for ``DataLoader(…, batch_sampler=…)``.

    An epoch has as many batches as it takes for every row to come up; the class that is through earlier starts again,
    shuffled anew, so that no batch is short and no class is shown a row twice before all others.

    Parameters
    ----------
    target : ArrayLike or Tensor
        (n,) bool or numbers, of which those above 0 are positive; a tensor or what makes one.
    batch_size : int
        Rows of a batch.
    n_pos : int, optional
        Positives of a batch.
    share : float, optional
        In place of ``n_pos`` the positives' share of a batch, 0..1, rounded, at least one and not all. Without either
        the share that they have.
    generator : torch.Generator, optional
        Of the shuffling; None: torch's own.

    Raises
    ------
    ValueError
        ``n_pos`` and ``share`` both; numbers that leave a class no row in a batch; a target of one class.

    Examples
    --------
    >>> batches = StratifiedBatchSampler(torch.tensor([1] * 2 + [0] * 9), batch_size=4, n_pos=1)
    >>> len(batches), [sum(row < 2 for row in batch) for batch in batches]
    (3, [1, 1, 1])
    """

    def __init__(
        self,
        target: ArrayLike | Tensor,
        batch_size: int,
        *,
        n_pos: int | None = None,
        share: float | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        target = torch.as_tensor(target)
        if target.ndim != 1:
            raise ValueError(f"target must be (n,), found {tuple(target.shape)}")
        positive = target > 0
        self._positives = positive.nonzero().squeeze(1)
        self._negatives = (~positive).nonzero().squeeze(1)
        if not (self._positives.numel() and self._negatives.numel()):
            raise ValueError(
                f"target must have both classes, found {self._positives.numel()} positives and "
                f"{self._negatives.numel()} negatives"
            )
        if n_pos is not None and share is not None:
            raise ValueError("give n_pos or share, not both")
        if n_pos is None:
            share = self._positives.numel() / target.numel() if share is None else share
            if not 0.0 <= share <= 1.0:
                raise ValueError(f"share must be from 0 to 1, found {share!r}")
            n_pos = min(max(1, round(share * batch_size)), batch_size - 1)
        if not 0 < n_pos < batch_size:
            raise ValueError(f"a batch needs rows of both classes, found {n_pos} positives of {batch_size} rows")
        self.batch_size = batch_size
        self.n_pos = n_pos
        self._generator = generator

    def __len__(self) -> int:
        sizes = (self._positives, self.n_pos), (self._negatives, self.batch_size - self.n_pos)
        return max(-(-rows.numel() // size) for rows, size in sizes)

    def __iter__(self) -> Iterator[list[int]]:
        n_neg = self.batch_size - self.n_pos
        positives, negatives = self._shuffled(self._positives), self._shuffled(self._negatives)
        for _ in range(len(self)):
            yield [next(positives) for _ in range(self.n_pos)] + [next(negatives) for _ in range(n_neg)]

    def _shuffled(self, rows: Tensor) -> Iterator[int]:
        while True:
            yield from rows[torch.randperm(rows.numel(), generator=self._generator)].tolist()
