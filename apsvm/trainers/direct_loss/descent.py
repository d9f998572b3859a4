"""Direct loss minimisation (McAllester, Hazan, Keshet 2010; Song, Schwing, Zemel, Urtasun 2016) of a linear ranker, by
steps along the gradient of one of

    L₊(w) = (1/ε) { max_R [F(R) + ε Δ(R*, R)] − max_R F(R) }
    L₋(w) = (1/ε) { max_R F(R) − max_R [F(R) − ε Δ(R*, R)] }

with F(R) = w·Ψ(R)/σ(w). L₋ ≤ Δ(R*, R(w)) ≤ L₊ for the ranking R(w) by score, and the gradient of the expected Δ is the
limit of either's at ε → 0, where scores have a density (the theorem). L₊, the positive update, is the tight bound; its
first maximum is the separation oracle's at the scores divided by ε. That of L₋ is ``oracles.against_loss``.

σ² = (variance of the scores within queries + l2·v̄·‖w‖²)/(1 + l2), v̄ the mean variance of a feature. Without σ, F grows
with w and εΔ does not: R± would come nearer to R(w) as w grows, and an L2 penalty, which moves no ranking, would decide
how near. So ε is in deviations of the scores, L depends on the direction of w alone, and l2 takes the place of the
penalty: the larger, the less is gained in directions in which the rows vary little.

A step takes whole queries of up to ``step_rows`` rows in all, or of a longer query a sample with its share of each
class. Steps are Adam's (Kingma and Ba 2015): against the running mean of the gradients, each weight's over its running
root mean square. The learning rate is what such a step changes the scores by, in deviations, were the features
uncorrelated; it falls to 0 along a half cosine. A step costs two passes over its rows and O(n log n), for L₋ also
O(swapped pairs).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._support.work import Saved
from apsvm.data.row_operator import ScoredRows
from apsvm.losses.base import Loss, LossOverRankings
from apsvm.oracles import make_oracle
from apsvm.oracles.against_loss import AgainstLoss
from apsvm.oracles.base import AnyOracle
from apsvm.oracles.bucket import Bucket
from apsvm.oracles.layout import Queries
from apsvm.risk import NoLoss, Risk, make_risk
from apsvm.solvers.sgd import Epoch, Pass
from apsvm.trainers.base import Progress, TrainingSet, Watch
from apsvm.trainers.direct_loss.settings import DirectSettings
from apsvm.trainers.stochastic import (
    TrainedByEpochs,
    WeightsDescent,
    descend_as_asked,
    generator_state,
    not_finite,
    set_generator_state,
)

#: Where a pass over the rows takes fewer steps, an epoch is several passes.
STEPS_AN_EPOCH = 10
#: Shares of the running mean and of the running mean square of the gradients that a step keeps.
MOMENTUM, MEMORY = 0.9, 0.999
#: Of a class that is rare in a long query, a sample has as many rows as this, if there are: one positive in a list says
#: little of its order.
LEAST_OF_A_CLASS = 8


def train_direct(
    data: TrainingSet,
    loss: LossOverRankings,
    settings: DirectSettings,
    watch: Watch,
    *,
    show: Callable[[Epoch], Progress],
    validate: Callable[[NDArray[np.float64]], float] | None,
    start: NDArray[np.float64] | None,
) -> TrainedByEpochs:
    """A linear ranker; ``costs`` of the data are not used.

    Parameters
    ----------
    loss : for the negative update, of two arrays
    show : an epoch as the display has it
    validate : a metric of w (dimension,), higher is better, asked after each epoch
    start : (dimension,) float64, the first w; by default, and where it gives all rows one score, the difference of the
        classes' means within queries

    Raises
    ------
    LossError, NothingToRankError : ValueErrors
    FloatingPointError : scores or weights that are not finite
    """
    risk = make_risk(
        data.rows.for_many_passes(),
        data.target.relevant,
        loss,
        make_oracle("auto", loss),
        groups=data.queries,
        query_weights=data.query_weights,
        grades=data.target.grades,
    )
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found
        descent = _DirectSteps(risk, settings, np.random.default_rng(settings.seed), start)
        outcome = descend_as_asked(
            descent,
            settings,
            watch,
            show=show,
            validate=None if validate is None else lambda: validate(descent.w),
        )
    return TrainedByEpochs(
        outcome.best,
        outcome.epochs,
        outcome.best_epoch,
        outcome.ending,
        risk.n_pos,
        risk.queries,
        risk.queries_skipped,
        outcome.trouble,
    )


class Slope(NamedTuple):
    """L at the scores; how it changes with each score, (m,) float64; and with the length."""

    value: float
    of_scores: NDArray[np.float64]
    of_length: float


class Within:
    """Moments of scores within the queries of ``layout``; a query counts by its share."""

    def __init__(self, layout: Queries) -> None:
        self._first = layout.first
        self._sizes = layout.n_pos + layout.n_neg
        #: (m,) float64: the share of each row, which add up to 1.
        self.shares = np.repeat(layout.shares / layout.shares.sum() / self._sizes, self._sizes)

    def deviations(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """(m,) float64: the scores less their query's mean."""
        means = np.add.reduceat(scores, self._first) / self._sizes
        apart: NDArray[np.float64] = scores - np.repeat(means, self._sizes)
        return apart

    def spread(self, deviations: NDArray[np.float64]) -> float:
        """The root of the variance, whatever the magnitude."""
        largest = float(np.abs(deviations).max())
        if largest == 0.0 or not np.isfinite(largest):
            return largest
        return largest * float(np.sqrt(self.shares @ np.square(deviations / largest)))


