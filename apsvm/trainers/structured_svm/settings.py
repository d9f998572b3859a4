"""Settings of the structured SVM and of its two-stage approximation."""

from __future__ import annotations

from dataclasses import dataclass

from apsvm._support.naming import option
from apsvm.oracles import ORACLES
from apsvm.solvers.qp import BACKENDS
from apsvm.trainers.settings import AUTO_MULTIPLE, Multiple, Range, Settings, SettingsError, setting

#: Choices of ``--oracle``: oracles of ranking losses, and the two-stage approximation.
ORACLE_CHOICES = ("auto", *(name for name in ORACLES if name not in ("zero-one", "brute-force")), "appx")
BOUNDS = ("auto", "hinge", "tight")
#: Starts of training on bags, besides ``random:N``.
STARTS = ("anneal", "bag-means")
MOST_RANDOM_STARTS = 1000
MOST_COMPONENTS = 64
#: Relative bound from which a model may rank badly.
POOR_BOUND = 0.98
#: The default of ``-C``.
DEFAULT_C: tuple[float | Multiple, ...] = (AUTO_MULTIPLE,)
SOLVERS = ("line-search", "cutting-plane")


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuredSettings(Settings):
    """Settings of a structured SVM; see the help of each field."""

    oracle: str = setting(
        "auto",
        label="oracle",
        choices=ORACLE_CHOICES,
        help="Algorithm for the most violated ranking. All except appx are exact and give the same model.",
    )
    C: tuple[float | Multiple, ...] = setting(
        DEFAULT_C,
        label="C",
        flags=("-C", "--C"),
        range=Range(0.0, open_low=True),
        multiples=True,
        path=True,
        metavar="NUMBER[,NUMBER…]",
        default_text="auto",
        grid=tuple(map(Multiple, (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0))),
        help="Weight of the risk against ½‖w‖². auto: derived from the scale of the features; 10x: ten times that. "
        "0.01:100:log10: decades from 0.01 to 100, log2: doublings.",
    )
    epsilon: float = setting(
        1e-3,
        label="ε, the requested gap / C",
        flags=("-e", "--epsilon"),
        range=Range(0.0, open_low=True),
        grid=(1e-3,),
        help="Stop when the duality gap is at most epsilon·C; in units of the loss.",
    )
    qp: str = setting(
        "auto",
        choices=tuple(BACKENDS),
        help="Solver of the working-set QP; auto: active-set, then cvxpy if it misses the requested gap.",
    )
    solver: str = setting(
        "line-search",
        label="solver",
        choices=SOLVERS,
        help="Point of each plane: after a line search on scores, or the QP's minimiser, as in the papers.",
    )
    bound: str = setting(
        "auto",
        label="bound",
        choices=BOUNDS,
        grid=("hinge", "tight"),
        help="Upper bound on the loss: the convex structured hinge of the papers, or the tighter ramp, from the "
        "hinge's minimiser to a stationary point: often better if some positives are hopeless. auto: the better one "
        "on rows held out, each with the best of a few C if -C is auto.",
    )
    latent: bool = setting(
        False,
        label="bags by their best row",
        help="Train on bags (bag: or --bags): a bag has the score of its best row. Ends at a stationary point; the "
        "model scores rows, and bags by their best row.",
    )
    start: str = setting(
        "anneal",
        label="start",
        metavar="START",
        help="Start of --latent: anneal, from the bags' means to their best rows, with the loss and with the 0-1 loss; "
        "bag-means, a training on the means; random:N, the best of N random choices of a row per bag.",
    )
    layer_wise: str = setting(
        "",
        label="hidden layers",
        metavar="HIDDEN[,HIDDEN…]",
        grid=(),
        help="Train a network with hidden layers of this many rectified linear units, on standardised features: from a "
        "network of the log loss, a layer at a time, each by the exact solver, until rows held out are ranked no "
        "better. In lists (apsvm cv) write 16x8 for 16,8, and none for a linear ranker.",
    )
    components: int = setting(
        1,
        label="components",
        range=Range(1, MOST_COMPONENTS),
        grid=(),
        default_text="auto",
        help="H linear scores, each with a constant; a row gets the highest: for positives of several kinds. Ends at "
        "a stationary point, from clusters of the positives; --bound auto is tight. auto: 1; for ap with bound and C "
        "left open, 2 if positives are rare and rows held out are ranked better by more than chance.",
    )
    log_ranks: bool = setting(
        False,
        in_header=False,
        needs="log run_dir",
        help="Write the most violated rankings (of one list, not of queries or grades) into the log: apsvm plot "
        "heatmap draws them.",
    )
    keep_easy: float = setting(
        50.0,
        label="easy rows kept easy, %",
        range=Range(0.0, 100.0),
        metavar="PERCENT",
        help="For --oracle appx: the share of the binary SVM's easy rows that stay easy.",
    )
    max_iterations: int = setting(10_000, range=Range(1), help="Most iterations in a stage of the training.")


def random_starts(start: str) -> int | None:
    """N of ``random:N``; None for one of ``STARTS``. Raises SettingsError for another."""
    if start in STARTS:
        return None
    name, _, number = start.partition(":")
    if name == "random" and number.isascii() and number.isdecimal() and 0 < int(number) <= MOST_RANDOM_STARTS:
        return int(number)
    raise SettingsError(
        f"{option('start')} is one of {', '.join(STARTS)} or random:N with N from 1 to "
        f"{MOST_RANDOM_STARTS}, found {start!r}"
    )


def shown_C(value: float | Multiple) -> str:
    """Text of C for file names and tables."""
    return f"{value:g}" if isinstance(value, float) else str(value)
