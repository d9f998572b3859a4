"""What a choice is worth on rows that it has not seen: the whole of it, the search, the choice and the training on all
rows, in each of some outer folds, judged on what that fold leaves out. The mean over the folds of the search itself,
by which the winner was chosen, is a little too high."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm.data.bags import rows_of_bags
from apsvm.data.labels import Target
from apsvm.models.base import Ranker
from apsvm.selection.bags import bags_as_rows, scores_of_bags
from apsvm.selection.choice import Candidate
from apsvm.selection.folds import FoldError, make_folds
from apsvm.selection.search import Followers, SettingsSearch
from apsvm.trainers.fitting import bags_settled

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.metrics import Metric


@dataclass(frozen=True, slots=True)
class OuterFold:
    """The outcome of one: the chosen setting, in words, and each metric on the rows left out."""

    chosen: str
    values: Mapping[str, float]


def nested(
    dataset: Dataset,
    target: Target,
    metrics: Mapping[str, Metric],
    search: Callable[[Dataset, Followers], SettingsSearch | None],
    *,
    folds: int,
    seed: int,
    jobs: int = 0,
    followers: Followers = Followers(),  # noqa: B008  # frozen
) -> Iterator[OuterFold]:
    """The outer folds, as they are done; fewer if it is stopped.

    Parameters
    ----------
    target : what the rows, or the bags, are judged by
    search : gives the search over the rows it is given, run; None if it was stopped

    Raises
    ------
    FoldError : a fold would go without, or one of the folds within it
    SelectionError, MetricError, ValueError : as the search and the metrics raise them
    """
    only_grades = all(metric.graded for metric in metrics.values())
    units = bags_as_rows(dataset)
    outer = make_folds(target, units.groups, folds, seed, only_grades=only_grades, bags=units.bags)
    for number, (training, test) in enumerate(outer, 1):
        piece = followers.strand.piece(f"outer fold {number}")
        if piece.result is not None:
            yield OuterFold(piece.result["chosen"], piece.result["values"])
            continue
        with piece.strand("search") as strand:
            within = replace(followers, strand=strand)
            try:
                run = (
                    None if followers.should_stop() else search(dataset.select(rows_of_bags(dataset, training)), within)
                )
            except FoldError as error:
                raise FoldError(f"outer fold {number}: {error}") from None
            candidates: Sequence[Candidate] = [] if run is None else run.candidates()
            if run is None or not candidates or followers.should_stop():
                break
            chosen = run.choose(candidates)
            average = run.average(candidates, chosen, jobs, within)
            refit = run.refit(average or chosen, candidates, jobs, within)
        if refit is None or followers.should_stop():
            break
        (ranker,) = refit.model.rankers()
        fit = run.fits[chosen.grid]
        features = fit.features.features
        setting = ", ".join([chosen.loss, features, *(f"{name} {value}" for name, value in chosen.choice.items())])
        if average is not None:
            setting = f"the average of the best on {', '.join(average.maps)}"
        left_out = bags_settled(dataset.select(rows_of_bags(dataset, test)), fit.trainer, fit.features.pool)
        groups = None if units.groups is None else units.groups[test]
        values = _judged(ranker, left_out, target.of(test), groups, metrics)
        piece.done({"chosen": setting, "values": values})
        yield OuterFold(setting, values)


def _judged(
    model: Ranker,
    left_out: Dataset,
    target: Target,
    groups: NDArray[np.int64] | None,
    metrics: Mapping[str, Metric],
) -> dict[str, float]:
    """Each metric of the rows, or bags, left out; ``target`` and ``groups`` are theirs."""
    from apsvm.metrics.evaluate import evaluate

    result = evaluate(
        list(metrics.values()),
        scores_of_bags(left_out, np.arange(left_out.relevance.size), model.score(left_out.X)),
        target.judgements,
        groups,
        relevant_from=target.lowest_relevant,
    )
    return {name: float(value) for name, value in result.values.items()}
