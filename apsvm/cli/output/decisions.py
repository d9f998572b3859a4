"""``apsvm predict --classify --probability``: labels and probabilities of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from apsvm._support.shown import printable
from apsvm.cli.shared import BAD_DATA, Failure
from apsvm.models.decision import line_of
from apsvm.models.header import LabelKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.models.base import Model
    from apsvm.models.header import Header


def answers(model: Model, scores: NDArray[np.float64], name: str, *, classify: bool, probability: bool) -> list[str]:
    """A line for each row: its scores, or its label and each class's probability. ``scores`` is (n,), or (n, k) for k
    classes; ``name`` is the model's file. Ends the command if the model has no threshold or no probabilities."""
    columns = scores[None] if scores.ndim == 1 else scores.T
    cells = [_labels(model, columns, name)] if classify else []
    if probability:
        each = zip(model.headers, columns, strict=True)
        cells += [list(map(repr, probabilities(header, column, name).tolist())) for header, column in each]
    elif not classify:
        cells += [list(map(repr, column)) for column in columns.tolist()]
    return ["\t".join(row) for row in zip(*cells, strict=True)]


def _labels(model: Model, columns: NDArray[np.float64], name: str) -> list[str]:
    """The label of each row. With several classes it is the one with the highest score above its threshold; where rows
    have several, all above theirs, with commas."""
    import numpy as np

    if not model.has_classes:
        negative, positive = names_of_two(model.header)
        return [positive if is_above else negative for is_above in _above(model.header, columns[0], name).tolist()]
    shown = [printable(model.header.shown_label(label)) for label in model.classes.tolist()]
    if not model.header.labels.several:
        return [shown[j] for j in np.argmax(columns - thresholds(model.headers)[:, None], axis=0).tolist()]
    above = np.stack([_above(*one, name) for one in zip(model.headers, columns, strict=True)], axis=1)
    return [",".join(shown[j] for j in np.flatnonzero(row).tolist()) for row in above]


def _above(header: Header, scores: NDArray[np.float64], name: str) -> NDArray[np.bool_]:
    if header.threshold is None:
        raise Failure(BAD_DATA, f"{name}: it has no threshold: apsvm train --threshold f1 makes such a model")
    above: NDArray[np.bool_] = scores > header.threshold.value
    return above


def probabilities(header: Header, scores: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """(n,) float64 probabilities of scores (n,). Ends the command if the model has none."""
    if header.calibration is None:
        raise Failure(BAD_DATA, f"{name}: it has no probabilities: apsvm train --calibrate auto makes such a model")
    return header.calibration.probability(scores)


def names_of_two(header: Header) -> tuple[str, str]:
    """Names of the negative and the positive class, as in the data file."""
    labels = header.labels
    if labels.names is not None:
        negative, positive = map(printable, labels.names)
        return negative, positive
    if labels.kind not in (LabelKind.BINARY, LabelKind.ONE_LABEL) or labels.positive is None:
        return "0", "1"
    positive = printable(header.shown_label(labels.positive))
    if len(labels.negative) == 1:
        return printable(header.shown_label(labels.negative[0])), positive
    return f"not {positive}", positive


def thresholds(headers: Sequence[Header]) -> NDArray[np.float64]:
    """(k,) thresholds of k classes; 0 for a class without one."""
    import numpy as np

    return np.array([line_of(one.threshold) for one in headers])
