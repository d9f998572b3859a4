"""The options of the trainers, made from what they declare (``apsvm.trainers.settings``), and a plan from them.

An option that several trainers declare is one option, of one type. Each trainer keeps its own default and range; where
defaults differ, ``--help`` says so by the trainers' names. An option is refused for a loss whose trainer does not
declare it.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
from apsvm.trainers.settings import OF_ALL, Declared, Range, SettingsError, declared, plain_type


class Setting(NamedTuple):
    """A setting of one trainer, as an option.

    Attributes
    ----------
    name : the setting's name
    about : its declaration
    kind : the type of one value, apart from None and multiples
    default : the default in the settings class
    as_list : True if it takes several values, with commas between them (``apsvm cv``)
    """

    name: str
    about: Declared
    kind: type
    default: object
    as_list: bool = False

    @property
    def how_parsed(self) -> tuple[object, ...]:
        """Key of how values are parsed, without their range."""
        about = self.about
        return self.kind, self.default is False, tuple(about.choices), about.multiples, about.metric, about.path

    @property
    def shown_default(self) -> tuple[object, str]:
        """The default for click (None without one, or if a text replaces it), and its text."""
        about = self.about
        shown = about.grid if self.as_list and about.grid else self.default
        if shown is None or (shown is self.default and (about.path or about.default_text)):
            return None, about.default_text or ""
        return shown, ", ".join(map(str, shown)) if isinstance(shown, tuple) else str(shown)

    def type(self, limits: Range) -> ParamType:
        """The click type that parses its values, within ``limits``."""
        about = self.about
        if about.path or (self.as_list and self.kind is float):
            return NumberList(limits.low, limits.high, open_low=limits.open_low, multiples=about.multiples)
        one: ParamType = click.STRING
        if about.choices:
            one = click.Choice(list(about.choices))
        elif about.metric:
            one = METRIC
        elif self.kind is int:
            low, high = (None if abs(bound) == float("inf") else int(bound) for bound in (limits.low, limits.high))
            one = click.IntRange(low, high)
        elif self.kind is float:
            one = Number(limits.low, limits.high, open_low=limits.open_low)
        return Several(one) if self.as_list else one


class TrainerOption(Option):
    """An option that is not for all trainers.

    takers : trainer → name of its setting; None for an option on the data
    """

    def __init__(self, declarations: Sequence[str], takers: Mapping[type[AnyTrainer], str | None], **more: Any) -> None:
        super().__init__(list(declarations), **more)
        self.takers = takers
        self.topics = {trainer.family: trainer.title for trainer in takers}

    @classmethod
    def of_settings(cls, key: str, settings: Mapping[type[AnyTrainer], Setting]) -> TrainerOption:
        """The option ``key`` of these trainers. TypeError if they parse its values differently."""
        first, *others = settings.values()
        families = [trainer.family for trainer in settings]
        if any(other.how_parsed != first.how_parsed for other in others):
            names = " and ".join(families)
            raise TypeError(f"{names} declare {key} and read it differently: one of them needs another name")

        def once(texts: Sequence[str], form: str, between: str) -> str:
            """The text if all families share it; else each family's."""
            if len(set(texts)) == 1:
                return texts[0]
            return between.join(form.format(family, text) for family, text in zip(families, texts, strict=True))

        flags = [flag for one in settings.values() for flag in one.about.flags or [f"--{one.name.replace('_', '-')}"]]
        help = once([one.about.help for one in settings.values()], "{}: {}", " ")
        more: JsonDict = {"is_flag": True}
        if first.default is not False:
            defaults = [one.shown_default[1] for one in settings.values()]
            default = first.shown_default[0] if len(set(defaults)) == 1 else None
            if default is None and any(defaults):
                help += f" [default: {once(defaults, '{} {}', '; ')}]"
            alike = all(other.about.range == first.about.range for other in others)  # else each trainer checks its own
            metavar = next((one.about.metavar for one in settings.values() if one.about.metavar), None)
            more = {
                "type": first.type(first.about.range if alike else Range()),
                "default": default,
                "show_default": default is not None,
                "metavar": metavar,
            }
        takers = {trainer: setting.name for trainer, setting in settings.items()}
        return cls([*dict.fromkeys(flags), key], takers, help=help, needs=first.about.needs, **more)


@dataclass(frozen=True, slots=True)
class ChosenLoss:
    """A value of ``--loss`` and its trainer."""

    name: str
    trainer: type[AnyTrainer]

    @classmethod
    def of(cls, name: str) -> ChosenLoss:
        """The loss with its default trainer. Raises UnknownNameError."""
        return cls(name, trainer_of(name))

    def __str__(self) -> str:
        return self.name


def _loss(name: str) -> ChosenLoss:
    """The loss of this name, in any case, or package.module:Name of a user's own. Raises ValueError."""
    return ChosenLoss.of(name if ":" in name else name.strip().lower())


