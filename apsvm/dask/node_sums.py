"""Rows as weights at Chebyshev nodes, and kernels summed over them: the shard's side of ``apsvm.dask.pairs``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels

#: Of the polynomials. The logistic's nearest poles, ±iπ, leave errors of 12.6^−16, below rounding.
NODES = 16
#: Cells are numbered by int64, and below this score a float64 still knows its place in one.
HIGHEST = 2.0**40
#: c of the objective "erfc": ℓ(u) = ierfc(cu)/(2c) (``trainers.rank_ncg.pair_loss``).
C_OF_ERFC = np.sqrt(3.0) / (np.sqrt(2.0) * np.pi)

_ANGLES = (2.0 * np.arange(NODES) + 1.0) * np.pi / (2.0 * NODES)
#: Where the nodes of a cell are in it, within 0 … 1.
PLACES = 0.5 + 0.5 * np.cos(_ANGLES)


class Moments(NamedTuple):
    """Weights at the nodes of cells.

    Attributes
    ----------
    classes, cells : (m,) int64, of each entry; cell z holds the scores z ≤ s < z + 1
    weights : (m, NODES) float64
    """

    classes: NDArray[np.int64]
    cells: NDArray[np.int64]
    weights: NDArray[np.float64]


def moments_of(scores: NDArray[np.float64], starts: NDArray[np.int64]) -> Moments | None:
    """Of scores (n,) class by class, class c from starts[c] on; None where a score is not finite, or beyond
    ``HIGHEST``."""
    if not (np.abs(scores) < HIGHEST).all():
        return None
    floor = np.floor(scores)
    of_row = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    cells, first, entry = _entries(of_row, floor.astype(np.int64))
    # Σ T_k(x) of the rows of an entry, k by k, and from these the weights: L_m(x) = (2/p) Σ'_k T_k(x_m) T_k(x).
    x = 2.0 * (scores - floor) - 1.0
    before, now = np.ones_like(x), x
    sums = np.empty((cells.size, NODES))
    sums[:, 0] = np.bincount(entry)
    for k in range(1, NODES):
        sums[:, k] = np.bincount(entry, now)
        before, now = now, 2.0 * x * now - before
    sums[:, 0] *= 0.5
    at_nodes = np.cos(np.outer(np.arange(NODES), _ANGLES))
    return Moments(of_row[first], cells, (2.0 / NODES) * (sums @ at_nodes))


def _entries(
    of_row: NDArray[np.int64], cells: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The occupied cells of each class: cell and first row of each, and which of them each row is in."""
    if not cells.size:
        return cells, of_row, of_row
    low = cells.min()
    width = int(cells.max() - low) + 1
    keys, first, entry = np.unique(of_row * width + (cells - low), return_index=True, return_inverse=True)
    return keys % width + low, first, entry


def pair_sums(
    objective: str,
    scores: NDArray[np.float64],
    starts: NDArray[np.int64],
    cells: NDArray[np.int64],
    below: NDArray[np.float64],
    above: NDArray[np.float64],
    slopes: NDArray[np.float64],
    threads: int,
) -> float:
    """Σ of ℓ over the pairs whose preferred row is here; ``slopes`` (n,) becomes its derivative by each score, and by
    that of rows that others are preferred to. ``below``, ``above`` (classes, c, NODES): weights of the classes that
    each is preferred to, and that are preferred to it, at the nodes of ``cells`` (c,)."""
    factor = 1.0 if objective == "logistic" else C_OF_ERFC
    slope_kernel, loss_kernel = ("sigmoid", "softplus") if objective == "logistic" else ("erfc", "ierfc")
    of_slope, of_loss = (1.0, 1.0) if objective == "logistic" else (0.5, 0.5 / C_OF_ERFC)
    nodes = factor * (cells[:, None] + PLACES).ravel()
    total = 0.0
    for number, (begin, end) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
        targets, out = factor * scores[begin:end], np.zeros(end - begin)
        lower, higher = below[number].ravel(), above[number].ravel()
        slope = slopes[begin:end]
        _sum(loss_kernel, nodes, lower, targets, out, threads)
        total += of_loss * float(out.sum())
        _sum(slope_kernel, nodes, lower, targets, out, threads)
        np.multiply(out, -of_slope, out=slope)
        _sum(slope_kernel, -nodes, higher, -targets, out, threads)
        slope += of_slope * out
    return total


def _sum(
    kernel: str,
    nodes: NDArray[np.float64],
    weights: NDArray[np.float64],
    targets: NDArray[np.float64],
    out: NDArray[np.float64],
    threads: int,
) -> None:
    used = np.flatnonzero(weights)
    _kernels.kernel_sum(kernel, "chebyshev", None, nodes[used], weights[used], targets, out, threads)
