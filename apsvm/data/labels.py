"""Meaning of labels: which rows are relevant, and how much. Training decides it once. The model's header keeps it
(``apsvm.models.header.Labels``), and evaluation of the model applies it again.

The trainer declares a kind of target (``Takes``), the user may name the positive label or the lowest relevant one, and
the labels decide the rest:

====================  ======================================================================================
two classes           +1 against −1 or 0; one label against all others; labels from a threshold on
grades                labels are grades with gains, those above 0 relevant, those below as 0
order                 only the order of labels counts; those above the lowest are relevant
classes               each label in turn against all others, one ranker a label (``--one-vs-rest``)
====================  ======================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm.data.dataset import DataError, distinct
from apsvm.data.takes import Takes as Takes
from apsvm.models.columns import ColumnKind
from apsvm.models.header import LabelKind, Labels

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray
    from apsvm.data.dataset import Dataset

#: Most negative labels in a model's header. A regression target split at a value has one for each row.
MOST_LISTED = 100
#: Largest whole grade whose gain a regression can fit.
MOST_GRADE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelOptions:
    """Label options of the user: the positive label (a number, or a word of a table), the lowest relevant label, or
    neither."""

    positive_label: float | str | None = None
    relevant_from: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """Interpreted labels of n rows.

    Attributes
    ----------
    labels : Labels
        The meaning, for a model's header.
    relevant : ndarray of bool
        (n,) bool.
    grades : ndarray, optional
        (n,) float64, the grades of the rows; None if rows are relevant or not.
    classes : EachLabel, optional
        The targets, one for each label; ``relevant`` has no meaning then.
    """

    labels: Labels
    relevant: NDArray[np.bool_]
    grades: NDArray[np.float64] | None = None
    classes: EachLabel | None = None

    def of(self, rows: NDArray[np.int64] | None) -> Target:
        """The target of the rows ``rows`` (m,) int64, in that order, or of all rows."""
        if rows is None:
            return self
        grades = None if self.grades is None else self.grades[rows]
        classes = None if self.classes is None else replace(self.classes, rows=rows)
        return Target(self.labels, self.relevant[rows], grades, classes)

    def regressands(self) -> NDArray[np.float64]:
        """(K, n) float64, the values for a regression of the labels: 1 for a relevant row and 0 for others; of grades
        the gain 2^grade − 1, if they are whole and at most ``MOST_GRADE``, else the grade; of K classes 1 in rows of
        the class."""
        if self.classes is not None:
            each = [self.classes.target(label).relevant for label in self.classes.labels]
            return np.array(each, dtype=np.float64)
        grades = self.grades
        if grades is None or not self.is_graded:
            return self.relevant[None].astype(np.float64)
        whole = grades.min() >= 0.0 and grades.max() <= MOST_GRADE and bool((grades == np.floor(grades)).all())
        return np.array([np.exp2(grades) - 1.0 if whole else grades])

    @property
    def is_graded(self) -> bool:
        """True if the rows have more than two grades."""
        return self.grades is not None and distinct(self.grades).size > 2

    @property
    def judgements(self) -> NDArray[np.bool_] | NDArray[np.float64]:
        """(n,) the labels for metrics, together with ``lowest_relevant``."""
        return self.relevant if self.grades is None else self.grades

    @property
    def lowest_relevant(self) -> float | None:
        """The lowest relevant grade, infinite if no row is relevant; None without grades."""
        if self.grades is None:
            return None
        if self.labels.relevant_from is not None:
            return self.labels.relevant_from
        return float(self.grades[self.relevant].min(initial=np.inf))


@dataclass(frozen=True, slots=True, eq=False)
class EachLabel:
    """Targets of the rows ``rows`` (m,) int64 of a data set, or of all rows: each label against all others."""

    dataset: Dataset
    rows: NDArray[np.int64] | None = None

    @property
    def labels(self) -> list[float]:
        """The labels of the data set, ascending."""
        labels: list[float] = self.dataset.classes().tolist()
        return labels

    def target(self, label: float) -> Target:
        """The target in which rows with the label are relevant. Raises DataError if all rows have it, or none."""
        relevant = self.dataset.have(label)
        if self.rows is not None:
            relevant = relevant[self.rows]
        several = self.dataset.label_sets is not None
        return Target(
            Labels(kind=LabelKind.ONE_LABEL, positive=label, several=several), self.dataset.both_classes(relevant)
        )


def decide(dataset: Dataset, takes: Takes, options: LabelOptions = LabelOptions()) -> Target:  # frozen
    """Interpret the labels of ``dataset`` for a trainer.

    Raises
    ------
    DataError
        The labels do not fit; all rows are relevant, or none; item lists have columns of words.
    """
    if takes is Takes.NOTHING:
        _refuse_words(dataset)
        return Target(Labels(kind=LabelKind.NONE), np.zeros(dataset.relevance.size, dtype=np.bool_))
    if takes is Takes.CLASSES:
        several = dataset.label_sets is not None
        nothing = np.zeros(dataset.relevance.size, dtype=np.bool_)
        return Target(Labels(kind=LabelKind.CLASSES, several=several), nothing, classes=EachLabel(dataset))
    if takes is Takes.ORDER and dataset.label_sets is None:
        return ordered(dataset.ordered_labels(), relevant_from=options.relevant_from)
    if takes is Takes.GRADES and options == LabelOptions() and dataset.label_sets is None:
        target = graded(dataset.ordered_labels())
        if target.grades is not None and target.relevant.any():
            return target
    return two_classes(dataset, options)


def _refuse_words(dataset: Dataset) -> None:
    """Raises DataError for item lists with a column of words. A word is no item, and a table of (user, item) pairs
    would be read as if each pair were a user."""
    columns = () if dataset.table is None else dataset.table.columns.features
    words = [column.name for column in columns if column.kind is ColumnKind.CATEGORY]
    if words:
        raise DataError(
            f"{dataset.source}: words in {', '.join(words)}, where --rows-as-users (rows_as_users=) takes a row a user "
            "and a column of numbers an item, above 0 where the user likes it. If the rows are pairs of a user "
            "and an item, make such a matrix of them first: the documentation has a recipe, under Recommendation "
            "(docs/cases/recommendation.md). A column that says which user a row is: --id-column NAME"
        )


#: Kinds of labels whose meaning in one ranking is not in the header: there is none, or the labels show it.
_NOT_OF_ONE_RANKING = (LabelKind.BINARY, LabelKind.CLASSES, LabelKind.NONE)


def judge(
    dataset: Dataset,
    options: LabelOptions = LabelOptions(),  # frozen
    labels: Labels | None = None,
    *,
    graded_metrics: bool = False,
) -> Target:
    """Interpret the labels of ``dataset`` for metrics: by the user's options, else by the model's ``labels``. Without
    both, rows are graded if all metrics read grades and there are more than two, else relevant or not.

    Raises
    ------
    DataError
        The labels do not fit; all rows are relevant, or none.
    """
    several = dataset.label_sets is not None
    if options.relevant_from is not None and not several:
        return ordered(dataset.ordered_labels(), relevant_from=options.relevant_from)
    if options == LabelOptions() and labels is not None and labels.kind not in _NOT_OF_ONE_RANKING:
        return recall(dataset, labels)
    if options == LabelOptions() and graded_metrics and not several:
        levels = distinct(dataset.relevance)
        if levels.size > 2:  # only the number of positives depends on the threshold
            return ordered(dataset.ordered_labels(), relevant_from=float(levels[1]))
    return two_classes(dataset, options)


def two_classes(dataset: Dataset, options: LabelOptions) -> Target:
    """The relevant rows and the others. Raises DataError as ``decide``."""
    positive = None if options.positive_label is None else dataset.label_value(options.positive_label)
    relevant = dataset.positives(positive, options.relevant_from)
    several = dataset.label_sets is not None
    if options.relevant_from is not None:
        return Target(Labels(kind=LabelKind.THRESHOLD, relevant_from=options.relevant_from), relevant)
    negative = tuple(dataset.classes(~relevant)[:MOST_LISTED].tolist())
    if positive is None:
        words = () if dataset.table is None else dataset.table.columns.label_words
        labels = Labels(kind=LabelKind.BINARY, positive=1.0, negative=negative, names=words or None)
        return Target(labels, relevant)
    words = () if dataset.table is None else dataset.table.columns.label_words
    if words:
        word = dataset.shown_label(positive)
        names = (words[1 - int(positive)] if len(words) == 2 else f"not {word}", word)
        return Target(Labels(kind=LabelKind.ONE_LABEL, positive=positive, names=names), relevant)
    labels = Labels(kind=LabelKind.ONE_LABEL, positive=positive, negative=negative, several=several)
    return Target(labels, relevant)


def of_relevance(relevant: NDArray[np.bool_]) -> Target:
    """The target with these relevant rows (n,)."""
    return Target(Labels(kind=LabelKind.BINARY, positive=1.0), relevant)


def are_grades(dataset: Dataset) -> bool:
    """True if the labels are grades: more than two different numbers in rows with queries, none below 0."""
    if dataset.groups is None or dataset.label_sets is not None:
        return False
    labels = dataset.classes()
    words = dataset.table is not None and dataset.table.columns.label_words
    return labels.size > 2 and labels[0] >= 0.0 and not words


def graded(grades: NDArray[np.float64]) -> Target:
    """The target of grades (n,). Labels of +1 and −1, or +1 and 0, are two classes."""
    relevant = grades > 0.0
    negative = tuple(distinct(grades, ~relevant).tolist())
    if (grades[relevant] == 1.0).all() and negative in ((), (-1.0,), (0.0,)):
        return Target(Labels(kind=LabelKind.BINARY, positive=1.0, negative=negative), relevant)
    return Target(Labels(kind=LabelKind.GRADES), relevant, np.maximum(grades, 0.0))


def ordered(
    grades: NDArray[np.float64],
    *,
    relevant_from: float | None = None,
    relevant_above: float | None = None,
    cuts: NDArray[np.float64] | None = None,
) -> Target:
    """The target of labels (n,) of which only the order counts.

    Parameters
    ----------
    relevant_from : float, optional
        Lowest relevant label.
    relevant_above : float, optional
        Labels above it are relevant, if there is no ``relevant_from``; by default the lowest of all.
    cuts : ndarray, optional
        (k − 1,) ascending: they cut the labels into the classes 1, 2 … k.
    """
    if cuts is not None:
        grades = (np.searchsorted(cuts, grades, side="right") + 1).astype(np.float64)
        relevant_above = 1.0
    if relevant_above is None:
        relevant_above = float(grades.min(initial=np.inf))
    relevant = grades > relevant_above if relevant_from is None else grades >= relevant_from
    labels = Labels(
        kind=LabelKind.ORDER,
        relevant_from=relevant_from,
        relevant_above=None if relevant_from is not None else relevant_above,
        cuts=None if cuts is None else tuple(cuts.tolist()),
    )
    return Target(labels, relevant, grades)


def threshold(
    grades: NDArray[np.float64], *, relevant_from: float | None = None, relevant_above: float = 0.0
) -> Target:
    """The target in which labels (n,) of at least ``relevant_from`` are relevant, or without it labels above
    ``relevant_above``."""
    if relevant_from is not None:
        return Target(Labels(kind=LabelKind.THRESHOLD, relevant_from=relevant_from), grades >= relevant_from)
    return Target(Labels(kind=LabelKind.THRESHOLD, relevant_above=relevant_above), grades > relevant_above)


def of_numbers(grades: NDArray[np.float64], takes: Takes, *, relevant_from: float | None = None) -> Target:
    """Interprets numbers (n,) for a trainer: as grades or an order if it takes them; otherwise, or with
    ``relevant_from``, rows above the threshold (0 by default) are relevant."""
    if takes is Takes.ORDER:
        return ordered(grades, relevant_from=relevant_from)
    if takes is Takes.GRADES and relevant_from is None:
        return graded(grades)
    return threshold(grades, relevant_from=relevant_from)


def of_two(values: AnyArray, classes: AnyArray) -> Target:
    """The target of values (n,) of any type. ``classes`` (2,) are the negative and the positive value."""
    relevant: NDArray[np.bool_] = values == classes[1]
    names = classes.tolist()
    if not all(isinstance(name, bool | int | float) for name in names):
        return Target(Labels(kind=LabelKind.BINARY, names=tuple(str(name) for name in names)), relevant)
    negative, positive = (float(name) for name in names)
    plain = positive == 1.0 and negative in (-1.0, 0.0)
    kind = LabelKind.BINARY if plain else LabelKind.ONE_LABEL
    return Target(Labels(kind=kind, positive=positive, negative=(negative,)), relevant)


def again(grades: NDArray[np.float64], labels: Labels) -> Target:
    """Interprets numbers (n,) as the training behind ``labels`` did."""
    if labels.kind is LabelKind.ORDER:
        cuts = None if labels.cuts is None else np.array(labels.cuts)
        target = ordered(grades, relevant_from=labels.relevant_from, relevant_above=labels.relevant_above, cuts=cuts)
        return replace(target, labels=labels)
    if labels.kind is LabelKind.THRESHOLD:
        above = 0.0 if labels.relevant_above is None else labels.relevant_above
        return threshold(grades, relevant_from=labels.relevant_from, relevant_above=above)
    if labels.kind is LabelKind.ONE_LABEL:
        return Target(labels, grades == labels.positive)
    return graded(grades)


def recall(dataset: Dataset, labels: Labels) -> Target:
    """Interpret the labels of ``dataset`` as the training of the model with ``labels`` did. Raises DataError as
    ``decide``."""
    if labels.kind in (LabelKind.NONE, LabelKind.CLASSES):
        return decide(dataset, Takes.NOTHING if labels.kind is LabelKind.NONE else Takes.CLASSES)
    if labels.kind is LabelKind.GRADES:
        return decide(dataset, Takes.GRADES)
    if labels.kind is LabelKind.ORDER and dataset.label_sets is None:
        return again(dataset.relevance, labels)
    if labels.kind is LabelKind.THRESHOLD and labels.relevant_above is not None:
        relevant = dataset.both_classes(dataset.relevance > labels.relevant_above)
        return Target(labels, relevant)
    one = labels.positive if labels.kind is LabelKind.ONE_LABEL else None
    return two_classes(dataset, LabelOptions(positive_label=one, relevant_from=labels.relevant_from))
