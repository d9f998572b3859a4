"""A trainer as its author writes it: the perceptron on the worst pair of each query. While the lowest positive is not
ahead of the highest negative by a margin, w moves by their difference; the mean of all w is kept."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from apsvm.models.header import Data
from apsvm.trainers.base import Outcome, Progress, Trainer, TrainingSet, Watch
from apsvm.trainers.settings import Range, Settings, setting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class PerceptronSettings(Settings):
    """The settings of the perceptron; each field says the rest."""

    passes: int = setting(200, range=Range(1), label="passes", help="Corrections of each query, at most.")
    margin: float = setting(
        0.1, range=Range(0.0), grid=(0.01, 0.1, 1.0), label="margin", help="How far ahead a positive must be."
    )


class Perceptron(Trainer[PerceptronSettings]):
    """See the module."""

    family: ClassVar[str] = "perceptron"
    title: ClassVar[str] = "Perceptron (--loss perceptron)"
    Settings = PerceptronSettings
    losses: ClassVar[tuple[str, ...]] = ("perceptron",)

    def check(self, data: TrainingSet) -> Iterator[str]:
        from apsvm.risk import require_pairs

        require_pairs(data.target.relevant, data.queries)
        yield from ()

    def train(
        self,
        data: TrainingSet,
        watch: Watch,
        *,
        start: NDArray[np.float64] | None = None,
        validation: TrainingSet | None = None,
    ) -> Iterator[Outcome]:
        import numpy as np

        asked, relevant, began = self.settings, data.target.relevant, time.monotonic()
        queries = np.zeros(relevant.size, dtype=np.int64) if data.queries is None else data.queries
        members = [np.flatnonzero(queries == query) for query in np.unique(queries)]
        both = [rows for rows in members if 0 < relevant[rows].sum() < rows.size]
        pairs = [(rows[relevant[rows]], rows[~relevant[rows]]) for rows in both]
        w = np.zeros(data.rows.dimension) if start is None else start.copy()
        total, number, state = np.zeros_like(w), 0, "all passes done"
        watch.log.write("start", passes=asked.passes, margin=asked.margin)
        while number < asked.passes and state == "all passes done":
            scores, c = data.rows.scores(w), np.zeros(relevant.size)
            worst = [(pos[scores[pos].argmin()], neg[scores[neg].argmax()]) for pos, neg in pairs]
            wrong = [pair for pair in worst if scores[pair[0]] - scores[pair[1]] <= asked.margin]
            for pos, neg in wrong:
                c[pos], c[neg] = 1.0 / len(pairs), -1.0 / len(pairs)
            w, number = w + data.rows.combine(c), number + 1
            total += w
            watch.log.write("pass", number=number, wrong=len(wrong), seconds=time.monotonic() - began)
            watch.progress(Progress("", {"pass": ">6d", "wrong": ">8d"}, {"pass": number, "wrong": len(wrong)}))
            if not wrong or watch.should_stop():
                state = "interrupted" if wrong else "nothing is wrong"
            elif asked.time_limit is not None and time.monotonic() - began > asked.time_limit:
                state = "time limit"
        yield Outcome(
            w=total / number, settings=asked, state=state, iterations=number, interrupted=state == "interrupted",
            as_asked=state not in ("interrupted", "time limit"),
            data=Data(positives=int(relevant.sum()), queries=len(pairs), queries_skipped=len(members) - len(pairs)),
        )  # fmt: skip
