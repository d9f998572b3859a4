"""The metric that was trained for, on the training rows, as a line for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from apsvm._support.shown import printable
from apsvm.models.decision import line_of
from apsvm.models.header import LabelKind

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.metrics.evaluate import Evaluation
    from apsvm.models.base import Model
    from apsvm.models.header import Labels
    from apsvm.trainers.fitting import Fit


def training_metric(fit: Fit, model: Model) -> Iterator[str]:
    """A line on what the model was trained for, as ``apsvm eval`` would give it; none for a model of items."""
    from apsvm.metrics import MetricError

    if model.lists_items:
        return
    try:
        if model.has_classes:
            yield f"mean training {_figures(of_training_rows(fit.dataset, model))}"
        else:
            result = of_training_rows(fit.dataset, model)
            yield figures_of(result, model.header.labels, fit.dataset.unit)
    except MetricError as error:
        yield f"training {printable(model.header.metric or 'AP')}: {error}"


def of_training_rows(dataset: Dataset, model: Model) -> Evaluation:
    """The metric that the model was chosen by, or its own, on the rows it was trained on, and AP where they are of two
    classes; of a set of rankers the means over the classes.

    Raises
    ------
    MetricError : they are undefined there
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


def figures_of(result: Evaluation, labels: Labels, ranked: str = "rows") -> str:
    """The line; ``ranked``: what has a score."""
    graded = labels.kind in (LabelKind.GRADES, LabelKind.ORDER)
    counts = [] if graded else [f"{result.n_positives} of {result.n_rows} {ranked} positive"]
    if result.n_groups > 1:
        counts.append(f"mean of {_averaged(result)} queries")
    return f"training {_figures(result)}" + (f" ({', '.join(counts)})" if counts else "")


def _averaged(result: Evaluation) -> int:
    """How many queries the first metric's mean is over."""
    import numpy as np

    return int(np.count_nonzero(~np.isnan(next(iter(result.in_group.values())))))


def _figures(result: Evaluation) -> str:
    return ", ".join(f"{name} {value:.6f}" for name, value in result.values.items())
