"""The training of a network in resumable pieces (``apsvm._support.work``): a stage is a piece, saved between epochs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from apsvm._support.work import Saved, WorkError, of_saved
from apsvm.solvers.sgd import EpochsSoFar
from apsvm.torch.network import Adam, Network


def saved_stage(
    network: Network, optimiser: Adam, generator: torch.Generator, epochs: EpochsSoFar[list[Tensor]]
) -> Saved:
    """All that the epochs to come depend on."""
    best = None if epochs.best is None else arrays_of(epochs.best)
    return {
        "torch": torch.__version__,
        "epochs": replace(epochs, best=best),
        "parameters": arrays_of(network.parameters),
        "optimiser": {"steps": optimiser.steps, "moments": arrays_of([*optimiser.means, *optimiser.squares])},
        "generator": generator.get_state().numpy(),
    }


def restored_stage(
    saved: Saved, network: Network, optimiser: Adam, generator: torch.Generator
) -> EpochsSoFar[list[Tensor]]:
    """Takes over what ``saved_stage`` returned. Raises WorkError where another PyTorch did."""
    check_version(saved)
    network.restore(tensors_of(saved["parameters"]))
    moments = tensors_of(saved["optimiser"]["moments"])
    optimiser.restore(saved["optimiser"]["steps"], moments[: len(moments) // 2], moments[len(moments) // 2 :])
    generator.set_state(torch.from_numpy(saved["generator"].copy()))
    epochs: EpochsSoFar[list[Tensor]] = of_saved(EpochsSoFar, saved["epochs"])
    best = None if epochs.best is None else [one.to(network.device) for one in tensors_of(epochs.best)]
    return replace(epochs, best=best)


def check_version(saved: Saved) -> None:
    """Raises WorkError where another PyTorch, whose sums may have other last bits, saved it."""
    if saved["torch"] != torch.__version__:
        raise WorkError(f"PyTorch was {saved['torch']} and is {torch.__version__}")


def arrays_of(tensors: Sequence[Tensor]) -> list[np.ndarray]:
    """Copies on the CPU."""
    return [tensor.detach().cpu().numpy().copy() for tensor in tensors]


def tensors_of(arrays: Sequence[np.ndarray]) -> list[Tensor]:
    """The reverse of ``arrays_of``."""
    return [torch.from_numpy(np.array(array)) for array in arrays]
