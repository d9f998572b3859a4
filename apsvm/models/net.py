"""Networks of dense layers with rectified linear units: ``Net`` scores rows, ``NetRanker`` is the model.

    score(x) = h_L,     h_1 = W_1 φ(x) + b_1,     h_l = W_l max(0, h_{l−1}) + b_l,     h_L one number

Prediction needs NumPy only.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._support.errors import require
from apsvm._support.types import JsonDict, Matrix
from apsvm.data.features.scaling import Scaling
from apsvm.data.rows import Rows
from apsvm.models.base import Ranker, summary_of
from apsvm.models.content import Content
from apsvm.models.header import Header

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray
    from apsvm.data.features.base import FeatureMap

#: Maximum number of outputs of a layer in memory at once.
NUMBERS_OF_A_BLOCK = 1 << 22


class Layer(NamedTuple):
    """A dense layer."""

    weights: NDArray[np.float64]  #: (out, in)
    bias: NDArray[np.float64]  #: (out,)


@dataclass(frozen=True, slots=True, eq=False)
class Net:
    """Dense layers with rectified linear units between them and one output; a single layer is linear."""

    layers: tuple[Layer, ...]  #: each has as many inputs as the previous one has outputs; the last has one output

    @property
    def columns(self) -> int:
        """Number of inputs."""
        return int(self.layers[0].weights.shape[1])

    @property
    def units(self) -> list[int]:
        """Number of outputs of each layer; the last is 1."""
        return [layer.bias.size for layer in self.layers]

    def scores(self, rows: Rows) -> NDArray[np.float64]:
        """Scores (m,) float64 of the rows, without their constant feature. A row's score does not depend on the other
        rows or on the number of threads."""
        block = max(1, NUMBERS_OF_A_BLOCK // max(self.units))
        starts = range(0, len(rows), block)
        parts = [self._scores(rows.select(np.arange(at, min(at + block, len(rows))))) for at in starts]
        return np.concatenate([np.empty(0), *parts])

    def _scores(self, rows: Rows) -> NDArray[np.float64]:
        first, *others = self.layers
        weights = np.pad(first.weights, ((0, 0), (0, rows.dimension - rows.features)))
        outputs = rows.scores_of_all(weights) + first.bias
        for layer in others:
            inputs = Rows(np.maximum(outputs, 0.0), threads=rows.threads)
            outputs = inputs.scores_of_all(layer.weights) + layer.bias
        return outputs[:, 0]

    def behind(self, scaling: Scaling) -> Net:
        """A net for unscaled rows that gives the scores of this one on scaled rows. Scaling to unit length is not
        included."""
        first, *others = self.layers
        weights = first.weights.copy() if scaling.divisors is None else first.weights / scaling.divisors
        bias = first.bias.copy() if scaling.centre is None else first.bias - weights @ scaling.centre
        return Net((Layer(weights, bias), *others))


@dataclass(frozen=True, slots=True, repr=False)
class NetRanker(Ranker):
    """A net on the features, or on their map; the higher the score, the better."""

    kind: ClassVar[str] = "net"
    description: ClassVar[str] = "a network of dense layers"

    net: Net  #: of (columns,) inputs
    header: Header
    feature_map: FeatureMap | None = None

    @property
    def n_columns(self) -> int:
        return self.net.columns

    def _scores(self, X: Matrix, threads: int) -> NDArray[np.float64]:
        return self.net.scores(self.rows(X, threads=threads))

    def summary(self) -> JsonDict:
        return {"units": self.net.units, "weights": summary_of(*(layer.weights for layer in self.net.layers))}

    def _fields(self) -> JsonDict:
        return {"units": self.net.units}

    def _arrays(self) -> dict[str, AnyArray]:
        """Arrays named weights1, bias1, weights2 …"""
        return {
            f"{name}{number}": array
            for number, layer in enumerate(self.net.layers, start=1)
            for name, array in layer._asdict().items()
        }

    @classmethod
    def of_content(cls, content: Content) -> NetRanker:
        units = content.field("units", tuple[int, ...])
        require(min(units, default=0) > 0 and units[-1] == 1, f"'units' above 0, the last of them 1, found {units}")
        sides = enumerate(pairwise([content.columns, *units]), start=1)
        layers = [Layer(content.array(f"weights{at}", n, m), content.array(f"bias{at}", n)) for at, (m, n) in sides]
        return cls(Net(tuple(layers)), content.header, content.feature_map)
