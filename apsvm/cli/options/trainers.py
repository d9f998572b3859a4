"""The options of the trainers, made from what they declare (``apsvm.trainers.settings``), and a plan from them.

An option that several trainers declare is one option, of one type. Each trainer keeps its own default and range; where
defaults differ, ``--help`` says so by the trainers' names. An option is refused for a loss whose trainer does not
declare it.
"""

from __future__ import annotations

import typing
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import Field
from typing import Any, NamedTuple

import click

from apsvm._support.registry import UnknownNameError
from apsvm._support.types import JsonDict, JsonObject
from apsvm.cli.help import HelpfulCommand
from apsvm.cli.options.parameters import METRIC, Number, NumberList, ParamType, Parsed, Several
from apsvm.cli.options.table import TABLE, Option
from apsvm.trainers import TRAINERS, known_losses, trainer_of
from apsvm.trainers.base import AnyTrainer
from apsvm.trainers.one_vs_rest import OneVsRestTrainer
from apsvm.trainers.settings import OF_ALL, Declared, declared, plain_type


class _Setting(NamedTuple):
    """A setting of one trainer: its name, declaration and default, and the type of one value, apart from None and
    multiples."""

    name: str
    about: Declared
    default: object
    kind: type

    def parsing(self) -> tuple[object, ...]:
        """Key of how values are parsed; ranges are checked by the settings."""
        about = self.about
        return self.kind, self.default is False, tuple(about.choices), about.multiples, about.metric, about.path

    def type(self, *, as_list: bool) -> ParamType:
        about = self.about
        if about.path or (as_list and self.kind is float):
            return NumberList(multiples=about.multiples)
        of_kind: dict[object, ParamType] = {int: click.INT, float: Number()}
        one = METRIC if about.metric else of_kind.get(self.kind, click.STRING)
        one = click.Choice(list(about.choices)) if about.choices else one
        return Several(one) if as_list else one

    def shown_default(self, *, as_list: bool) -> str:
        if as_list and self.about.grid:
            return " … ".join(str(value) for value in dict.fromkeys((self.about.grid[0], self.about.grid[-1])))
        is_unsaid = self.about.default_text or self.about.path or self.default is None
        return self.about.default_text or "" if is_unsaid else str(self.default)


class TrainerOption(Option):
    """An option that is not for all trainers.

    takers : trainer → name of its setting; None for an option on the data
    """

    def __init__(self, declarations: Sequence[str], takers: Mapping[type[AnyTrainer], str | None], **more: Any) -> None:
        super().__init__(list(declarations), **more)
        self.takers = takers
        self.topics = {trainer.family: trainer.title for trainer in takers}


def _option(key: str, of_trainers: Mapping[type[AnyTrainer], _Setting], *, as_lists: bool) -> TrainerOption:
    """The option ``key`` of these trainers. TypeError if they parse its values differently."""
    settings, families = list(of_trainers.values()), [trainer.family for trainer in of_trainers]
    first, as_list = settings[0], as_lists and any(one.about.grid is not None for one in settings)
    if len({one.parsing() for one in settings}) > 1:
        names = " and ".join(families)
        raise TypeError(f"{names} declare {key} and read it differently: one of them needs another name")

    def joined(texts: Sequence[str], between: str) -> str:
        """The text if all families share it; else each family's."""
        differ = len(set(texts)) > 1
        return between.join(map("{}: {}".format, families, texts)) if differ else texts[0]

    flags = [flag for one in settings for flag in one.about.flags or [f"--{one.name.replace('_', '-')}"]]
    more: JsonDict = {"is_flag": True}
    if first.default is not False:
        default = joined([one.shown_default(as_list=as_list) for one in settings], "; ")
        metavar = next((one.about.metavar for one in settings if one.about.metavar), None)
        more = {"type": first.type(as_list=as_list), "show_default": default or None, "metavar": metavar}
    help = joined([one.about.help for one in settings], " ")
    takers = {trainer: setting.name for trainer, setting in of_trainers.items()}
    return TrainerOption([*dict.fromkeys(flags), key], takers, help=help, needs=first.about.needs, **more)


