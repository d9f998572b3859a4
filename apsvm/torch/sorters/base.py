"""Base class of sorters: modules that map the scores of lists to approximate ranks, with a gradient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import torch
from torch import Generator, Tensor, nn


class SorterError(ValueError):
    """A sorter that cannot be made, or lists of a wrong length; the message names the allowed values."""


class Sorter(nn.Module):
    """Approximates ``apsvm.torch.ranks.exact_ranks``: a callable (B, L) → (B, L).

    Subclasses define ``ranks`` and ``arguments``.

    Attributes
    ----------
    length : int, optional
        Length L of its lists; None: any.
    climb : float
        Spearman correlation that its gradient reaches (``quality``), from its file; NaN if not measured.
    is_untrained : bool
        True if the parameters are probably the initial ones: no ``SorterTraining`` took a step, and no caller loaded a
        state or froze the sorter.
    """

    #: Name in the registry, without a parameter.
    architecture: ClassVar[str]
    #: Type of the name's parameter: ``int`` for ``cnn(8)``, ``float`` for ``laplace(50)``; None without one.
    parameter: ClassVar[type[int] | type[float] | None] = None
    #: True if it accepts lists of one length only.
    fixed_length: ClassVar[bool] = True
    #: Shortest and longest list, for sorters of any length.
    lengths: ClassVar[range] = range(1, 1 << 62)
    #: True if it has parameters to train.
    trained: ClassVar[bool] = True
    #: Adam's default initial step length.
    pace: ClassVar[float] = 1e-3

    def __init__(self, length: int | None = None) -> None:
        super().__init__()
        if self.fixed_length and length is None:
            raise SorterError(f"sorter {self.architecture!r} takes lists of one length: pass length")
        self.length = length if self.fixed_length else None
        self.climb = torch.nan
        self.is_untrained = self.trained
        self._is_frozen = False

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Same as ``Module.load_state_dict``; the sorter counts as trained."""
        self.is_untrained = False
        return super().load_state_dict(state_dict, strict, assign)

    def freeze(self) -> Self:
        """Freezes the sorter for evaluation: batch normalisation uses its statistics even after ``train()``, and the
        parameters have no gradient. Scores still have one."""
        self._is_frozen, self.is_untrained = True, False
        return self.requires_grad_(False).eval()

    def train(self, mode: bool = True) -> Self:
        super().train(mode and not self._is_frozen)
        for module in self.modules():
            if isinstance(module, nn.RNNBase):
                # cuDNN computes the gradient of LSTMs in training mode only; without dropout nothing else depends on
                # the mode.
                module.training = True
        return self

    def arguments(self) -> Mapping[str, int | float]:
        """Constructor arguments besides the length: JSON numbers by name."""
        return {}

    @property
    def name(self) -> str:
        """Name for ``make_sorter``."""
        values = [f"{value:.17g}" for value in self.arguments().values()]
        return self.architecture + (f"({values[0]})" if values else "")

    def ranks(self, scores: Tensor) -> Tensor:
        """(B, L) scores → (B, L) approximate ranks."""
        raise NotImplementedError

    @classmethod
    def check_length(cls, length: int) -> None:
        """Raises SorterError for a length at which there are no ranks to learn."""
        if length not in cls.lengths:
            raise SorterError(
                f"sorter {cls.architecture!r} takes lists of {cls.lengths[0]} to {cls.lengths[-1]:,} scores, found "
                f"{length:,}; 'handcrafted(10)' and 'laplace(10)' take any number"
            )

    def error(self, scores: Tensor, ranks: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
        """Training error on generated lists with their exact ranks, and L1. By default the two are the same."""
        l1 = (self(scores) - ranks).abs().mean()
        return l1, l1

    def forward(self, scores: Tensor) -> Tensor:
        """Approximate normalised ranks of each row: about 1/L at the largest score, about 1 at the smallest.

        Parameters
        ----------
        scores : Tensor
            (B, L) floating.

        Raises
        ------
        SorterError
            Scores are not floating or not two-dimensional, or have a length that the sorter does not accept.
        """
        if scores.ndim != 2 or not scores.is_floating_point():
            raise SorterError(
                f"sorter {self.architecture!r} takes floating scores (B, L), found {tuple(scores.shape)} {scores.dtype}"
            )
        if self.length is not None and scores.shape[1] != self.length:
            raise SorterError(
                f"sorter {self.architecture!r} was made for lists of {self.length}, found {scores.shape[1]}"
            )
        if not scores.numel():
            return scores * 1.0
        return self.ranks(scores)