#: The name of a loss: a ``ChosenLoss``.
LOSS = Parsed("name", _loss, f"[{'|'.join(known_losses())}|package.module:Name]", known_losses)


def option_name(field: dataclasses.Field[object], about: Declared) -> str:
    """The setting's name on the command line and in configuration files: ``lambda`` for ``regularisation``."""
    return about.flags[-1].lstrip("-").replace("-", "_") if about.flags else field.name


def trainer_options(*, as_lists: bool = False, without: Collection[str] = ()) -> list[TrainerOption]:
    """An option for each setting of any trainer, but those of the names ``without``.

    as_lists : settings that have a grid, of any trainer, take several values, with commas between them (``apsvm cv``)
    """
    settings: dict[str, dict[type[AnyTrainer], Setting]] = {}
    for trainer in TRAINERS.values():
        hints = typing.get_type_hints(trainer.Settings)
        for name, (field, about) in declared(trainer.Settings).items():
            if about.option and name not in OF_ALL:
                setting = Setting(name, about, plain_type(hints[name]), field.default)
                settings.setdefault(option_name(field, about), {})[trainer] = setting
    if as_lists:
        for of_key in settings.values():
            if any(one.about.grid is not None for one in of_key.values()):
                of_key |= {trainer: one._replace(as_list=True) for trainer, one in of_key.items()}
    made = [TrainerOption.of_settings(key, of_key) for key, of_key in settings.items() if key not in without]
    for key in ("validation", "query_weights"):  # data that only some trainers use
        takers = [trainer for trainer in TRAINERS.values() if getattr(trainer.capabilities, key)]
        if key not in without:
            more = {name: value for name, value in TABLE[key].items() if name != "flags"}
            made.append(TrainerOption([f"--{key.replace('_', '-')}"], dict.fromkeys(takers), **more))
    return made


class TrainersCommand(HelpfulCommand):
    """A command with the options of all trainers; each family is a topic of its help. TypeError if two options share a
    name or a flag.

    Parameters
    ----------
    as_lists, without : see ``trainer_options``
    """

    def __init__(self, *arguments: Any, as_lists: bool = False, without: str = "", **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.params += trainer_options(as_lists=as_lists, without=without.split())
        owners: dict[str, str] = {}
        for param in self.params:
            owner = "the command"
            if isinstance(param, TrainerOption):
                owner = f"the setting {param.name} of {' and '.join(trainer.family for trainer in param.takers)}"
            for word in {param.name or "", *param.opts, *param.secondary_opts}:
                if word in owners:
                    raise TypeError(
                        f"{word} is an option of {owners[word]}, and of {owner}: one needs another name or flag"
                    )
                owners[word] = owner


def options_of_trainers() -> list[TrainerOption]:
    """The current command's options that are not for all trainers."""
    return [param for param in click.get_current_context().command.params if isinstance(param, TrainerOption)]


def settings_named(trainer: type[AnyTrainer], options: JsonObject, named: Collection[str]) -> JsonDict:
    """Settings of the trainer that the user gave: its options among ``named``. The others have the trainer's
    defaults."""
    taken = {option.takers.get(trainer): option.name or "" for option in options_of_trainers()}
    return {setting: options[name] for setting, name in taken.items() if setting is not None and name in named}


def refuse_options_of_others(losses: Sequence[ChosenLoss], named: Collection[str]) -> None:
    """Raises UsageError for an option in ``named`` that none of the chosen losses uses."""
    for option in options_of_trainers():
        if option.name in named and not any(loss.trainer in option.takers for loss in losses):
            titles = " and ".join(trainer.title for trainer in option.takers)
            raise click.UsageError(f"{option.opts[-1]} is not for --loss {losses[0]}: it is for {titles}")


def planned(loss: ChosenLoss, options: JsonObject, named: Collection[str]) -> AnyTrainer:
    """The plan for a loss and the options' values, of several classes one against the rest; bad combinations end the
    command.

    named : the options that the user gave
    """
    if len(options["C"] or ()) > 1:
        raise click.UsageError("-C takes one value here: apsvm cv compares several")
    settings = settings_named(loss.trainer, options, named) | {name: options[name] for name in OF_ALL & set(named)}
    with usage_errors(loss):
        trainer = loss.trainer(loss.name, loss.trainer.Settings(**settings), frozenset(settings))
        return OneVsRestTrainer(trainer) if options["one_vs_rest"] else trainer


@contextmanager
def usage_errors(loss: ChosenLoss) -> Iterator[None]:
    """Turns conflicts of settings and losses into usage errors."""
    from apsvm.losses.base import LossError

    try:
        yield
    except (LossError, UnknownNameError) as error:
        raise click.UsageError(f"--loss {loss}: {error}") from None
    except SettingsError as error:
        raise click.UsageError(str(error)) from None
