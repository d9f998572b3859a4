"""The options of the trainers, made from what they declare (``apsvm.trainers.settings``), and a plan from them.

An option that several trainers declare is one option, whatever its defaults and types are (``cli.trainer_option``); it
is refused for a loss whose trainer has not got it.
"""

from __future__ import annotations

import dataclasses
import os
import typing
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import click
from click.shell_completion import CompletionItem

from apsvm.cli.completion import names_that_fit
from apsvm.cli.parameters import ParamType
from apsvm.cli.shared import MISSING, Failure
from apsvm.cli.trainer_option import Taken, TrainerOption
from apsvm.registry import UnknownNameError
from apsvm.trainers import TRAINERS, known_losses, trainer_of
from apsvm.trainers.base import AnyTrainer
from apsvm.trainers.settings import Declared, SettingsError, declared, plain_type
from apsvm.types import JsonDict, JsonObject

#: Options on data that only some trainers have a use for, by the capability, and what they say in ``--help``.
_ON_DATA = {
    "validation": "Rows like DATA's that a metric is taken of after each epoch; the best epoch's model is kept.",
    "query_weights": "Lines 'qid weight': the risk is this weighted mean over the queries; 1 where not named.",
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


def option_name(field: dataclasses.Field[object], about: Declared) -> str:
    """The setting's name on the command line and in configuration files: ``lambda`` for ``regularisation``."""
    return about.flags[-1].lstrip("-").replace("-", "_") if about.flags else field.name


def trainer_options(*, as_lists: bool = False, without: Collection[str] = ()) -> list[TrainerOption]:
    """An option for each setting of any trainer, but those of the names ``without``.

    as_lists : settings with a grid take several values, with commas between them (``apsvm cv``)
    """
    takers: dict[str, dict[type[AnyTrainer], Taken | None]] = {}
    for trainer in TRAINERS.values():
        hints = typing.get_type_hints(trainer.Settings)
        for name, (field, about) in declared(trainer.Settings).items():
            as_list = as_lists and about.grid is not None
            taken = Taken(name, about, plain_type(hints[name]), field.default, as_list)
            takers.setdefault(option_name(field, about), {})[trainer] = taken
        for key in _ON_DATA:
            if getattr(trainer.capabilities, key):
                takers.setdefault(key, {}).setdefault(trainer, None)
    return [_option(key, of_key) for key, of_key in takers.items() if key not in without]


def with_trainer_options(params: Sequence[click.Parameter], options: Sequence[TrainerOption]) -> list[click.Parameter]:
    """A command's own parameters, and the trainers' options. TypeError where two have one name or one flag."""
    owners: dict[str, str] = {}
    for param in (*params, *options):
        owner = f"the setting {param.name} of {param.families}" if isinstance(param, TrainerOption) else "the command"
        for word in {param.name or "", *param.opts, *param.secondary_opts}:
            if word in owners:
                raise TypeError(
                    f"{word} is an option of {owners[word]}, and of {owner}: one needs another name or flag"
                )
            owners[word] = owner
    return [*params, *options]


def _option(key: str, takers: Mapping[type[AnyTrainer], Taken | None]) -> TrainerOption:
    settings = {trainer: taken for trainer, taken in takers.items() if taken is not None}
    if settings:
        return TrainerOption.of_settings(key, settings)
    return TrainerOption([f"--{key.replace('_', '-')}"], takers, metavar="FILE", help=_ON_DATA[key])


class TrainCommand(click.Command):
    """``apsvm train`` with the options of all trainers, each trainer's under a heading of its own in ``--help``."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.params = with_trainer_options(self.params, trainer_options())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        refuse_number_of_folds(args, "apsvm cv DATA --folds {}")
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter as failure:
            taken = [f"{option} has taken {value!r}" for option, value in self._files_taken(ctx)]
            if not taken:
                raise
            raise click.UsageError(f"{failure.format_message()} {', '.join(taken)}.", ctx) from None

    def _files_taken(self, ctx: click.Context) -> Iterator[tuple[str, str]]:
        """The trainers' options that were given the name of a file, and that name: ``--net data.svm``."""
        for option in self.params:
            value = ctx.params.get(option.name or "")
            if isinstance(option, TrainerOption) and isinstance(value, str) and os.path.isfile(value):
                yield option.opts[-1], value

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


def settings_asked(trainer: type[AnyTrainer], given: JsonObject, said: Collection[str]) -> JsonDict:
    """The trainer's settings that somebody gave: of its options among ``said``, by the settings' names; what nobody
    gave is the trainer's own default."""
    result: JsonDict = {}
    for option in options_of_trainers():
        setting = option.setting_of(trainer) if option.name in said else None
        if setting is not None:
            result[setting] = option.read(trainer, given[option.name])
    return result


def values_read(losses: Sequence[ChosenLoss], given: JsonObject, said: Collection[str]) -> JsonDict:
    """Of the options' values those that depend on the trainer, as those of the losses read them, by the options' names;
    a list where they are not the same. The others are in ``given`` already."""
    result: JsonDict = {}
    for option in options_of_trainers():
        if option.name in said and option.depends_on_trainer:
            trainers = (loss.trainer for loss in losses if loss.trainer in option.takers)
            values = [option.read(trainer, given[option.name]) for trainer in trainers]
            result[option.name] = values[0] if values == values[:1] * len(values) else values
    return result


def as_asked_for(loss: ChosenLoss, said: Collection[str]) -> ChosenLoss:
    """The loss with the trainer that one of the options that somebody gave, ``said``, asks for; ends the command where
    that trainer's extra is not installed."""
    trainer = loss.trainer
    for option in options_of_trainers():
        if option.name in said:
            asking = (
                other for other in option.takers if other.chosen_by and other.chosen_by == option.setting_of(other)
            )
            trainer = next(asking, trainer)
    extra = trainer.capabilities.extra
    if extra is not None and not _is_installed(extra):
        raise Failure(MISSING, f"{trainer.title} needs the package {extra}: pip install 'apsvm[{extra}]'")
    return ChosenLoss(loss.name, trainer)


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:  # a module without a specification
        return False


def refuse_options_of_others(losses: Sequence[ChosenLoss], said: Collection[str]) -> None:
    """Of the options that somebody gave, ``said``, one that none of the chosen losses has a use for is a mistake."""
    for option in options_of_trainers():
        if option.name in said and not any(loss.trainer in option.takers for loss in losses):
            chosen_by = losses[0].trainer.chosen_by
            what = f"--{chosen_by}" if chosen_by in said else f"--loss {losses[0]}"
            raise click.UsageError(f"{option.opts[-1]} is not for {what}, but for {option.titles}")


def planned(loss: ChosenLoss, given: JsonObject, said: Collection[str]) -> AnyTrainer:
    """The plan for a loss and the options' values; bad combinations end the command.

    said : the options that somebody gave
    """
    common = {name: given[name] for name in ("time_limit", "seed", "threads")}
    asked = settings_asked(loss.trainer, given, said)
    chosen = frozenset([*asked, *(name for name in common if name in said)])
    with usage_errors(loss):
        return loss.trainer(loss.name, loss.trainer.Settings(**common, **asked), chosen)


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
