"""The options of the trainers, made from what they declare (``apsvm.trainers.settings``), and a plan from them.

An option that several trainers declare is one option; it is refused for a loss whose trainer has not got it.
"""

from __future__ import annotations

import dataclasses
import os
import typing
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import click
from click.shell_completion import CompletionItem

from apsvm.cli.completion import MetricName, names_that_fit
from apsvm.cli.parameters import Number, NumberList, ParamType, Several
from apsvm.cli.shared import MISSING, Failure
from apsvm.registry import UnknownNameError
from apsvm.trainers.base import AnyTrainer
from apsvm.trainers.families import TRAINERS, known_losses, trainer_of
from apsvm.trainers.settings import Declared, SettingsError, declared, plain_type
from apsvm.types import JsonObject

#: Options on data that only some trainers have a use for: the attribute that says so, and what they say in ``--help``.
_ON_DATA = {
    "validation": (
        "takes_validation",
        "Rows like DATA's that a metric is taken of after each epoch; the best epoch's model is kept.",
    ),
    "query_weights": (
        "takes_query_weights",
        "Lines 'qid weight': the risk is this weighted mean over the queries; 1 where not named.",
    ),
}


@dataclass(frozen=True, slots=True)
class ChosenLoss:
    """A value of ``--loss``, and the trainer that it was found with."""

    name: str
    trainer: type[AnyTrainer]

    def __str__(self) -> str:
        return self.name


class LossName(ParamType):
    """The name of a loss, in any case, or package.module:Name of a user's own: a ``ChosenLoss``."""

    name = "loss"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> ChosenLoss:
        loss = str(value) if ":" in str(value) else str(value).strip().lower()
        try:
            return ChosenLoss(loss, trainer_of(loss))
        except UnknownNameError as error:
            self.fail(str(error), param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{'|'.join(known_losses())}|package.module:Name]"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return names_that_fit(known_losses(), incomplete)


class TrainerOption(click.Option):
    """An option that is not for all trainers.

    settings : by the trainer that takes it, the name of the setting it is; None where it is about the data
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.settings: dict[type[AnyTrainer], str | None] = {}

    @property
    def titles(self) -> str:
        """Of the trainers that take it."""
        return " and ".join(trainer.title for trainer in self.settings)


def option_name(field: dataclasses.Field[object], about: Declared) -> str:
    """The setting's name on the command line and in configuration files: ``lambda`` for ``regularisation``."""
    return about.flags[-1].lstrip("-").replace("-", "_") if about.flags else field.name


def trainer_options(*, as_lists: bool = False, without: Collection[str] = ()) -> list[TrainerOption]:
    """An option for each setting of any trainer, but those of the names ``without``.

    as_lists : settings with a grid take several values, with commas between them (``apsvm cv``)
    """
    options: dict[str, TrainerOption] = {}
    for trainer in TRAINERS.values():
        hints = typing.get_type_hints(trainer.Settings)
        for name, (field, about) in declared(trainer.Settings).items():
            key = option_name(field, about)
            if key not in options:
                options[key] = _option(key, field, about, hints[name], as_list=as_lists and about.grid is not None)
            options[key].settings[trainer] = name
        for key, (attribute, more) in _ON_DATA.items():
            if getattr(trainer, attribute):
                options.setdefault(key, TrainerOption([f"--{key.replace('_', '-')}"], metavar="FILE", help=more))
                options[key].settings[trainer] = None
    return [option for key, option in options.items() if key not in without]


def _option(
    key: str, field: dataclasses.Field[object], about: Declared, hint: object, *, as_list: bool
) -> TrainerOption:
    flags = [*about.flags] or [f"--{field.name.replace('_', '-')}"]
    if field.default is False:
        return TrainerOption([*flags, key], is_flag=True, help=about.help)
    default: object = about.default_text if about.path else field.default
    more = f" [default: {about.default_text}]" if about.default_text and not about.path else ""
    if as_list:
        default, more = about.grid, ""
    elif about.several:
        more += f" {about.several}"
    return TrainerOption(
        [*flags, key],
        type=_type(about, plain_type(hint), as_list=as_list),
        default=default,
        show_default=default is not None,
        metavar=about.metavar,
        help=about.help + more,
    )


