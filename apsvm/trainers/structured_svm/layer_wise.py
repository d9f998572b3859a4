"""Layer-wise training of a network (LW-SVM of Berrada, Zisserman and Kumar 2017), with any loss that has an oracle:

    J = ½ Σ_l ‖W_l‖² + C·risk(f),     f a net of dense layers W_l, constants included, and rectified linear units

Starting from a net trained by the log loss, layers are improved one at a time, from the last to the first, with the
others held. ``risk.LayerRisk`` is convex in W, nowhere below the risk, and equal to it at the current layer W_t. The
cutting-plane solver minimises

    ½‖W − r·W_t‖² + K·LayerRisk(W),     K = C·D/(C + D),  r = C/(C + D),  D = C/10,

which is ½‖W‖² + C·LayerRisk(W) + C/(2D)·‖W − W_t‖² up to a factor and a constant. So J never rises; a layer whose
change would raise the risk is kept unchanged. Passes continue while the loss on held-out rows falls.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from apsvm._support.clock import Spans
from apsvm.losses.base import Loss
from apsvm.models.header import Bounds, Data
from apsvm.models.net import Layer, Net
from apsvm.risk import LayerRisk
from apsvm.solvers.state import State
from apsvm.trainers.base import Outcome, Progress, TrainingSet, Watch
from apsvm.trainers.settings import resolved
from apsvm.trainers.structured_svm.net_problem import NetProblem, log_loss_net, outputs_of
from apsvm.trainers.structured_svm.networks import DEFAULT_C, HELD_OUT_LOSS, course
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.stage import Stage

#: D as a share of C.
NEARNESS = 0.1
#: Maximum number of passes, and the number without held-out rows.
MOST_PASSES = 10
BLIND_PASSES = 1

_COLUMNS = {"pass": ">5d", "layer": ">6d", "risk": ">12.6f", "held out": ">10.6f", "iter": ">6d", "seconds": ">9.2f"}


def train_layer_wise(
    data: TrainingSet,
    loss: Loss,
    settings: StructuredSettings,
    hidden: Sequence[int],
    watch: Watch,
    start: Net | None = None,
) -> Iterator[Outcome]:
    """Train for one C of ``settings`` after another, each from the same net, until one is stopped.

    The net of an outcome is for unscaled rows. Its certificate is that of the last convex problem that changed it, in
    units of J.

    Parameters
    ----------
    data : unscaled rows in memory, which are standardised here
    hidden : units of the hidden layers, ≥ 1 each
    start : initial net, on standardised rows (``NetProblem.inputs``); None: trained by the log loss

    Raises
    ------
    TrainingError : too many values for the memory
    NothingToRankError : no query with both a positive and a negative row (a ValueError)
    FloatingPointError : feature values too large for a net
    """
    values = [resolved(C, DEFAULT_C) for C in settings.C]
    watch.log.write(
        "start",
        oracle=settings.oracle,
        C=values[0] if len(values) == 1 else values,
        epsilon=settings.epsilon,
        layer_wise=settings.layer_wise,
        seed=settings.seed,
    )
    began = time.perf_counter()
    problem = NetProblem.of(data, loss, settings)
    limit = settings.time_limit

    def out_of_time() -> bool:
        return limit is not None and time.perf_counter() - began >= limit

    def stop() -> bool:
        return out_of_time() or watch.should_stop()

    spans = Spans()
    if start is None:
        with spans["log loss"]:
            start = log_loss_net(problem.inputs, problem.relevant, hidden, settings.seed, stop=stop)
    for C in settings.C:
        outcome = _Descent(problem, replace(settings, C=(C,)), watch, began, spans).run(start, data)
        yield outcome
        if not outcome.as_asked:
            return
        spans = Spans()


class _Descent:
    """Passes from the log loss's net, for one C."""

    def __init__(
        self,
        problem: NetProblem,
        settings: StructuredSettings,
        watch: Watch,
        began: float,
        spans: Spans,
    ) -> None:
        self._problem, self._settings, self._watch = problem, settings, watch
        self._C, self._began = resolved(settings.C[0], DEFAULT_C), began
        self._risk = np.inf
        self._state = State.CONVERGED
        self._trouble: str | None = None
        self._certificate: Bounds | None = None
        self._iterations = self._fallbacks = 0
        self._spans = spans

    def run(self, start: Net, data: TrainingSet) -> Outcome:
        """The best net on the held-out rows, the start included; without held-out rows the last one."""
        problem, net, best = self._problem, start, start
        started_from = self._risk = best_risk = problem.risk_of(start)
        certificate: Bounds | None = None
        lowest, kept, most = problem.loss_of(start), 0, BLIND_PASSES if problem.held_out is None else MOST_PASSES
        ended = "all passes done"
        for number in range(1, most + 1):
            for at in reversed(range(len(net.layers))):
                net = self._improved(net, at, number, lowest)
                if self._state is not State.CONVERGED:
                    break
            loss = problem.loss_of(net)
            self._watch.log.write("pass", number=number, C=self._C, risk=self._risk, held_out=loss)
            if loss is None or lowest is None or loss < lowest:
                best, best_risk, lowest, kept = net, self._risk, loss, number
                certificate = self._certificate
            elif self._state is State.CONVERGED:
                ended = "no better on rows held out"
                break
            if self._state is not State.CONVERGED:
                break
        as_asked = self._state is State.CONVERGED
        fallbacks = [f"{self._fallbacks} working-set QPs needed cvxpy"] if self._fallbacks else []
        return Outcome(
            w=best.behind(problem.scaling),
            state=ended if as_asked else str(self._state),
            as_asked=as_asked,
            interrupted=self._state is State.INTERRUPTED,
            trouble=self._trouble,
            settings=self._settings,
            iterations=self._iterations,
            C=self._C,
            certificate=certificate,
            details={
                "oracle": problem.oracle.name,
                "passes": kept,
                "risk": best_risk,
                "risk of the log loss's network": started_from,
                HELD_OUT_LOSS: lowest,
            },
            data=Data(
                positives=int(data.target.relevant.sum()),
                queries=problem.risk.queries,
                queries_skipped=problem.risk.queries_skipped,
            ),
            notes=[course(kept, best_risk, started_from, lowest), *fallbacks],
            seconds={part: span.wall_ns / 1e9 for part, span in self._spans.items()},
        )

    def _improved(self, net: Net, at: int, number: int, held_out: float | None) -> Net:
        """The net with its layer ``at``, from 0, improved by the solver; unchanged if the risk would rise."""
        problem, C = self._problem, self._C
        layer, D = net.layers[at], NEARNESS * C
        K, r = C * D / (C + D), C / (C + D)
        before = np.column_stack([layer.weights, layer.bias])
        inputs = _inputs_of(net, at, problem.inputs)[problem.members]
        risk = LayerRisk(problem.risk, inputs, net.layers[at + 1 :], before)
        stage = Stage(
            risk,
            before.size,
            self._settings,
            self._watch,
            oracle=problem.oracle.name,
            start=before.ravel(),
        )
        used = time.perf_counter() - self._began
        report = stage.run(f"layer {at + 1}", K, seconds_used=used, centre=r * before.ravel(), is_shown=False)
        solution = report.solution
        after = solution.w.reshape(before.shape)
        improved = Layer(np.ascontiguousarray(after[:, :-1]), after[:, -1].copy())
        better = Net((*net.layers[:at], improved, *net.layers[at + 1 :]))
        value = problem.risk_of(better)
        kept = value <= self._risk
        if kept:
            net, self._risk = better, value
        self._watch.log.write(
            "layer",
            number=number,
            layer=at + 1,
            C=C,
            kept=kept,
            risk=value,
            majorant=solution.risk,
            objective=_square(better) / 2.0 + C * value,
        )
        bounds, unit = solution.certificate, C / K
        self._certificate = Bounds(
            primal=unit * bounds.primal,
            dual=unit * bounds.dual,
            gap=unit * bounds.gap,
            tolerance=unit * bounds.tolerance,
            exact=problem.oracle.exact,
            layer=at + 1,
        )
        self._state = State.CONVERGED if solution.state is State.STALLED else solution.state
        self._trouble = solution.trouble
        self._iterations += solution.iterations
        self._fallbacks += report.qp_fallbacks
        self._spans.add(report.spans)
        self._show(number, at, held_out, solution.iterations)
        return net

    def _show(self, number: int, at: int, held_out: float | None, iterations: int) -> None:
        seconds = time.perf_counter() - self._began
        values = dict(zip(_COLUMNS, (number, at + 1, self._risk, held_out, iterations, seconds), strict=True))
        self._watch.progress(Progress(f"layer-wise C={self._C:g}", _COLUMNS, values))


def _square(net: Net) -> float:
    """Σ ‖W_l‖², constants included."""
    return sum(float(np.vdot(array, array)) for layer in net.layers for array in layer)


def _inputs_of(net: Net, at: int, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Inputs (n, in + 1) of the layer ``at`` for the rows X, with a constant 1 as the last column."""
    h = np.maximum(outputs_of(net.layers[:at], X), 0.0) if at else X
    return np.column_stack([h, np.ones(len(h))])