class StepOfQueries:
    """The queries of a step, whose rows stand as ``layout`` says: L, the sum over them by their shares, which need not
    add up to 1, and its gradient. ``oracle`` is the loss's own, for the positive update."""

    def __init__(
        self, layout: Queries, loss: Loss, oracle: AnyOracle, settings: DirectSettings, *, threads: int = 1
    ) -> None:
        positive = settings.update == "positive"
        perturbed: AnyOracle = oracle if positive else AgainstLoss()
        # Rows of one score: L₊ takes them in the best order, L₋ in the worst, so that both count them as wrong.
        by_score: AnyOracle = Bucket() if positive else AgainstLoss()
        self._perturbed = perturbed.bind_queries(loss, layout, threads=threads)
        self._by_score = by_score.bind_queries(NoLoss(), layout, threads=threads)
        self._sign, self._epsilon, self._l2 = 1.0 if positive else -1.0, settings.epsilon, settings.penalty
        self._within = Within(layout)
        self._weights = np.empty((2, self._within.shares.size))

    def slope(self, scores: NDArray[np.float64], length: float) -> Slope:
        """For ``scores`` (m,) float64 of a w with √v̄‖w‖ = ``length``, which the result's of_length is about.

        Raises FloatingPointError for scores that are not finite."""
        apart = self._within.deviations(scores)
        l2 = self._l2
        sigma = np.hypot(self._within.spread(apart), np.sqrt(l2) * length) / np.sqrt(1.0 + l2)
        if not np.isfinite(sigma):  # the kernels rely on scores without NaN
            raise not_finite("scores")
        if sigma == 0.0:
            sigma = 1.0
        scale = sigma * self._epsilon
        perturbed, by_score = self._weights
        scaled = apart / scale
        value = self._sign * (self._perturbed(scaled, perturbed)[0] - self._by_score(scaled, by_score)[0])
        slopes = (perturbed - by_score) * (self._sign / scale)
        # σ moves with w too. Without this term the gradient would have a part along w, which moves no ranking.
        pull = float(slopes @ (apart / sigma)) / (1.0 + l2)
        return Slope(value, slopes - pull * self._within.shares * (apart / sigma), -pull * l2 * (length / sigma))


