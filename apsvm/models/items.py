"""Scores of items for users: ``ItemFactors`` computes them, ``ItemRanker`` is the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm._support import sparse as sp
from apsvm._support.errors import require
from apsvm._support.types import JsonDict, Matrix
from apsvm.models.base import Model, ScoreError, check_shape, checked_scores
from apsvm.models.content import Content
from apsvm.models.header import Header

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray


@dataclass(frozen=True, slots=True, eq=False)
class ItemFactors:
    """Scores of items for users by the items that they like (WSABIE with two embeddings of the items):

        score(y) = bias_y + output_y · h,      h = mean of input_i over the liked items i other than y

    A user is a row, which training need not have seen: columns with positive values are liked items, columns with
    negative values disliked ones.
    """

    input: NDArray[np.float32]  #: (items, factors)
    output: NDArray[np.float32]  #: (items, factors)
    bias: NDArray[np.float32]  #: (items,)

    def score(self, X: Matrix) -> NDArray[np.float32]:
        """Scores of all items for each row of X, (n, items) CSR or dense: (n, items) float32, −inf for liked and
        disliked items.

        Raises
        ------
        ScoreError
            A score is not finite.
        ValueError
            X is not (n, items).
        """
        check_shape(X, self.bias.size)
        rows = sp.csr_array(X)
        liked = rows > 0
        users = liked.sum(axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            h = (liked @ self.input) / np.maximum(users, 1)[:, None]
            scores: NDArray[np.float32] = (h @ self.output.T + self.bias).astype(np.float32, copy=False)
        checked_scores(scores)
        scores[rows.nonzero()] = -np.inf
        return scores


@dataclass(frozen=True, slots=True, repr=False)
class ItemRanker(Model):
    """Ranks items for users. Row j of the factors is the item with index j in the file, or j + 1 if not
    ``zero_based``."""

    kind: ClassVar[str] = "item-factors"
    description: ClassVar[str] = "a ranker of items for users (--rows-as-users)"
    dtype: ClassVar[str] = "<f4"
    lists_items: ClassVar[bool] = True

    factors: ItemFactors
    header: Header

    @property
    def n_columns(self) -> int:
        """Number of items."""
        return self.factors.bias.size

    def score(self, X: Matrix, *, threads: int = 1) -> NDArray[np.float32]:
        """``ItemFactors.score``."""
        return self._scores(X, threads)

    def _scores(self, X: Matrix, threads: int) -> NDArray[np.float32]:
        return self.factors.score(X)

    def top(self, X: Matrix, k: int) -> list[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """For each row of X, (n, width): at most k items with the highest scores, best first and equal ones in their
        order, and these scores; without liked and disliked items. Raises as ``score``."""
        check_shape(X, self.width)
        best = []
        block = max(1, 4_000_000 // max(1, self.width))
        rows = sp.csr_array(X)
        for at in range(0, rows.shape[0], block):
            try:
                of_block = self.score(rows[at : at + block])
            except ScoreError as error:
                raise ScoreError(at + error.row) from None
            for scores in of_block:
                order = np.argsort(-scores, kind="stable")[:k]
                order = order[scores[order] > -np.inf]
                best.append((order, scores[order]))
        return best

    def _fields(self) -> JsonDict:
        return {"factors": self.factors.input.shape[1]}

    def _arrays(self) -> dict[str, AnyArray]:
        return {"input": self.factors.input, "output": self.factors.output, "bias": self.factors.bias}

    @classmethod
    def of_content(cls, content: Content) -> ItemRanker:
        require(content.feature_map is None, f"no feature map for {cls.description}")
        items, factors = content.columns, content.field("factors", int)
        of_user, of_item = content.array("input", items, factors), content.array("output", items, factors)
        return cls(ItemFactors(of_user, of_item, content.array("bias", items)), content.header)
