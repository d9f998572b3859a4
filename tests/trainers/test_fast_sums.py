"""The fast sums: within the error they promise, on problems of every scale."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import erfc, erfcinv, expit

from apsvm._native import _kernels
from apsvm.trainers.rank_ncg.pair_loss import HALF_WIDTH, fourier_setting

#: The constant C of the erfc objective, whose slope is erfc(C t)/2: √3/(√2 π) to 14 digits, as the kernel has it.
C = 0.38984840061683195

#: −ℓ' and ℓ of each objective, of t = target − source.
KERNELS = {
    "erfc": (
        lambda t: 0.5 * erfc(C * t),
        lambda t: (np.exp(-(np.clip(C * t, -30, 30) ** 2)) / np.sqrt(np.pi) - C * t * erfc(C * t)) / (2 * C),
    ),
    "logistic": (lambda t: expit(-t), lambda t: np.logaddexp(0.0, -t)),
}


def pair_sums(objective, z, q, y, *, accuracy=None, kappa=3.0, summation="chebyshev", threads=1, p=1.0):
    """For each target Σ_i q_i (−ℓ')(y − z_i), and Σ_j p_j Σ_i q_i ℓ(y_j − z_i): the targets are preferred."""
    fourier = None if accuracy is None else fourier_setting(accuracy, kappa)
    ints = [np.array(part) for part in ([0, z.size, z.size + y.size], [0, 1], [0, 2], [0, 0, 1], [0], [1], [0, 1, 1], [1], [2])]  # fmt: skip # noqa: E501
    weights = np.r_[q, np.broadcast_to(p, y.size)]
    sums = _kernels.PairSums(objective, summation if fourier is None else "fourier", fourier, *ints, weights, threads)
    slopes = np.full(weights.size, np.nan)
    loss = sums(np.r_[z, y], slopes, 1.0, True)
    return -slopes[z.size :] / np.broadcast_to(p, y.size), loss


def fast(objective, z, q, y, **options):
    return pair_sums(objective, z, q, y, **options)[0]


def exact(objective, z, q, y):
    return KERNELS[objective][0](y[:, None] - z) @ q


def losses(objective, z, q, y):
    return KERNELS[objective][1](y[:, None] - z) @ q


@pytest.mark.parametrize("objective", list(KERNELS))
@pytest.mark.parametrize("n", [1, 200])
def test_scores_just_below_a_cell_belong_to_it(objective, n, rng):
    z, q, y = -1e-20 * np.arange(1.0, n + 1), rng.random(n), 3.0 - 1e-16 * np.arange(20)
    np.testing.assert_allclose(fast(objective, z, q, y), exact(objective, z, q, y), rtol=1e-7)


@pytest.mark.parametrize("kappa", [2.0, 3.0])
def test_fourier_error_is_within_the_bound_on_a_thousand_problems(rng, kappa):
    worst = 0.0
    for _ in range(1000):
        n, scale, accuracy = rng.integers(1, 60), 10 ** rng.uniform(-2, 2), 10 ** rng.uniform(-8, -2)
        z, q = scale * rng.normal(size=n), rng.normal(size=n)
        y = np.concatenate([scale * rng.normal(size=20), rng.choice(z, 20) + rng.uniform(-8, 8, 20) / C])
        error = 2 * np.abs(fast("erfc", z, q, y, accuracy=accuracy, kappa=kappa) - exact("erfc", z, q, y))
        worst = max(worst, float(error.max() / (accuracy * np.abs(q).sum())))
    assert worst <= 1.0 + 1e-6
    assert worst > 0.05  # the problems are not all trivial


@pytest.mark.parametrize("accuracy", [1e-2, 1e-4, 1e-6, 1e-8])
def test_fourier_bound_is_reached_where_a_cell_is_left_out(accuracy):
    """A source at the upper end of its cell, and a target that just does not see the cell: erfc is ε there."""
    c_edge = 2 * HALF_WIDTH
    for tiny in (1e-12, 1e-9):
        z = np.array([c_edge - tiny]) / C
        y = z + (erfcinv(accuracy) + 2 * tiny) / C
        error = 2 * abs(fast("erfc", z, np.ones(1), y, accuracy=accuracy) - exact("erfc", z, np.ones(1), y))[0]
        assert accuracy * (1 - 1e-5) < error <= accuracy * (1 + 1e-6)


def test_fourier_terms_are_those_of_the_formulas():
    """The published numbers of terms: ε, p with κ = 3, p with κ = 2."""
    table = [(1e-3, 8, 6), (1e-4, 11, 7), (1e-5, 13, 9), (1e-6, 15, 10), (1e-8, 20, 13), (1e-12, 29, 19)]
    for accuracy, three, two in table:
        assert (fourier_setting(accuracy, 3.0)[1], fourier_setting(accuracy, 2.0)[1]) == (three, two)


@pytest.mark.parametrize("objective", KERNELS)
def test_chebyshev_is_exact_to_rounding(rng, objective):
    for scale in (0.0, 1e-3, 0.1, 1.0, 7.0, 40.0, 1e3, 1e6):
        for n in (1, 2, 9, 300):
            z, y = scale * rng.normal(size=n), scale * rng.normal(size=50)
            q, p = rng.normal(size=n), rng.normal(size=50)
            sums, loss = pair_sums(objective, z, q, y, p=p)
            size = np.abs(q).sum()
            error = np.abs(sums - exact(objective, z, q, y))
            assert (error <= 4e-15 * size).all(), (scale, n, (error / size).max())
            # Beside Σ|q|, the size of the terms: the losses are not bounded.
            size = np.abs(p) @ (size + losses(objective, z, np.abs(q), y))
            error = abs(loss - losses(objective, z, q, y) @ p)
            assert error <= 4e-15 * size, (scale, n, error / size)


@pytest.mark.parametrize("objective", KERNELS)
def test_one_outlier_and_a_common_offset_cost_no_digits(rng, objective):
    z, q = rng.normal(size=200), np.ones(200)
    y = rng.normal(size=40)
    y, z = np.round(y * 2**20) / 2**20, np.round(z * 2**20) / 2**20
    for offset in (0.0, 2.0**20, -(2.0**30)):
        sums, loss = pair_sums(objective, z + offset, q, y + offset)
        np.testing.assert_allclose(sums, exact(objective, z, q, y), rtol=1e-14)
        np.testing.assert_allclose(loss, losses(objective, z, q, y).sum(), rtol=1e-14)
    for outlier in (-1e12, 1e12, 1e200):
        sources, weights = np.append(z, outlier), np.append(q, 1.0)
        sums, loss = pair_sums(objective, sources, weights, y)
        np.testing.assert_allclose(sums, exact(objective, sources, weights, y), rtol=1e-14)
        np.testing.assert_allclose(loss, losses(objective, sources, weights, y).sum(), rtol=1e-14)


def test_cells_too_far_apart_to_be_counted_in_a_row(rng):
    """Scores over a wide range, in clusters."""
    z = rng.choice([-1e7, -3.0, 0.0, 5e4, 2e8], 2000) + rng.normal(size=2000)
    y, q = np.sort(rng.choice(z, 300)) + 0.1, rng.normal(size=2000)
    size = np.abs(q).sum()
    for objective in KERNELS:
        sums, loss = pair_sums(objective, z, q, y)
        assert (np.abs(sums - exact(objective, z, q, y)) <= 4e-15 * size).all()
        of_losses = y.size * size + losses(objective, z, np.abs(q), y).sum()
        assert abs(loss - losses(objective, z, q, y).sum()) <= 4e-15 * of_losses
    error = 2 * np.abs(fast("erfc", z, q, y, accuracy=1e-4) - exact("erfc", z, q, y))
    assert error.max() <= 1e-4 * size


def test_threads_do_not_change_a_bit(rng):
    z, y = 30 * rng.normal(size=40_000), 30 * rng.normal(size=20_000)
    q = rng.normal(size=z.size)
    for accuracy in (None, 1e-6):
        one = fast("erfc", z, q, y, accuracy=accuracy)
        np.testing.assert_array_equal(one, fast("erfc", z, q, y, accuracy=accuracy, threads=2))


def test_direct_sums_are_what_they_say(rng):
    z, q, y = rng.normal(size=30), rng.normal(size=30), 9 * rng.normal(size=50)
    for objective in KERNELS:
        sums, loss = pair_sums(objective, z, q, y, summation="direct")
        np.testing.assert_allclose(sums, exact(objective, z, q, y), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(loss, losses(objective, z, q, y).sum(), rtol=1e-12)
