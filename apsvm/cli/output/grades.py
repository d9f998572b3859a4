"""Remarks of ``apsvm train`` and ``cv`` on grades, and of ``eval`` on queries."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from apsvm._support.types import JsonObject
from apsvm.cli.shared import remark, say

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.data.labels import LabelOptions
    from apsvm.models.base import Model
    from apsvm.trainers.fitting import Fit

#: Default options if labels are grades of rows in queries.
OF_GRADES = {"metric": "nDCG(exp)@10", "loss": "ndcg"}
#: Grades up to the first have usual gains 2^grade − 1; from the second the gain overflows float64.
USUAL_GRADE, HIGHEST_GRADE = 10.0, 1024.0


def chosen_by_grades(
    dataset: Dataset, labels: LabelOptions, options: JsonObject, named: Collection[str]
) -> Mapping[str, str]:
    """Values for the options not in ``named``, if labels are grades of rows in queries and ``labels`` is default.
    Prints them in a line."""
    from apsvm.data.labels import LabelOptions, are_grades

    chosen = {option: value for option, value in OF_GRADES.items() if option in options and option not in named}
    if not chosen or labels != LabelOptions() or not are_grades(dataset):
        return {}
    values = " ".join(f"--{option} {shlex.quote(value)}" for option, value in chosen.items())
    remark(f"{dataset.source}: queries with grades: {values}")
    return chosen


def say_of_grades(fit: Fit) -> None:
    """Prints each caution on the grades of a training."""
    for caution in _cautions(fit):
        remark(f"warning: {fit.dataset.source}: {caution}")


def _cautions(fit: Fit) -> Iterator[str]:
    from apsvm.data.dataset import distinct, shown_label
    from apsvm.models.header import LabelKind

    if fit.target.labels.kind is not LabelKind.GRADES or fit.target.grades is None:
        return
    grades, labels = distinct(fit.target.grades), fit.dataset.classes()
    if fit.dataset.groups is None and grades.size > 2:
        yield "its labels are grades, and its rows have no queries (qid:, --qid-column): they are ranked as one list"
    if labels[0] < 0.0 and (labels <= 0.0).sum() > 1:
        yield f"labels below 0, the lowest {shown_label(labels[0])}, count as the grade 0"
    highest = float(grades[-1])
    if fit.trainer.gain == "exponential" and USUAL_GRADE < highest < HIGHEST_GRADE and grades.size > 2:
        yield (
            f"the highest grade is {shown_label(highest)}, and its gain 2^grade − 1 = {2.0**highest - 1.0:.3g}: beside "
            "it the lower ones hardly count. With --loss 'ndcg(linear)' a grade is its own gain"
        )


def say_without_queries(dataset: Dataset, models: Mapping[str, Model]) -> None:
    """Warns if the rows have no queries and one of ``models`` (by file) was trained on several."""
    if dataset.groups is not None:
        return
    for path, model in models.items():
        if (model.header.data.queries or 0) > 1:
            say(
                f"warning: {dataset.source}: its rows have no queries (qid:, --qid-column), and {path} was trained on "
                f"{model.header.data.queries}: they are judged as one list"
            )
            return
