"""What ``apsvm train`` and ``apsvm cv`` share: the options of every training, reading for it, outputs, signals."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from apsvm.cli.config import CONFIG_FILE
from apsvm.cli.recipes import RECIPES
from apsvm.cli.recipes.base import Common, Recipe
from apsvm.cli.shared import (
    BAD_DATA,
    INTERRUPTED,
    TERMINATED,
    Failure,
    Number,
    given_by_user,
    memory,
    read_rows,
    refuse_same_file,
    writing,
)

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--max-iterations", type=click.IntRange(1), default=10_000, show_default=True, help="Per stage of the training."
    ),
    click.option(
        "--time-limit", type=Number(0), help="Seconds of training, checked between iterations. [default: none]"
    ),
    click.option(
        "-B",
        "--bias",
        type=Number(),
        default=-1.0,
        show_default=True,
        help="Add a constant feature of this value to every row; none if negative.",
    ),
    click.option(
        "--zero-based/--one-based", default=False, show_default=True, help="Whether feature indices count from 0 or 1."
    ),
    click.option("--positive-label", type=Number(), help="The label that is positive; all others are negative."),
    click.option(
        "--relevant-from",
        type=Number(),
        metavar="GRADE",
        help="Rows of this label and above are positive, the others negative. Without it ndcg uses the grades.",
    ),
    click.option(
        "--max-features", type=click.IntRange(1, 2**62), help="Refuse a file with a feature beyond this many."
    ),
    click.option(
        "--scale",
        type=click.Choice(["none", "maxabs", "standard", "l2"]),
        default="none",
        show_default=True,
        help="Scale the features, the model takes rows as they are: each to a largest magnitude of 1, or to mean 0 and "
        "deviation 1 (sparse data stays sparse), or each row to length 1.",
    ),
    click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors."),
    click.option("-v", "--verbose", is_flag=True, help="A line for every iteration, and the data at the start."),
)


def training_options(command: CommandT) -> CommandT:
    """The options of ``Common`` that every training takes."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def refuse_options_of_others(recipe: Recipe, loss: str) -> None:
    """An option that the chosen loss has no use for is a mistake."""
    own = {option.name for option in recipe.options}
    for name, owners in owners_of_options().items():
        if name not in own and given_by_user(name):
            option = next(option for option in owners[0].options if option.name == name)
            titles = " and ".join(owner.title for owner in owners)
            raise click.UsageError(f"{option.opts[-1]} is not for --loss {loss}, but for {titles}")


def owners_of_options() -> dict[str, list[Recipe]]:
    """The recipes that take it, by the name of each option that is not for all."""
    owners: dict[str, list[Recipe]] = {}
    for recipe in RECIPES:
        for option in recipe.options:
            if option.name is not None:
                owners.setdefault(option.name, []).append(recipe)
    return owners


def check_output(output: str, **inputs: str | None) -> None:
    """Finds out now what would otherwise lose hours of work at the end; ``inputs``, by what they are, the configuration
    among them, must not be overwritten."""
    from apsvm.files import check_writable

    config = click.get_current_context().meta.get(CONFIG_FILE)
    refuse_same_file(output, config=config, **inputs)
    with writing(output):
        check_writable(output)


def read_to_train(path: str, common: Common, *, unlabelled: bool) -> Dataset:
    dataset = read_rows(
        path,
        dtype=common.dtype,
        sort_features=common.sort_features,
        zero_based=common.zero_based,
        max_features=common.max_features,
        multilabel=common.one_vs_rest,
        threads=common.threads,
        unlabelled=unlabelled,
    )
    # w and each cutting plane are dense: a stray index of a billion would take the machine down instead of the run.
    needed = 8 * dataset.X.shape[1] * 8
    if needed > memory():
        raise Failure(
            BAD_DATA,
            f"{dataset.source}: the highest feature index asks for {dataset.X.shape[1]:,} weights, more than this "
            "machine's memory can train; is it a stray index? (--max-features finds its line)",
        )
    return dataset


@contextmanager
def signals_caught() -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM, so that the best model so far can be written; another one, half a second later or
    more, stops at once. A signal that was being ignored still is."""
    caught: list[int] = []
    first = 0.0

    def handler(number: int, frame: Any) -> None:
        nonlocal first
        now = time.monotonic()
        if caught and now - first > 0.5:
            raise Failure(TERMINATED if number == signal.SIGTERM else INTERRUPTED, "stopped, no model written")
        first = first or now
        caught.append(number)

    watched = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, handler) for number in watched}
    try:
        yield caught
    finally:
        for number, old in previous.items():
            signal.signal(number, old)
