"""What a recipe is: a family of trainers behind ``apsvm train``, with options of its own.

The command reads the data, opens the log, catches signals, writes models and says how long it took; the recipe says
which labels it can use, trains, and describes what it made.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import click

from apsvm.cli.shared import BAD_DATA, Failure, one_ranker, read_any_model, reading, thread_count

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.data.rows import Rows
    from apsvm.data.scaling import Scaling
    from apsvm.losses.base import Loss
    from apsvm.model import LinearRanker, Model
    from apsvm.records import Log


@dataclass(frozen=True, slots=True)
class Common:
    """The options that every recipe shares."""

    loss: str
    max_iterations: int
    time_limit: float | None
    bias: float
    zero_based: bool
    positive_label: float | None
    relevant_from: float | None
    one_vs_rest: bool
    max_features: int | None
    threads: int
    seed: int
    scale: str
    warm_start: str | None
    log: str | None
    quiet: bool
    verbose: bool
    dtype: str
    sort_features: bool


@dataclass(frozen=True, slots=True)
class Job:
    """A training to be done: data, the shared options, the recipe's own by name, the log, whether to stop, the scaling
    of the features, learned by ``with_scaling``, and the rows to train on, (m,) int64 and ascending; None: all. Where
    it is one of several on the same data, these share ``rows()``, and the model to start from has been read."""

    dataset: Dataset
    common: Common
    own: Mapping[str, Any]
    log: Log
    should_stop: Callable[[], bool]
    shared: Rows | None = None
    start_from: LinearRanker | None = None
    scaling: Scaling | None = None
    selection: Any = None

    def with_scaling(self) -> Job:
        """The job with what ``--scale`` asks for, learned from its rows."""
        from apsvm.data.scaling import learn_scaling

        return replace(self, scaling=learn_scaling(self.common.scale, self.dataset.X, self.selection))

    def log_start(self, **settings: Any) -> None:
        """The log's first record: what is trained, and on what."""
        n_rows, n_features = self.dataset.X.shape
        self.log.write(
            "start",
            loss=self.common.loss,
            **settings,
            n_rows=n_rows if self.selection is None else len(self.selection),
            n_features=n_features,
            sha256=self.dataset.fingerprint,
        )

    def of_rows(self, values: Any) -> Any:
        """Of ``values``, one a row of the data, those of the job's rows; None of None."""
        return values if values is None or self.selection is None else values[self.selection]

    def rows(self, selection: Any = None) -> Rows:
        """The job's rows, or those of ``selection``, scaled, with the constant feature where one was asked for."""
        if self.shared is not None and selection is None:
            return self.shared
        return self.like(self.dataset.X, self.selection if selection is None else selection)

    def like(self, X: Any, selection: Any = None) -> Rows:
        """Rows of another matrix of as many columns, scaled and with the constant feature as the job's own are."""
        from apsvm.data.rows import Rows
        from apsvm.data.scaling import NO_SCALING

        return Rows(
            X,
            bias=self.common.bias if self.common.bias >= 0 else None,
            threads=thread_count(self.common.threads),
            selection=selection,
            scaling=self.scaling or NO_SCALING,
        )

    def start(self) -> Any:
        """The weights of ``--warm-start``, one a column of ``rows()``, or None."""
        path, width = self.common.warm_start, self.dataset.X.shape[1]
        if path is None:
            return None
        import numpy as np

        ranker = self.start_from or one_ranker(read_any_model(path), self.common.positive_label, path)
        if ranker.zero_based != self.dataset.zero_based:
            raise Failure(BAD_DATA, f"{path}: its features and the data's count from different bases")
        if ranker.coef[width:].any():
            raise Failure(BAD_DATA, f"{path}: it has weights for {ranker.width} features, the data has {width}")
        if ranker.unit_rows != (self.common.scale == "l2"):
            raise Failure(BAD_DATA, f"{path}: of the model and this training, one divides rows by their length (l2)")
        start = np.zeros(width + (self.common.bias >= 0))
        start[: min(width, ranker.width)] = ranker.coef[:width]
        constant = ranker.intercept
        if self.scaling is not None:
            start[:width], moved = self.scaling.scaled_weights(start[:width])
            constant += moved
        if self.common.bias > 0:
            start[width] = constant / self.common.bias
        return start

    def ranker(self, w: Any, header: Mapping[str, Any]) -> LinearRanker:
        """The model of weights ``w``, one a column of ``rows()``."""
        from apsvm.model import LinearRanker

        bias, width = self.common.bias, self.dataset.X.shape[1]
        intercept = bias * float(w[width]) if bias >= 0 else 0.0
        coef = w[:width].copy()
        if self.scaling is not None:
            coef, constant = self.scaling.raw_weights(coef)
            intercept += constant
        return LinearRanker(coef, intercept, self.header(header))

    def header(self, header: Mapping[str, Any]) -> dict[str, Any]:
        """A model's header: how and of what it was made, to which the recipe adds ``header``. There is no date in it:
        the same training gives the same file."""
        import platform
        from importlib.metadata import version

        common, dataset = self.common, self.dataset
        return {
            "loss": common.loss,
            "bias": common.bias,
            "seed": common.seed,
            "scale": common.scale,
            "zero_based": dataset.zero_based,
            "positive_label": common.positive_label,
            "relevant_from": common.relevant_from,
            **({"multilabel": True} if dataset.label_sets is not None else {}),
            "versions": {
                "python": platform.python_version(),
                **{name: version(name) for name in ("apsvm", "numpy", "scipy", "cvxpy")},
            },
            **header,
            "data": {
                "file": os.path.basename(dataset.source),
                "sha256": dataset.fingerprint,
                "rows": int(dataset.X.shape[0]),
                **header.get("data", {}),
            },
        }


