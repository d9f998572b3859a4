"""Input of a report: a run's log and models, and the rows to judge them on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm._support.log import Record
from apsvm.data.dataset import DataError, Dataset
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

    def headers(self) -> Iterator[tuple[str, Header]]:
        """Name and header of the model, or of each class."""
        yield from zip(self._names(), self.model.headers, strict=True)

    def judged(self) -> tuple[list[JudgedRanker], list[str]]:
        """Every ranker of rows, judged on the rows, and why some cannot be judged."""
        rankers: list[JudgedRanker] = []
        failures: list[str] = []
        if self.dataset is not None:
            for title, ranker in zip(self._names(), self.model.rankers(), strict=False):
                try:
                    rankers.append(judge(title, ranker, self.dataset))
                except (DataError, ValueError) as error:
                    failures.append(f"{title or 'The model'} cannot be judged on these rows: {error}")
        return rankers, failures

    def _names(self) -> list[str]:
        if not self.model.has_classes:
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
    metric : name of the metric that the loss optimises; AP if the loss names none
    evaluation : figures of ``apsvm eval``, without metrics undefined on these rows
    curve : precision–recall curve; None if no ranking has both kinds of rows
    """

    title: str
    ranker: Ranker
    dataset: Dataset
    scores: NDArray[np.float64]
    target: Target
    metric: str
    evaluation: Evaluation
    curve: JudgedCurve | None

    @property
    def groups(self) -> NDArray[np.int64] | None:
        """(n,) int64 query numbers, if there are queries."""
        return self.dataset.groups


def judge(title: str, ranker: Ranker, dataset: Dataset) -> JudgedRanker:
    """The ranker on the rows, judged as in training.

    Raises
    ------
    DataError : the labels do not fit
    MetricError : no metric is defined on these rows
    """
    rows, scores = ranked(ranker, dataset)
    target, metric, curve = recall(rows, ranker.header.labels), trained_metric(ranker.header.metric).name, None
    evaluation = evaluate(
        [metric, *METRICS, *([] if target.grades is None else GRADED_METRICS)],
        scores,
        target.judgements,
        rows.groups,
        relevant_from=target.lowest_relevant,
        threshold=line_of(ranker.header.threshold),
        leave_out_undefined=True,
    )
    with suppress(MetricError):
        curve = judged_curve(scores, target.judgements, target.lowest_relevant, rows.groups)
    return JudgedRanker(title, ranker, rows, scores, target, metric, evaluation, curve)
