"""``apsvm predict`` and ``apsvm eval`` for a model of items (``apsvm train --loss warp --rows-as-users``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from apsvm._support.shown import printable
from apsvm.cli.reading import rows_for
from apsvm.cli.shared import BAD_DATA, Failure, bad_data
from apsvm.data.read_options import ReadOptions

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from apsvm.models.items import ItemRanker
    from apsvm.trainers.warp.item_factors import ListEvaluation

#: Number of items that ``predict`` lists.
TOP = 10
#: The share of each user's items that ``eval`` hides.
HIDDEN_SHARE = 0.2


def best_items(ranker: ItemRanker, path: str, read: ReadOptions, k: int, *, ignore_unknown: bool) -> list[str]:
    """The k best items of each row of ``path`` as ``item:score``, best first, without the row's own items. Separated by
    blanks if the file numbers its items, by tabs if they are table columns."""
    data = rows_for(ranker, path, read, ignore_unknown=ignore_unknown, unlabelled=True)
    names = [printable(name) for name in ranker.features()]
    between = " " if ranker.header.features.names is None else "\t"
    with bad_data(data.source):
        best = ranker.top(data.X, k)
    return [
        between.join(f"{names[item]}:{score!s}" for item, score in zip(items.tolist(), scores, strict=True))
        for items, scores in best
    ]


def evaluate_items(
    ranker: ItemRanker,
    path: str,
    read: ReadOptions,
    metrics: Sequence[str],
    *,
    known: str | None,
    ignore_unknown: bool,
) -> ListEvaluation:
    """Evaluates the ranker's lists on the items in ``path``. The lists are made from ``known``; without it, a share of
    each user's items is hidden and ranked from the rest."""
    import numpy as np

    from apsvm.data.liked import hide, rated_items
    from apsvm.trainers.warp.item_factors import evaluate_lists

    def lists(name: str, how: ReadOptions) -> tuple[str, csr_array]:
        data = rows_for(ranker, name, how, ignore_unknown=ignore_unknown, unlabelled=True)
        return data.source, rated_items(data.X)

    source, hidden = lists(path, read)
    if known is None:
        shown, hidden, _ = hide(hidden, HIDDEN_SHARE, np.random.default_rng(0))
    else:
        known_source, shown = lists(known, read.of_a_second_file())
        if shown.shape != hidden.shape:
            raise Failure(
                BAD_DATA,
                f"{known_source}: expected {hidden.shape[0]} rows, the users of {source}, found {shown.shape[0]}",
            )
    with bad_data(source):
        return evaluate_lists(ranker.score, shown, hidden, metrics)
