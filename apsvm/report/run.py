"""Input of a report: a run's log and models, and the rows to judge them on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from apsvm._support.log import Record
from apsvm.data.dataset import Dataset
from apsvm.data.labels import Target, recall
from apsvm.metrics import MetricError, trained_metric
from apsvm.metrics.curves import Judged as JudgedCurve
from apsvm.metrics.curves import judged_curve
from apsvm.metrics.evaluate import Evaluation, evaluate
from apsvm.models.bags import ranked
from apsvm.models.base import Model, Ranker
from apsvm.models.decision import line_of
from apsvm.models.header import Header

#: Metrics of every ranking, in the order of ``apsvm eval``.
METRICS = ("AP", "AUC", "P@5", "P@10", "nDCG")
GRADED_METRICS = ("nDCG(exp)", "nDCG(exp)@10")


@dataclass(frozen=True, slots=True)
class Run:
    """A training run.

    Attributes
    ----------
    folder : its name
    records : records of the log
    model : the trained model
    end : the log's ``end`` record
    dataset : n rows to judge the rankers on, if there are any
    lines : (n,) int64 line numbers of the rows in a text file, from 1; None for other files
    notes : remarks for the reader
    """

    folder: str
    records: Sequence[Record]
    model: Model
    end: Record
    dataset: Dataset | None
    lines: NDArray[np.int64] | None
    notes: Sequence[str]

    @property
    def command(self) -> Record:
        """The ``run`` record."""
        return next((record for record in self.records if record["event"] == "run"), {})

    @property
    def of_classes(self) -> bool:
        """True if the run trained one ranker per class (--one-vs-rest)."""
        return self.model.has_classes

    def rankers(self) -> Iterator[tuple[str, Ranker]]:
        """The rankers of rows and their names."""
        yield from zip(self._names(), self.model.rankers(), strict=False)

    def headers(self) -> list[tuple[str, Header]]:
        """Name and header of the model, or of each class."""
        return list(zip(self._names(), self.model.headers, strict=True))

    def _names(self) -> list[str]:
        if not self.of_classes:
            return [""]
        return [f"class {self.model.header.shown_label(label)}" for label in self.model.classes.tolist()]


@dataclass(frozen=True, eq=False)
class JudgedRanker:
    """A ranker on the run's rows.

    Attributes
    ----------
    title : name that tells it from the run's other rankers
    dataset : n rows
    scores : (n,) float64
    target : meaning of the rows' labels for the ranker
    """

    title: str
    ranker: Ranker
    dataset: Dataset
    scores: NDArray[np.float64]
    target: Target

    @property
    def relevant(self) -> NDArray[np.bool_]:
        """(n,) bool"""
        return self.target.relevant

    @property
    def grades(self) -> NDArray[np.float64] | None:
        """(n,) float64 grades of the rows; None if rows are only relevant or not."""
        return self.target.grades

    @property
    def groups(self) -> NDArray[np.int64] | None:
        """(n,) int64, the queries, if there are any."""
        return self.dataset.groups

    @property
    def trained_metric(self) -> str:
        """Metric that the loss optimises; AP if the loss names none."""
        return trained_metric(self.ranker.header.metric).name

    @cached_property
    def evaluation(self) -> Evaluation | MetricError:
        """Figures of ``apsvm eval``, without metrics undefined on these rows; the error if there are none."""
        names = [self.trained_metric, *METRICS]
        names += [] if self.grades is None else GRADED_METRICS
        target = self.target
        try:
            return evaluate(
                names,
                self.scores,
                target.judgements,
                self.groups,
                relevant_from=target.lowest_relevant,
                threshold=line_of(self.ranker.header.threshold),
                leave_out_undefined=True,
            )
        except MetricError as error:
            return error

    @cached_property
    def curve(self) -> JudgedCurve | None:
        """Precision-recall curve; None if no ranking has both kinds of rows."""
        target = self.target
        try:
            return judged_curve(self.scores, target.judgements, target.lowest_relevant, self.groups)
        except MetricError:
            return None


def judge(title: str, ranker: Ranker, dataset: Dataset) -> JudgedRanker:
    """The ranker on the rows, judged as in training. Raises DataError if the labels do not fit."""
    judged, scores = ranked(ranker, dataset)
    return JudgedRanker(title, ranker, judged, scores, recall(judged, ranker.header.labels))
