"""``--keep-if-worse OLD ROWS``: a model that is worse than another on rows held out is not written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from apsvm._support.types import JsonObject
from apsvm.cli.reading import read_any_model
from apsvm.cli.shared import BAD_DATA, Failure, say
from apsvm.data.read_options import ReadOptions

if TYPE_CHECKING:
    from apsvm.cli.scored import Scored
    from apsvm.data.dataset import Dataset
    from apsvm.models.base import Model

KEEP_IF_WORSE = click.option(
    "--keep-if-worse", nargs=2, metavar="OLD ROWS",
    help="Write the new model only if its metric on ROWS, labelled rows that neither model was trained on, is no worse "
    "than that of the model OLD there; else end with exit code 6. OLD may be the file to write.",
)  # fmt: skip

_NEW = "the new model"


@dataclass(frozen=True)
class Guard:
    """The model to beat, its file, the rows to judge by with its scores, how to read them, and whether only refusals
    are said."""

    old: Model
    path: str
    rows: str
    scored: Scored
    read: ReadOptions
    quiet: bool

    @classmethod
    def of_options(cls, options: JsonObject, read: ReadOptions) -> Guard | None:
        """None where none is named; what cannot be read or judged by ends the command before the work."""
        if options["keep_if_worse"] is None:
            return None
        from apsvm.metrics import trained_metric
        from apsvm.metrics.evaluate import parse_metrics

        path, rows = options["keep_if_worse"]
        if "-" in (path, rows):
            raise click.UsageError("--keep-if-worse names two files: OLD and ROWS")
        if options["scheduler"] is not None:
            raise click.UsageError("--keep-if-worse does not go with --scheduler")
        old, read = _of_rows(read_any_model(path), path), read.of_a_second_file()
        scored = _scored(rows, path, old, read)
        if bool(scored.classes) != options.get("one_vs_rest", False):
            raise click.UsageError(f"of {path} and {_NEW} one ranks classes, and the other does not")
        _refuse_training_rows(scored, path, old.header.data.sha256)
        if not scored.classes:
            scored.target(parse_metrics([trained_metric(old.header.metric).name]))
        return cls(old, path, rows, scored, read, options["quiet"])

    @property
    def inputs(self) -> dict[str, str | None]:
        """The files, by what they are, that outputs must not replace; but the model may be written over OLD."""
        return {"old_model": self.path, "judged_rows": self.rows}

    def check(self, dataset: Dataset) -> None:
        """Ends the command where the new model is to be trained on the rows to judge by."""
        _refuse_training_rows(self.scored, _NEW, dataset.fingerprint)

    def refuses(self, new: Model, metric: str) -> bool:
        """Whether the new model is worse, which is said; failures end the command.

        metric : as ``apsvm eval`` names it
        """
        from apsvm.cli.systems import of_data
        from apsvm.metrics.evaluate import parse_metrics

        scored = self.scored.beside(_scored(self.rows, _NEW, _of_rows(new, _NEW), self.read))
        metrics = parse_metrics([metric])
        judged = of_data(metrics, scored, "block", all_queries=False, leave_out_undefined=False)
        old, mine = (next(iter(entry.system.evaluation.values.values())) for entry in judged)
        if math.isnan(old) or math.isnan(mine):
            raise Failure(BAD_DATA, f"{self.rows}: {metric} is not defined on these rows")
        figures = f"{metric} on {self.rows} is {mine:.6f}, that of {self.path} {old:.6f}"
        if mine < old:
            say(f"no model written: {figures}")
        elif not self.quiet:
            say(figures)
        return mine < old


def _of_rows(model: Model, name: str) -> Model:
    if model.lists_items:
        raise Failure(BAD_DATA, f"{name}: it is {model.what}: --keep-if-worse is for models of rows")
    return model


def _scored(rows: str, name: str, model: Model, read: ReadOptions) -> Scored:
    """The rows as the model scores them; failures end the command."""
    from apsvm.cli.scored import score_data
    from apsvm.data.labels import LabelOptions

    return score_data(rows, {name: model}, (), LabelOptions(), read, ignore_unknown=True)


def _refuse_training_rows(judged: Scored, name: str, trained_on: str) -> None:
    if trained_on == judged.dataset.fingerprint:
        raise Failure(BAD_DATA, f"{judged.dataset.source}: {name} is trained on these rows, which flatter it")
