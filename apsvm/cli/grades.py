"""What ``apsvm train`` and ``cv`` say of grades, and ``eval`` of queries, that may be other than somebody thinks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from apsvm.cli.shared import say

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.model import Model
    from apsvm.trainers.fitting import Fit


def say_of_grades(fit: Fit) -> None:
    """A line for each caution on the grades of a training; none where its labels are two classes."""
    for caution in _cautions(fit):
        say(f"warning: {fit.dataset.source}: {caution}")


def _cautions(fit: Fit) -> Iterator[str]:
    from apsvm.data.dataset import distinct
    from apsvm.header import LabelKind

    if fit.target.labels.kind is not LabelKind.GRADES or fit.target.grades is None:
        return
    if fit.dataset.groups is None and distinct(fit.target.grades).size > 2:
        yield "its labels are grades, and its rows have no queries (qid:, --qid-column): they are ranked as one list"


def say_without_queries(dataset: Dataset, models: Mapping[str, Model]) -> None:
    """A line where the rows have no queries and a model, of ``models`` by their files, was trained on several."""
    if dataset.groups is not None:
        return
    for path, model in models.items():
        if (model.header.data.queries or 0) > 1:
            say(
                f"warning: {dataset.source}: its rows have no queries (qid:, --qid-column), and {path} was trained on "
                f"{model.header.data.queries}: they are judged as one list"
            )
            return
