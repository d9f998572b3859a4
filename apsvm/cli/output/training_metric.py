"""The trained metric on the training rows, as a line of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from apsvm._support.shown import printable
from apsvm.models.decision import line_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm._support.types import Matrix
    from apsvm.data.dataset import Dataset
    from apsvm.metrics.evaluate import Evaluation
    from apsvm.models.base import Model
    from apsvm.trainers.base import Outcome
    from apsvm.trainers.fitting import Fit


def training_metric(fit: Fit, model: Model) -> Iterator[str]:
    """The line of the trained metric, as ``apsvm eval`` computes it; empty for a model of items."""
    import numpy as np

    from apsvm.metrics import MetricError

    if model.lists_items:
        return
    try:
        result = of_training_rows(fit.dataset, model)
    except MetricError as error:
        yield f"training {printable(model.header.metric or 'AP')}: {error}"
        return
    figures = ", ".join(f"{name} {value:.6f}" for name, value in result.values.items())
    averaged = np.count_nonzero(~np.isnan(next(iter(result.in_group.values())))) if result.n_groups > 1 else 0
    if model.has_classes:
        yield f"mean training {figures}"
    else:
        yield f"training {figures}" + (f" (mean of {averaged} queries)" if averaged else "")


#: A loss below this is rounding error.
_FLAWLESS = 1e-9
#: Most columns that a warning names.
_MOST_NAMED = 3


def cautions_on_choice(fit: Fit, outcome: Outcome) -> Iterator[str]:
    """Warns if few positives chose the settings, or if held-out rows are ranked perfectly; names columns at fault."""
    import numpy as np

    from apsvm.selection.folds import FEW_POSITIVES

    dataset, relevant = fit.dataset, fit.target.relevant
    choice = outcome.details.get("choice")
    candidates = choice.get("candidates") if isinstance(choice, dict) and "start" not in choice else None
    best = candidates[0] if isinstance(candidates, list) and candidates else None
    if best is not None and fit.target.grades is None and dataset.groups is None:
        positives = int(relevant.sum())
        if dataset.bags is not None and fit.trainer.capabilities.bags:
            positives = np.unique(dataset.bags[relevant]).size
        if 0 < positives < FEW_POSITIVES:
            yield f"warning: {dataset.source}: {positives} positives are few: the choice of settings is mostly chance"
    if not isinstance(best, dict) or not isinstance(best["loss"], float) or best["loss"] >= _FLAWLESS:
        return
    if fit.trainer.loss_name != "ap" or relevant.all() or not relevant.any():
        return
    (low, high), (other_low, other_high) = (_extremes(dataset.X[rows]) for rows in (relevant, ~relevant))
    columns = np.flatnonzero((low > other_high) | (high < other_low))[:_MOST_NAMED].tolist()
    if not columns:
        what = "a feature may know the label (apsvm predict --explain shows what counts)"
    elif dataset.table is None:
        numbers = ", ".join(str(column + (not dataset.zero_based)) for column in columns)
        what = f"feature {numbers} alone tells positives from negatives: does it know the label?"
    else:
        names = ", ".join(dataset.table.columns.feature_names()[column] for column in columns)
        what = f"column {names} alone tells positives from negatives: does it know the label (--drop)?"
    yield f"warning: {dataset.source}: held-out rows are ranked without a fault: {what}"


def _extremes(X: Matrix) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(d,) each column's lowest and highest value."""
    import numpy as np

    if isinstance(X, np.ndarray):
        return X.min(axis=0), X.max(axis=0)
    return X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()


def of_training_rows(dataset: Dataset, model: Model) -> Evaluation:
    """The metric that chose the model, or its own, on the training rows, and AP with two classes; for several rankers,
    means over classes.

    Raises
    ------
    MetricError : the metrics are undefined there
    """
    import numpy as np

    from apsvm.data.labels import recall
    from apsvm.metrics import trained_metric
    from apsvm.metrics.classes import evaluate_classes
    from apsvm.metrics.evaluate import evaluate
    from apsvm.models.bags import ranked

    chosen_by = (model.header.selection or {}).get("metric")
    metric = chosen_by if isinstance(chosen_by, str) else trained_metric(model.header.metric)
    dataset, scores = ranked(model, dataset)
    if model.has_classes:
        labels = np.stack([dataset.have(label) for label in model.classes], axis=1)
        thresholds = [line_of(header.threshold) for header in model.headers]
        return evaluate_classes(
            [metric, "AP"], scores, labels, model.classes, groups=dataset.groups, thresholds=thresholds
        )
    target = recall(dataset, model.header.labels)
    return evaluate(
        [metric, "AP"] if target.grades is None else [metric],
        scores,
        target.judgements,
        dataset.groups,
        relevant_from=target.lowest_relevant,
        threshold=line_of(model.header.threshold),
        leave_out_undefined=True,
    )