def _type(about: Declared, kind: type, *, as_list: bool) -> ParamType:
    limits = about.range
    if about.path or (as_list and kind is float):
        return NumberList(limits.low, limits.high, open_low=limits.open_low, multiples=about.multiples)
    one: ParamType
    if about.choices:
        one = click.Choice(list(about.choices))
    elif about.metric:
        one = MetricName()
    elif kind is int:
        low, high = (None if abs(bound) == float("inf") else int(bound) for bound in (limits.low, limits.high))
        one = click.IntRange(low, high)
    elif kind is float:
        one = Number(limits.low, limits.high, open_low=limits.open_low)
    else:
        one = click.STRING
    return Several(one) if as_list else one


class TrainCommand(click.Command):
    """``apsvm train`` with the options of all trainers, each trainer's under a heading of its own in ``--help``."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.params += trainer_options()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        refuse_number_of_folds(args, "apsvm cv DATA --folds {}")
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        titles = {param.name: param.titles for param in self.params if isinstance(param, TrainerOption)}
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in ("Options", *titles.values())}
        for param in self.get_params(ctx):
            # An argument is told of in the usage line and the text; some versions of click have a record of it too.
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                sections[titles.get(param.name, "Options")].append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def refuse_number_of_folds(args: Sequence[str], instead: str) -> None:
    """Raises UsageError where ``-v``, to LIBLINEAR the number of folds, is followed by one: ``instead`` it is this."""
    for flag, value in pairwise(args):
        if flag == "-v" and value.isascii() and value.isdigit() and not os.path.lexists(value):
            folds = instead.format(value)
            raise click.UsageError(f"-v shows each iteration here, without a number; for {value} folds: {folds}")


def options_of_trainers() -> list[TrainerOption]:
    """The current command's options that are not for all trainers."""
    return [param for param in click.get_current_context().command.params if isinstance(param, TrainerOption)]


def settings_of(trainer: type[AnyTrainer]) -> dict[str, str]:
    """The trainer's settings that the current command has an option for, and the option's name."""
    named = ((option.settings.get(trainer), option.name) for option in options_of_trainers())
    return {setting: key for setting, key in named if setting is not None and key is not None}


def as_asked_for(loss: ChosenLoss, said: Collection[str]) -> ChosenLoss:
    """The loss with the trainer that one of the options that somebody gave, ``said``, asks for; ends the command where
    that trainer's extra is not installed."""
    trainer = loss.trainer
    for option in options_of_trainers():
        if option.name in said:
            asking = (other for other, setting in option.settings.items() if setting and other.chosen_by == setting)
            trainer = next(asking, trainer)
    if trainer.extra is not None and not _is_installed(trainer.extra):
        raise Failure(
            MISSING, f"{trainer.title} needs the package {trainer.extra}: pip install 'apsvm[{trainer.extra}]'"
        )
    return ChosenLoss(loss.name, trainer)


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:  # a module without a specification
        return False


def refuse_options_of_others(losses: Sequence[ChosenLoss], said: Collection[str]) -> None:
    """Of the options that somebody gave, ``said``, one that none of the chosen losses has a use for is a mistake."""
    for option in options_of_trainers():
        if option.name in said and not any(loss.trainer in option.settings for loss in losses):
            chosen_by = losses[0].trainer.chosen_by
            what = f"--{chosen_by}" if chosen_by in said else f"--loss {losses[0]}"
            raise click.UsageError(f"{option.opts[-1]} is not for {what}, but for {option.titles}")


def planned(loss: ChosenLoss, given: JsonObject, said: Collection[str]) -> AnyTrainer:
    """The plan for a loss and the options' values; bad combinations end the command.

    said : the options that somebody gave
    """
    keys = {"time_limit": "time_limit", "seed": "seed", "threads": "threads", **settings_of(loss.trainer)}
    chosen = frozenset(name for name, key in keys.items() if key in said)
    with usage_errors(loss):
        settings = loss.trainer.Settings(**{name: given[key] for name, key in keys.items()})
        return loss.trainer(loss.name, settings, chosen)


@contextmanager
def usage_errors(loss: ChosenLoss) -> Iterator[None]:
    """Settings and losses that do not go together end the command."""
    from apsvm.losses.base import LossError

    try:
        yield
    except (LossError, UnknownNameError) as error:
        raise click.UsageError(f"--loss {loss}: {error}") from None
    except SettingsError as error:
        raise click.UsageError(str(error)) from None
