"""``apsvm train``: from a data file to a model, with its certificate and its log."""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from apsvm.cli.config import config_option
from apsvm.cli.one_vs_rest import OneVsRest
from apsvm.cli.recipes import RECIPES, LossName, recipe_of
from apsvm.cli.recipes.base import Common, Job, Made, Recipe
from apsvm.cli.run_folder import LOG, MODEL, check_folder, make_folder, model_and_log, run_record
from apsvm.cli.shared import (
    BAD_DATA,
    CANNOT_WRITE,
    INTERRUPTED,
    STOPPED_EARLY,
    TERMINATED,
    Failure,
    how_to_read,
    say,
    writing,
)
from apsvm.cli.training import (
    check_output,
    owners_of_options,
    read_to_train,
    refuse_options_of_others,
    signals_caught,
    training_options,
)

if TYPE_CHECKING:
    from apsvm.records import Log


class TrainCommand(click.Command):
    """``apsvm train`` with the options of all recipes, each recipe's under a heading of its own in ``--help``."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        # An option that several recipes share is one object.
        self.params += {option.name: option for recipe in RECIPES for option in recipe.options}.values()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        titles = {name: " and ".join(owner.title for owner in owners) for name, owners in owners_of_options().items()}
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in ("Options", *titles.values())}
        for param in self.get_params(ctx):
            # An argument is told of in the usage line and the text; some versions of click have a record of it too.
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                sections[titles.get(param.name or "", "Options")].append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


@click.command(cls=TrainCommand, context_settings={"auto_envvar_prefix": "APSVM_TRAIN"})
@click.argument("data", metavar="DATA")
@click.argument("model", metavar="[MODEL]", required=False)
@click.option(
    "--loss", type=LossName(), default="ap", show_default=True,
    help="What is optimised; package.module:Name is a loss of your own, two arrays in Python.",
)  # fmt: skip
@click.option(
    "--one-vs-rest", is_flag=True,
    help="Train a ranker for each label against all other rows, several at a time, into one model; rows may have "
    "several labels (1,4) or none.",
)  # fmt: skip
@click.option(
    "--threads", type=click.IntRange(0, 1024), default=0, show_default=True,
    help="Threads; 0: as many as there are cores. The result does not depend on it, but with --loss warp, which trains "
    "on one unless more are asked for.",
)  # fmt: skip
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True,
    help="Seed of what is random: of --loss warp and direct(…). The exact trainers draw nothing; it is written into "
    "the model.",
)  # fmt: skip
@click.option("--warm-start", metavar="MODEL", help="Start from the weights of this model.")
@click.option("--log", metavar="FILE", help="Write a JSON line for each oracle call and iteration.")
@click.option(
    "--run-dir", metavar="FOLDER",
    help=f"Write the model and the log into this folder, new or without a run, as {MODEL} and {LOG}: apsvm report "
    "makes a page of them.",
)  # fmt: skip
@training_options
@how_to_read
@config_option
def train(data: str, model: str | None, run_dir: str | None, **given: Any) -> int:
    """Train a ranker on DATA and write MODEL.

    DATA is svmlight text, plain or compressed (gz, bz2, xz), - for stdin; a folder made by apsvm convert; or a .npz or
    .npy matrix with --labels.

    MODEL defaults to the data file's name with .model added, in the current folder.
    """
    if run_dir is not None:
        if model is not None or given["log"] is not None:
            raise click.UsageError("--run-dir has places for the model and the log: leave out MODEL and --log")
        model, given["log"] = model_and_log(run_dir)
        check_folder(run_dir, data)
    common = Common(**{field.name: given[field.name] for field in fields(Common)})
    recipe: Recipe = recipe_of(common.loss)
    refuse_options_of_others(recipe, common.loss)
    own = {option.name: given[option.name] for option in recipe.options if option.name is not None}
    if common.one_vs_rest:
        recipe = OneVsRest(recipe)
    if model is None:
        if data == "-":
            raise click.UsageError("DATA is standard input: name the MODEL to write")
        model = f"{os.path.basename(os.path.normpath(data))}.model"
    models = _model_names(model, recipe.models(own))
    if run_dir is None:
        _check_outputs(data, models, common, recipe.inputs(own))
    if common.positive_label is not None and common.relevant_from is not None:
        raise click.UsageError("--positive-label and --relevant-from say the same thing twice: give one")
    recipe.check(common, own)

    import apsvm.data.reading  # noqa: F401  # loading scipy takes longer than reading most files: it is no part of it

    began = time.perf_counter()
    dataset = read_to_train(data, common, unlabelled=not recipe.needs_labels(own))
    recipe.check_data(dataset, common, own)
    read_seconds = time.perf_counter() - began
    finished = True
    if run_dir is not None:
        make_folder(run_dir)
    with _open_log(common.log) as log, signals_caught() as signals:
        if run_dir is not None:
            log.write("run", **run_record(data, dataset, read_seconds))
        job = Job(dataset, common, own, log, lambda: bool(signals)).with_scaling()
        for name, made in zip(models, _trained(recipe, job), strict=False):
            with writing(name):
                made.model.save(name)
            seconds = _where_the_time_went(made, read_seconds, time.perf_counter() - began)
            log.write("end", state=made.state, model=name, **made.record, seconds=seconds)
            finished &= made.converged
            if not common.quiet:
                for line in made.summary:
                    say(line)
                parts = ", ".join(f"{part} {taken:.2f}" for part, taken in seconds.items())
                say(f"{math.fsum(seconds.values()):.2f} s: {parts}")
                say(f"model written to {'standard output' if name == '-' else name}")
            began, read_seconds = time.perf_counter(), 0.0
            if made.interrupted:
                return TERMINATED if signal.SIGTERM in signals else INTERRUPTED
        if log.failed:
            return CANNOT_WRITE
    return 0 if finished else STOPPED_EARLY


def _model_names(model: str, additions: Sequence[str]) -> list[str]:
    """The file of each model: MODEL itself, or for several name.C10.model for name.model and the addition .C10."""
    if len(additions) > 1 and model == "-":
        raise click.UsageError("several models cannot all go to standard output: name a MODEL")
    stem = model.removesuffix(".model")
    return [f"{stem}{addition}{model[len(stem) :]}" for addition in additions]


def _where_the_time_went(made: Made, read_seconds: float, seconds: float) -> dict[str, float]:
    parts = {"reading": read_seconds, **made.seconds}
    parts["other"] = max(0.0, seconds - sum(parts.values()))
    return parts


def _check_outputs(data: str, models: list[str], common: Common, inputs: Mapping[str, str | None]) -> None:
    for output in (*models, common.log):
        if output is not None:
            # A model may replace the one it was started from.
            started_from = common.warm_start if output == common.log else None
            check_output(output, data=data, warm_start=started_from, **inputs)
    places = ["-" if output == "-" else os.path.realpath(output) for output in (*models, common.log or "")]
    if places[-1] in places[:-1]:
        raise click.UsageError("the log and the model cannot go to the same place")


def _trained(recipe: Recipe, job: Job) -> Iterator[Made]:
    from threadpoolctl import threadpool_limits

    # One BLAS thread: the solvers' products are small, and more would make the last bits depend on their number.
    with threadpool_limits(1, user_api="blas"):
        try:
            yield from recipe.train(job)
        except FloatingPointError as error:
            raise Failure(BAD_DATA, f"{job.dataset.source}: {error}") from None


class _Log:
    """The log. One that cannot be written any more is given up with a message; the training goes on."""

    def __init__(self, name: str, log: Log) -> None:
        self._name = name
        self._log: Log | None = log
        self.failed = False

    def write(self, event: str, **fields: Any) -> None:
        if self._log is None:
            return
        try:
            self._log.write(event, **fields)
        except BrokenPipeError:
            raise
        except OSError as error:
            self._log, self.failed = None, True
            say(f"error: cannot write {self._name}: {error.strerror or error}; the log ends here")


@contextmanager
def _open_log(path: str | None) -> Iterator[_Log]:
    """The log, opened only now that there is something to write: a run that fails before has destroyed nothing."""
    from apsvm.records import JsonLinesLog, NoLog

    if path is None:
        yield _Log("", NoLog())
    elif path == "-":
        yield _Log("standard output", JsonLinesLog(sys.stdout))
    else:
        with writing(path):
            # Each line is flushed as it is written; nothing is left for close() to lose.
            stream = open(path, "w", encoding="utf-8")  # noqa: SIM115
        try:
            yield _Log(path, JsonLinesLog(stream))
        finally:
            with suppress(OSError):
                stream.close()
