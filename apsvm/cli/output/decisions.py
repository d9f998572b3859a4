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


def answers(ranker: Model, scores: NDArray[np.float64], name: str, *, classify: bool, probability: bool) -> list[str]:
    """A line for each row: its scores, or its label and probabilities. ``scores`` is (n,), or (n, k) for k classes;
    ``name`` is the model's file. Ends the command if the model has no threshold or no probabilities."""
    if scores.ndim == 2:
        return _of_classes(ranker, scores, name, classify=classify, probability=probability)
    columns = []
    if classify:
        columns.append(_labels(ranker.header, scores, name))
    if probability:
        columns.append(list(map(repr, probabilities(ranker.header, scores, name).tolist())))
    return ["\t".join(row) for row in zip(*columns, strict=True)] if columns else list(map(repr, scores.tolist()))


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


def _labels(header: Header, scores: NDArray[np.float64], name: str) -> list[str]:
    negative, positive = names_of_two(header)
    return [positive if is_above else negative for is_above in _above(header, scores, name).tolist()]


def _above(header: Header, scores: NDArray[np.float64], name: str) -> NDArray[np.bool_]:
    if header.threshold is None:
        raise Failure(BAD_DATA, f"{name}: it has no threshold: apsvm train --threshold f1 makes such a model")
    above: NDArray[np.bool_] = scores > header.threshold.value
    return above


def _of_classes(
    model: Model, scores: NDArray[np.float64], name: str, *, classify: bool, probability: bool
) -> list[str]:
    """Lines of a model of k classes. The label is the one with the highest score above its threshold; if rows have
    several labels, all above theirs, with commas. Each class has a probability."""
    import numpy as np

    shown = [printable(model.header.shown_label(label)) for label in model.classes.tolist()]
    columns: list[list[str]] = []
    if classify and model.header.labels.several:
        above = np.stack([_above(header, scores[:, j], name) for j, header in enumerate(model.headers)], axis=1)
        columns.append([",".join(shown[j] for j in np.flatnonzero(row).tolist()) for row in above])
    elif classify:
        columns.append([shown[j] for j in np.argmax(scores - thresholds(model.headers), axis=1).tolist()])
    if probability:
        each = [probabilities(header, scores[:, j], name) for j, header in enumerate(model.headers)]
        columns += [list(map(repr, values.tolist())) for values in each]
    elif not classify:
        columns += [list(map(repr, column)) for column in scores.T.tolist()]
    return ["\t".join(row) for row in zip(*columns, strict=True)]