class _Batch(NamedTuple):
    """What a step may take: all of ``rows``, or where there are ``blocks`` a sample, ``taken`` rows of each block."""

    lists: StepOfQueries
    rows: ScoredRows
    queries: int
    blocks: list[tuple[int, int, int]]  # (first, size, taken)

    @property
    def steps(self) -> int:
        """In a pass: together they take as many rows as there are."""
        return max(1, round(len(self.rows) / sum(taken for *_, taken in self.blocks))) if self.blocks else 1

    def draw(self, rng: np.random.Generator) -> ScoredRows:
        if not self.blocks:
            return self.rows
        return self.rows.select(
            np.concatenate(
                [
                    first + np.sort(rng.choice(size, taken, replace=False, shuffle=False))
                    for first, size, taken in self.blocks
                ]
            )
        )


class _DirectSteps(WeightsDescent):
    """w on its way down."""

    def __init__(
        self,
        risk: Risk,
        settings: DirectSettings,
        rng: np.random.Generator,
        start: NDArray[np.float64] | None,
    ) -> None:
        rows, layout = risk.rows, risk.layout
        queries = np.repeat(np.arange(layout.n_pos.size), layout.n_pos + layout.n_neg)
        variance = rows.moments(queries).variance
        if not np.isfinite(variance).all():
            raise not_finite("variances of the features")
        self._varies = np.flatnonzero(variance)
        total = float(variance.sum())
        self._root = np.sqrt(total / max(1, self._varies.size))
        # Steps of 1 in every weight change the scores of uncorrelated features by √Σ variance.
        self._unit = 1.0 / np.sqrt(total) if total > 0.0 else 0.0
        self._settings, self._rng = settings, rng
        self._batches = list(_batches(risk, settings, rng))
        self._turns = np.repeat(np.arange(len(self._batches)), [batch.steps for batch in self._batches])
        self._steps_a_pass = max(self._turns.size, STEPS_AN_EPOCH)
        self._steps = 0
        self.w = _first_weights(rows, layout, start, variance > 0.0)
        self._mean, self._square = np.zeros(self._varies.size), np.zeros(self._varies.size)

    def one_pass(self, stop: Callable[[], bool]) -> Pass:
        order: list[int] = []
        while len(order) < self._steps_a_pass:
            order += self._rng.permutation(self._turns).tolist()
        draws = updates = queries = 0
        value, sampled = 0.0, False
        for at in order[: self._steps_a_pass]:
            batch = self._batches[at]
            rows = batch.draw(self._rng)
            norm = float(np.linalg.norm(self.w))
            slope = batch.lists.slope(rows.scores(self.w), self._root * norm)
            moves = bool(slope.of_scores.any())
            # A step that sees nothing wrong goes on by momentum.
            gradient = rows.combine(slope.of_scores)
            if slope.of_length != 0.0:
                gradient += slope.of_length * self._root * (self.w / norm)
            self._step(gradient)
            draws, updates, queries = draws + len(rows), updates + moves, queries + batch.queries
            value += slope.value * batch.queries
            sampled |= bool(batch.blocks)
            if stop():
                break
        if not np.isfinite(self.w).all():
            raise not_finite("weights")
        moved = (updates > 0 or sampled) and self._unit > 0.0
        return Pass(draws, 0, updates, value / queries, moved=moved)

    def state(self) -> Saved:
        """As ``stochastic.Parameters``."""
        return {
            "w": self.w.copy(),
            "mean": self._mean.copy(),
            "square": self._square.copy(),
            "steps": self._steps,
            "rng": generator_state(self._rng),
        }

    def restore(self, saved: Saved) -> None:
        """Takes over what ``state`` returned."""
        self.w, self._mean, self._square = (saved[name].copy() for name in ("w", "mean", "square"))
        self._steps = saved["steps"]
        set_generator_state(self._rng, saved["rng"])

    def _step(self, gradient: NDArray[np.float64]) -> None:
        settings = self._settings
        done = self._steps / (settings.epochs * self._steps_a_pass)
        self._steps += 1
        slope = gradient[self._varies]
        self._mean += (1.0 - MOMENTUM) * (slope - self._mean)
        self._square += (1.0 - MEMORY) * (slope * slope - self._square)
        mean = self._mean / (1.0 - MOMENTUM**self._steps)
        size = np.sqrt(self._square / (1.0 - MEMORY**self._steps))
        length = settings.rate * self._unit * 0.5 * (1.0 + np.cos(np.pi * done))
        self.w[self._varies] -= length * np.divide(mean, size, out=np.zeros_like(mean), where=size > 0.0)


