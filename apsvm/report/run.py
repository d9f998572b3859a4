"""What is reported on: a run's log and models, and the rows they are judged on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apsvm.data.dataset import Dataset, shown_label
from apsvm.data.rows import Rows
from apsvm.data.scaling import NO_SCALING, UNIT_ROWS
from apsvm.losses import LOSSES, make_loss
from apsvm.metrics import MetricError
from apsvm.metrics.curves import Judged as JudgedCurve
from apsvm.metrics.curves import judged_curve
from apsvm.metrics.evaluate import Evaluation, evaluate
from apsvm.metrics.wilcoxon import PRESETS, WilcoxonMannWhitney
from apsvm.model import ItemRanker, LinearRanker, Model, RankerSet
from apsvm.records import Record
from apsvm.registry import spelled

#: What a report gives of every ranking, in the order of ``apsvm eval``.
METRICS = ("AP", "AUC", "P@5", "P@10", "nDCG")
GRADED_METRICS = ("nDCG(exp)", "nDCG(exp)@10")


@dataclass(frozen=True, slots=True)
class Finished:
    """A model of the run and the log's ``end`` record of it; ``name``: what tells it from the run's others."""

    name: str
    model: Model
    end: Record

    def rankers(self) -> Iterator[tuple[str, LinearRanker]]:
        """Its linear rankers and their names."""
        if isinstance(self.model, LinearRanker):
            yield self.name, self.model
        elif isinstance(self.model, RankerSet):
            for label in self.model.classes.tolist():
                name = ", ".join(part for part in (f"class {shown_label(label)}", self.name) if part)
                yield name, self.model.ranker(label)


@dataclass(frozen=True, slots=True)
class Run:
    """folder : its name; records : of the log; finished : its models, fewer than were asked for, or none, if it was
    stopped; dataset : the rows to judge them on, and ``lines``, (n,) int64, where they stand in the file, or None if
    they are no lines of text; notes : what the reader should know of all this"""

    folder: str
    records: Sequence[Record]
    finished: Sequence[Finished]
    dataset: Dataset | None
    lines: NDArray[np.int64] | None
    notes: Sequence[str]

    @property
    def command(self) -> Record:
        """The ``run`` record."""
        return next((record for record in self.records if record["event"] == "run"), {})

    def spans(self) -> dict[str, float]:
        """Seconds of the parts of all iterations, by what their records say."""
        found: dict[str, float] = {}
        for record in self.records:
            if record["event"] in ("iteration", "evaluation", "step"):
                for name, value in record.items():
                    if name.endswith("_wall_ns"):
                        part = name.removesuffix("_wall_ns")
                        found[part] = found.get(part, 0.0) + value / 1e9
        return found

    @property
    def start(self) -> Record:
        """The first ``start`` record: what is trained."""
        return next((record for record in self.records if record["event"] == "start"), {})

    @property
    def of_classes(self) -> bool:
        """Whether it trained a ranker a class (--one-vs-rest)."""
        return any(isinstance(finished.model, RankerSet) for finished in self.finished)

    def headers(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Name and header of every model, of several classes one each."""
        found: list[tuple[str, Mapping[str, Any]]] = []
        for finished in self.finished:
            if isinstance(finished.model, ItemRanker):
                found.append((finished.name, finished.model.header))
            else:
                found += [(name, ranker.header) for name, ranker in finished.rankers()]
        return found


@dataclass(frozen=True, eq=False)
class Judged:
    """A linear ranker on the run's rows: scores (n,), which rows are relevant (n,) bool, and the grades (n,) float64
    that it was trained on, None if these two classes; ``relevant_from`` is the lowest relevant grade."""

    title: str
    ranker: LinearRanker
    end: Record
    dataset: Dataset
    scores: NDArray[np.float64]
    relevant: NDArray[np.bool_]
    grades: NDArray[np.float64] | None
    relevant_from: float | None

    @property
    def groups(self) -> NDArray[np.int64] | None:
        return self.dataset.groups

    @property
    def judgements(self) -> NDArray[np.bool_] | NDArray[np.float64]:
        """What ``evaluate`` takes beside ``relevant_from``."""
        return self.relevant if self.grades is None else self.grades

    @property
    def trained_metric(self) -> str:
        """What the loss is the shortfall of; of a loss that names no metric, AP."""
        loss = self.ranker.header["loss"]
        if loss == "wmw":
            return _wmw(self.ranker.header)
        if loss.startswith("direct("):
            loss = loss[len("direct(") : -1]
        if spelled(loss, LOSSES) is not None:  # the code of a user's own is not run
            return make_loss(loss).metric or "AP"
        return "AP" if self.grades is None else GRADED_METRICS[0]

    @cached_property
    def evaluation(self) -> Evaluation | MetricError:
        """The figures of ``apsvm eval``, or why there are none."""
        names = [self.trained_metric, *METRICS]
        if self.grades is not None:
            names += GRADED_METRICS
        try:
            return evaluate(names, self.scores, self.judgements, self.groups, relevant_from=self.relevant_from)
        except MetricError as error:
            return error

    @cached_property
    def curve(self) -> JudgedCurve:
        """Of precision and recall; MetricError where there is no ``evaluation``."""
        return judged_curve(self.scores, self.judgements, self.relevant_from, self.groups)


def judge(title: str, ranker: LinearRanker, end: Record, dataset: Dataset) -> Judged:
    """The ranker on the rows, judged as it was trained. Raises DataError where the labels do not fit."""
    header, labels = ranker.header, dataset.relevance
    grades: NDArray[np.float64] | None = None
    if header["loss"] == "wmw":
        cuts = header["classes"].get("cuts")
        grades = labels if cuts is None else (1 + np.searchsorted(cuts, labels, side="right")).astype(np.float64)
    elif header.get("preference"):
        grades = labels
    elif ranker.positive_label is None and ranker.relevant_from is None and header["loss"].startswith("ndcg"):
        grades = labels if np.unique(labels).size > 2 else None
    start = ranker.relevant_from
    if grades is None:
        relevant = dataset.positives(ranker.positive_label, start)
        start = None
    else:
        if start is None:
            lowest = float(grades.min()) if header["loss"] == "wmw" or header.get("preference") else 0.0
            start = float(grades[grades > lowest].min(initial=np.inf))
        relevant = grades >= start
    return Judged(title, ranker, end, dataset, ranker.score(dataset.X), relevant, grades, start)


def _wmw(header: Mapping[str, Any]) -> str:
    """The metric of the preference graph that the ranker was trained on."""
    graph = header["graph"]
    if graph["edges"]:
        return WilcoxonMannWhitney(tuple((low, high) for low, high in graph["edges"])).name
    return WilcoxonMannWhitney(graph["name"] if graph["name"] in PRESETS else "full").name


@dataclass(frozen=True, slots=True)
class Weights:
    """Of the features, (d,) float64 each: the weight, the mean and the deviation of the feature (within queries where
    there are some), and what the feature contributes to the differences of scores, |weight|·deviation."""

    weight: NDArray[np.float64]
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]

    @property
    def contribution(self) -> NDArray[np.float64]:
        return np.abs(self.weight) * self.deviation


def weights(judged: Judged) -> Weights:
    """Of the ranker, on the rows as it scores them."""
    scaling = UNIT_ROWS if judged.ranker.unit_rows else NO_SCALING
    moments = Rows(judged.dataset.X, scaling=scaling).moments(judged.groups)
    return Weights(judged.ranker.coef, moments.mean, np.sqrt(moments.variance))
