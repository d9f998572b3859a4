"""A network of dense layers in training, as tensors; ``apsvm.models.net.Net`` is what becomes of it.

h_1 = W_1 x + b_1,     h_l = W_l max(0, h_{l−1}) + b_l,     the score is the last, one number
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from apsvm.data.features.scaling import Scaling
from apsvm.models.net import Layer, Net
from apsvm.trainers.settings import SettingsError
from apsvm.trainers.stochastic import not_finite

#: Rows that are scored at once.
ROWS_OF_A_BLOCK = 1 << 16


class Network:
    """The layers of a network in training: float32 tensors, drawn by Glorot's rule.

    Parameters
    ----------
    sizes : of the input, of each hidden layer, and 1
    """

    def __init__(self, sizes: Sequence[int], device: torch.device, generator: torch.Generator) -> None:
        self.weights: list[Tensor] = []
        self.biases: list[Tensor] = []
        for inputs, outputs in pairwise(sizes):
            reach = math.sqrt(6.0 / (inputs + outputs))
            drawn = reach * (2.0 * torch.rand(outputs, inputs, generator=generator) - 1.0)
            self.weights.append(drawn.to(device).requires_grad_())
            self.biases.append(torch.zeros(outputs, device=device, requires_grad=True))

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return self.weights[0].device

    @property
    def parameters(self) -> list[Tensor]:
        """Weights, then biases."""
        return [*self.weights, *self.biases]

    def __call__(self, X: Tensor) -> Tensor:
        """The scores of the rows of X (n, d), with their graph: (n,)."""
        for weights, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            X = torch.relu(nn.functional.linear(X, weights, bias))
        return nn.functional.linear(X, self.weights[-1], self.biases[-1]).squeeze(1)

    def scores(self, X: Tensor) -> NDArray[np.float64]:
        """The scores of the rows of X (n, d): (n,) float64. Raises FloatingPointError where one is not finite."""
        with torch.no_grad():
            parts = [self(block).cpu() for block in X.split(ROWS_OF_A_BLOCK)]
        scores: NDArray[np.float64] = torch.cat(parts).numpy().astype(np.float64)
        if not np.isfinite(scores).all():
            raise not_finite("scores")
        return scores

    def squares(self) -> Tensor:
        """‖weights‖², with its graph; biases do not count."""
        return torch.stack([weights.square().sum() for weights in self.weights]).sum()

    def snapshot(self) -> list[Tensor]:
        """The parameters as they are."""
        return [parameter.detach().clone() for parameter in self.parameters]

    def restore(self, parameters: Sequence[Tensor]) -> None:
        """Takes those of a snapshot."""
        with torch.no_grad():
            for mine, other in zip(self.parameters, parameters, strict=True):
                mine.copy_(other)

    def net(self, scaling: Scaling) -> Net:
        """The network of features as they are, where this one is of features that were scaled so."""
        arrays = [parameter.detach().cpu().numpy().astype(np.float64) for parameter in self.parameters]
        half = len(arrays) // 2
        return Net(tuple(map(Layer, arrays[:half], arrays[half:]))).behind(scaling)


class Adam:
    """Kingma and Ba (2015), algorithm 1, with their constants. That of PyTorch loads the compiler when it is made,
    which takes longer than most of these trainings.

    Parameters
    ----------
    parameters : what is moved; rate : α, how far

    Attributes
    ----------
    steps : taken so far
    means, squares : of the slopes and of their squares, m and v, as the parameters
    """

    BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8

    def __init__(self, parameters: Sequence[Tensor], rate: float) -> None:
        self._parameters, self._rate, self.steps = parameters, rate, 0
        self.means = [torch.zeros_like(one) for one in parameters]
        self.squares = [torch.zeros_like(one) for one in parameters]

    def step(self, value: Tensor) -> None:
        """A step down ``value``, a number with its graph."""
        slopes = torch.autograd.grad(value, self._parameters)
        self.steps += 1
        rate = self._rate / (1.0 - self.BETA_1**self.steps)
        unbiased = 1.0 / math.sqrt(1.0 - self.BETA_2**self.steps)
        with torch.no_grad():
            for one, slope, mean, square in zip(self._parameters, slopes, self.means, self.squares, strict=True):
                mean.lerp_(slope, 1.0 - self.BETA_1)
                square.mul_(self.BETA_2).addcmul_(slope, slope, value=1.0 - self.BETA_2)
                one.addcdiv_(mean, square.sqrt().mul_(unbiased).add_(self.EPSILON), value=-rate)

    def restore(self, steps: int, means: Sequence[Tensor], squares: Sequence[Tensor]) -> None:
        """Goes on from there."""
        self.steps = steps
        with torch.no_grad():
            for mine, other in zip([*self.means, *self.squares], [*means, *squares], strict=True):
                mine.copy_(other)


def device_of(name: str) -> torch.device:
    """The device called so. Raises SettingsError where there is none."""
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        # PyTorch's own list is of devices that no build of it has any more.
        is_supported = name.partition(":")[0] in ("cpu", "cuda")
        reason = str(error).splitlines()[0] if is_supported else "not there; choose cpu, cuda, cuda:N or mps"
        raise SettingsError(f"--device {name}: {reason}") from None
    return device


@contextmanager
def one_thread() -> Iterator[None]:
    """The networks are small, and the order in which threads add up would show in the last bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