def _first_weights(
    rows: ScoredRows, layout: Queries, start: NDArray[np.float64] | None, varies: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """``start``, or the difference of the classes' means, at the length that gives the scores deviation 1."""
    within = Within(layout)
    at_zero = np.empty(len(rows))
    # At scores of 0 all negatives stand on top: each row's weight is 2 over the number of its class in its query.
    AgainstLoss().bind_queries(NoLoss(), layout, threads=rows.threads)(np.zeros(len(rows)), at_zero)
    means = np.zeros(rows.dimension)
    means[: rows.features] = np.where(varies, -rows.combine(at_zero)[: rows.features], 0.0)
    for w in (start, means):
        if w is not None and w.any():
            deviation = within.spread(within.deviations(rows.scores(w)))
            if not np.isfinite(deviation):
                raise not_finite("scores")
            if deviation > 0.0:
                first: NDArray[np.float64] = w / deviation
                return first
    return np.zeros(rows.dimension)


def _batches(risk: Risk, settings: DirectSettings, rng: np.random.Generator) -> Iterator[_Batch]:
    """The queries in random order, as many to a batch as ``step_rows`` allows, one at least."""
    layout, rows = risk.layout, risk.rows
    first, sizes = layout.first, layout.n_pos + layout.n_neg
    members: list[int] = []
    held = 0
    order = rng.permutation(sizes.size).tolist()
    for position, query in enumerate(order):
        members.append(query)
        held += int(sizes[query])
        following = int(sizes[order[position + 1]]) if position + 1 < len(order) else settings.step_rows
        if held + following <= settings.step_rows:
            continue
        which = np.sort(np.array(members, dtype=np.int64))
        part = layout.of(which)
        # The mean over the batches of the sums over their queries is the mean over the queries.
        part = replace(part, shares=part.shares * (sizes.size / which.size))
        blocks: list[tuple[int, int, int]] = []
        if held > settings.step_rows and which.size == 1:
            part, blocks = _sampled(part, settings.step_rows)
        positions = np.concatenate([np.arange(first[q], first[q] + sizes[q]) for q in which.tolist()])
        lists = StepOfQueries(part, risk.loss, risk.oracle, settings, threads=rows.threads)
        yield _Batch(lists, rows.select(positions), which.size, blocks)
        members, held = [], 0


def _sampled(query: Queries, step_rows: int) -> tuple[Queries, list[tuple[int, int, int]]]:
    """A query of about ``step_rows`` rows in the place of a longer one, and how many rows each of its classes, or
    grades, gives to it: its share, but not too few."""
    (n_pos,), (n_neg,) = query.n_pos.tolist(), query.n_neg.tolist()
    size = n_pos + n_neg
    ends = [n_pos, size] if query.levels is None else [*sorted(query.levels.n_pos.tolist()), size]
    blocks: list[tuple[int, int, int]] = []
    ends_of_sample: dict[int, int] = {}
    begin = held = 0
    for end in ends:
        taken = max(min(LEAST_OF_A_CLASS, end - begin), round((end - begin) * step_rows / size))
        blocks.append((begin, end - begin, taken))
        held += taken
        ends_of_sample[end] = held
        begin = end
    levels = query.levels
    if levels is not None:
        levels = replace(levels, n_pos=np.array([ends_of_sample[n] for n in levels.n_pos.tolist()]))
        n_pos = sorted(ends_of_sample)[-2]
    kept = ends_of_sample[n_pos]
    return Queries(np.array([kept]), np.array([held - kept]), query.shares, None, levels), blocks