@dataclass(frozen=True, slots=True)
class Made:
    """A model and what became of its training.

    state : why it stopped, for people; converged : as asked for; interrupted : by a signal
    record : the fields of the log's closing record; summary : lines for people
    seconds : of the training's parts, by name
    """

    model: Model
    state: str
    converged: bool
    interrupted: bool
    record: Mapping[str, Any]
    summary: Sequence[str]
    seconds: Mapping[str, float]


def labels(dataset: Dataset, common: Common, loss: Loss) -> tuple[Any, Any]:
    """Which rows are positive (n,) bool, and the grades (n,) where the loss takes them and nobody said otherwise."""
    from apsvm.losses.graded import GradedLoss

    with reading(dataset.source):
        if isinstance(loss, GradedLoss) and common.positive_label is None and common.relevant_from is None:
            above = dataset.relevance > 0
            if above.any():
                return above, dataset.relevance
        return dataset.positives(common.positive_label, common.relevant_from), None


class Recipe(ABC):
    """See the module. ``title`` heads its options in ``--help``. Recipes whose options have a name in common share the
    object, which means the same to each."""

    title: ClassVar[str]
    options: ClassVar[Sequence[click.Option]]

    @abstractmethod
    def losses(self) -> Sequence[str]:
        """The values of ``--loss`` that it trains on, or their forms (``rbp(rho)``)."""

    def serves(self, loss: str) -> bool:
        """Whether it trains on ``loss``."""
        return loss in self.losses()

    @abstractmethod
    def check(self, common: Common, own: Mapping[str, Any]) -> None:
        """Raises click.UsageError for options that do not go together; the data is not read yet."""

    def inputs(self, own: Mapping[str, Any]) -> Mapping[str, str | None]:
        """Files that its options name, by what they are: no output may replace one."""
        return {}

    def models(self, own: Mapping[str, Any]) -> Sequence[str]:
        """What is added to the file name of each model it will make; one model with nothing added by default."""
        return [""]

    def takes_classes(self, own: Mapping[str, Any]) -> bool:
        """Whether --one-vs-rest makes sense: whether it trains a linear ranker of the rows of one label."""
        return True

    def needs_labels(self, own: Mapping[str, Any]) -> bool:
        """Whether a matrix without labels is of no use."""
        return True

    @abstractmethod
    def check_data(self, dataset: Dataset, common: Common, own: Mapping[str, Any]) -> None:
        """Raises ``Failure`` for data that it cannot train on."""

    @abstractmethod
    def train(self, job: Job) -> Iterator[Made]:
        """The models, one for each of ``models``; fewer if it is stopped. FloatingPointError: features too large."""
