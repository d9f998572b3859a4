"""``--bound auto``: the hinge or the tight bound, and with ``-C auto`` the C too, by the loss on rows held out.

The hinge is convex and hard to beat where nearly every positive can be found; where some are hopeless it gives up, and
the tight bound does not. Which of the two a data set wants shows in a second: candidates are trained on a part of the
rows, loosely, and judged by Δ itself (``risk.by_order``) on the rest (``comparison``).

Which rows those are is decided by what a pass over them costs (``candidate_splits``). The choice does not depend on the
number of threads.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.base import Loss
from apsvm.metrics.thresholds import ChosenThreshold
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.settings import Multiple, saved_value, value_of_saved
from apsvm.trainers.structured_svm.candidate_splits import candidate_splits
from apsvm.trainers.structured_svm.comparison import BoundCandidate, Comparison
from apsvm.trainers.structured_svm.settings import DEFAULT_C, StructuredSettings, shown_C
from apsvm.work import Piece, Saved


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen.

    Attributes
    ----------
    bound : "hinge" or "tight"
    C : the values to train with
    candidates : all that was tried, the chosen one first and then by its loss; empty where nothing could be held out
    how : what was held out, or why nothing was
    seconds : that it took
    w : (dimension,) float64, the best candidate's weights on the first split: a start for the tight bound
    threshold : of the highest F1 of the best candidate on the rows held out, on scores whose training rows' have mean 0
        and deviation 1; None of grades, several queries or several C, and of many rows
    called : the share of the training rows above it, of all rows' share of positives; None where none of the negatives
        is, and the threshold lies somewhere in a gap
    """

    bound: str
    C: tuple[float | Multiple, ...]
    candidates: Sequence[BoundCandidate]
    how: str
    seconds: float
    w: NDArray[np.float64] | None = None
    threshold: ChosenThreshold | None = None
    called: float | None = None

    def to_saved(self) -> Saved:
        """For ``of_saved``."""
        return {
            "bound": self.bound,
            "C": [saved_value(C) for C in self.C],
            "candidates": [[one.bound, saved_value(one.C), one.loss] for one in self.candidates],
            "how": self.how,
            "seconds": self.seconds,
            "w": self.w,
            "threshold": None if self.threshold is None else asdict(self.threshold),
            "called": self.called,
        }

    @classmethod
    def of_saved(cls, saved: Saved) -> Choice:
        """The choice that was saved."""
        candidates = [BoundCandidate(bound, value_of_saved(C), loss) for bound, C, loss in saved["candidates"]]
        C = tuple(map(value_of_saved, saved["C"]))
        known = saved.get("threshold")  # a checkpoint of an earlier version has none
        threshold = None if known is None else ChosenThreshold(**known)
        called = saved.get("called")  # likewise
        return cls(saved["bound"], C, candidates, saved["how"], saved["seconds"], saved["w"], threshold, called)

    def __str__(self) -> str:
        return self.in_words()

    def in_words(self, start: str = "") -> str:
        """A line; ``start``: the loss that the choice is of, where another loss starts from its model."""
        begins, loss = (f"--bound auto of the start, {start}", f"{start} loss") if start else ("--bound auto", "loss")
        if not self.candidates:
            return f"{begins}: {self.bound} ({self.how})"
        best = self.candidates[0]
        other = next((one for one in self.candidates if one.bound != best.bound), None)
        against = "" if other is None else f"; {other.bound} at its best: {other.loss:.4g} (C = {shown_C(other.C)})"
        return (
            f"{begins}: {best.bound}, C = {shown_C(best.C)}: {loss} {best.loss:.4g} on rows held out ({self.how})"
            f"{against}"
        )


def choose(data: TrainingSet, loss: Loss, settings: StructuredSettings, watch: Watch) -> Choice:
    """The bound for ``data``, and the C if ``settings`` leave it to the default.

    Parameters
    ----------
    loss : over rankings
    settings : all but ``bound`` count; a third of the time limit at most is spent
    """
    if not watch.strand.is_stored:
        return _compared(data, loss, settings, watch)
    piece = watch.strand.piece("the choice of the bound")
    if piece.result is not None:
        return Choice.of_saved(piece.result)
    choice = _compared(data, loss, settings, watch, piece)
    if watch.should_stop():
        piece.broken_off()
    piece.done(choice.to_saved())
    return choice


def _compared(
    data: TrainingSet, loss: Loss, settings: StructuredSettings, watch: Watch, piece: Piece | None = None
) -> Choice:
    began = time.perf_counter()
    splits, how = candidate_splits(data, settings.seed)
    if not splits:
        return Choice("hinge" if data.components == 1 else "tight", settings.C, (), how, time.perf_counter() - began)
    comparison = Comparison(data, loss, settings, watch, splits, began, piece)
    free = settings.C == DEFAULT_C
    comparison.try_all(None if free else settings.C)
    candidates = comparison.candidates()
    if not candidates:
        seconds = time.perf_counter() - began
        return Choice("hinge" if data.components == 1 else "tight", settings.C, (), comparison.why_nothing, seconds)
    top = candidates[0]
    C = (top.C,) if free else settings.C
    threshold, called = (comparison.threshold(top) if C == (top.C,) else None) or (None, None)
    seconds = time.perf_counter() - began
    return Choice(top.bound, C, candidates, how, seconds, comparison.end(0, top.bound, top.C), threshold, called)
