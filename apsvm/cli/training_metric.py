"""The metric that was trained for, on the training rows, as a line for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.model import Model, RankerSet
    from apsvm.trainers.fitting import Fit


def training_metric(fit: Fit, model: Model) -> Iterator[str]:
    """A line on the model's own metric and on AP, as ``apsvm eval`` would give them; none for a model of items."""
    from apsvm.data.labels import recall
    from apsvm.metrics import MetricError
    from apsvm.metrics.evaluate import evaluate
    from apsvm.model import ItemRanker, RankerSet

    dataset = fit.dataset
    if isinstance(model, ItemRanker):
        return
    if isinstance(model, RankerSet):
        if dataset.groups is None:
            yield _mean_over_classes(fit, model)
        return
    names = list(dict.fromkeys([model.header.metric or "AP", "AP"]))
    target = recall(dataset, model.header.labels)
    groups = _queries(dataset.groups)
    try:
        result = evaluate(
            names, model.score(dataset.X), target.judgements, groups, relevant_from=target.lowest_relevant
        )
    except MetricError as error:
        yield f"training {names[0]}: {error}"
        return
    values = ", ".join(f"{name} {value:.6f}" for name, value in result.values.items())
    mean = "" if groups is None else f", mean of {result.n_groups - result.groups_skipped} queries"
    yield f"training {values} ({result.n_positives} of {result.n_rows} rows positive{mean})"


def _queries(groups: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
    """The groups, unless all rows are of one."""
    return None if groups is None or (groups == groups[0]).all() else groups


def _mean_over_classes(fit: Fit, model: RankerSet) -> str:
    import numpy as np

    from apsvm.metrics.classes import evaluate_classes

    labels = np.stack([fit.dataset.have(label) for label in model.classes], axis=1)
    result = evaluate_classes(["AP"], model.score(fit.dataset.X), labels)
    return f"mean training AP {result.values['AP']:.6f}"
