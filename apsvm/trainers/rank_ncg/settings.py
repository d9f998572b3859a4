"""Settings of RankNCG."""

from __future__ import annotations

from dataclasses import dataclass

from apsvm.trainers.settings import Range, Settings, setting

OBJECTIVES = ("logistic", "erfc")
#: ``auto``: pair by pair or by Chebyshev cells, whichever is faster for a query; both are exact to rounding.
SUMMATIONS = ("auto", "direct", "fourier", "chebyshev")
NORMALIZATIONS = ("pairs", "none")
OPTIMIZERS = ("lbfgs", "prcg")
CUTS = ("frequency", "width")
#: Named values of ``graph``; other values are files.
NAMED_GRAPHS = ("full", "adjacent", "bipartite")
#: Default ``tolerance`` for exact sums, and for a Fourier series.
TOLERANCE, TOLERANCE_OF_A_SERIES = 1e-5, 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class RankNCGSettings(Settings):
    """Settings of RankNCG; see the help of each field."""

    objective: str = setting(
        "logistic",
        label="objective",
        choices=OBJECTIVES,
        help="Loss of a pair: log(1 + e^-u), or the paper's approximation of it by erfc.",
    )
    summation: str = setting(
        "auto",
        label="summation",
        choices=SUMMATIONS,
        help="How pairs are summed: one by one, by the paper's series (erfc only), or by cells, exact to rounding; "
        "auto: one by one or by cells, whichever is faster.",
    )
    accuracy: float = setting(
        1e-3,
        range=Range(1e-14, 0.5),
        option=False,
        help="For --summation fourier: the largest error of a sum, per unit of weight.",
    )
    optimizer: str = setting(
        "lbfgs",
        label="optimizer",
        choices=OPTIMIZERS,
        help="L-BFGS, or the paper's nonlinear conjugate gradients, which use gradients only.",
    )
    tolerance: float | None = setting(
        None,
        label="tolerance",
        flags=("-e", "--epsilon"),
        range=Range(0.0),
        metavar="EPS",
        default_text="1e-5, with --summation fourier 1e-3",
        help="Stop when the gradient's largest entry is at most EPS of that at w = 0.",
    )
    regularisation: float = setting(
        1e-3,
        label="λ",
        flags=("-l", "--lambda"),
        range=Range(0.0),
        grid=(1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0),
        help="Weight of ½‖w‖²; the loss has weight 1.",
    )
    normalize: str = setting(
        "pairs",
        label="mean over",
        choices=NORMALIZATIONS,
        help="Loss: the mean over the pairs, or their sum, as in the paper.",
    )
    graph: str = setting(
        "full",
        label="graph",
        metavar="full|adjacent|bipartite|FILE",
        help="Preferences: each class to all lower ones, to the next lower one, or to the lowest; or a file of lines "
        "'i j', class j preferred to class i.",
    )
    classes: int | None = setting(
        None,
        range=Range(2),
        default_text="each label is a class",
        help="Cut real targets into this many classes, 1 the lowest.",
    )
    cut: str = setting(
        "frequency", choices=CUTS, option=False, help="For --classes: into classes of equal frequency or width."
    )
    max_iterations: int = setting(10_000, range=Range(1), help="Most iterations in a stage of the training.")

    @property
    def tolerance_used(self) -> float:
        """``tolerance``, or its default."""
        if self.tolerance is not None:
            return self.tolerance
        return TOLERANCE_OF_A_SERIES if self.summation == "fourier" else TOLERANCE