def _loss(name: str) -> str:
    """The loss of this name, in any case, or package.module:Name of a user's own. Raises ValueError."""
    name = name if ":" in name else name.strip().lower()
    trainer_of(name)
    return name


#: The name of a loss.
LOSS = Parsed("name", _loss, f"[{'|'.join(known_losses())}|package.module:Name]", known_losses)


def option_name(field: Field[object], about: Declared) -> str:
    """The setting's name on the command line and in configuration files: ``lambda`` for ``regularisation``."""
    return about.flags[-1].lstrip("-").replace("-", "_") if about.flags else field.name


def trainer_options(*, as_lists: bool = False, without: Collection[str] = ()) -> list[TrainerOption]:
    """An option for each setting of any trainer, but those of the names ``without``.

    as_lists : settings that have a grid, of any trainer, take several values, with commas between them (``apsvm cv``)
    """
    settings: dict[str, dict[type[AnyTrainer], _Setting]] = {}
    for trainer in TRAINERS.values():
        hints = typing.get_type_hints(trainer.Settings)
        for name, (field, about) in declared(trainer.Settings).items():
            if about.option and name not in OF_ALL:
                setting = _Setting(name, about, field.default, plain_type(hints[name]))
                settings.setdefault(option_name(field, about), {})[trainer] = setting
    made = [_option(key, of_key, as_lists=as_lists) for key, of_key in settings.items() if key not in without]
    for key in ("validation", "query_weights"):  # data that only some trainers use
        takers = [trainer for trainer in TRAINERS.values() if getattr(trainer.capabilities, key)]
        if key not in without:
            made.append(TrainerOption([f"--{key.replace('_', '-')}"], dict.fromkeys(takers), **TABLE[key]))
    return made


class TrainersCommand(HelpfulCommand):
    """A command with the options of all trainers; each family is a topic of its help.

    Parameters
    ----------
    as_lists, without : see ``trainer_options``
    """

    def __init__(self, *arguments: Any, as_lists: bool = False, without: str = "", **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.params += trainer_options(as_lists=as_lists, without=without.split())


def options_of_trainers() -> list[TrainerOption]:
    """The current command's options that are not for all trainers."""
    return [param for param in click.get_current_context().command.params if isinstance(param, TrainerOption)]


def settings_named(trainer: type[AnyTrainer], options: JsonObject, named: Collection[str]) -> JsonDict:
    """Settings of the trainer that the user gave: its options among ``named``. The others have the trainer's
    defaults."""
    taken = {option.takers.get(trainer): option.name or "" for option in options_of_trainers()}
    return {setting: options[name] for setting, name in taken.items() if setting is not None and name in named}


def refuse_options_of_others(losses: Sequence[str], named: Collection[str]) -> None:
    """Raises UsageError for an option in ``named`` that none of the chosen losses uses."""
    for option in options_of_trainers():
        if option.name in named and option.takers.keys().isdisjoint(map(trainer_of, losses)):
            titles = " and ".join(trainer.title for trainer in option.takers)
            raise click.UsageError(f"{option.opts[-1]} is not for --loss {losses[0]}: it is for {titles}")


def planned(loss: str, options: JsonObject, named: Collection[str]) -> AnyTrainer:
    """The plan for a loss and the options' values, of several classes one against the rest; bad combinations end the
    command.

    named : the options that the user gave
    """
    if len(options["C"] or ()) > 1:
        raise click.UsageError("-C takes one value here: apsvm cv compares several")
    kind = trainer_of(loss)
    settings = settings_named(kind, options, named) | {name: options[name] for name in OF_ALL & set(named)}
    with usage_errors(loss):
        trainer = kind(loss, kind.Settings(**settings), frozenset(settings))
        return OneVsRestTrainer(trainer) if options["one_vs_rest"] else trainer


@contextmanager
def usage_errors(loss: str) -> Iterator[None]:
    """Turns errors of the loss into usage errors."""
    from apsvm.losses.base import LossError

    try:
        yield
    except (LossError, UnknownNameError) as error:
        raise click.UsageError(f"--loss {loss}: {error}") from None
