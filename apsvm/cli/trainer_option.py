"""One option of the command line for all the trainers that declare a setting of its name.

Each trainer keeps its own default, and its own type: where they differ, ``--help`` says so by the trainers' names, and
a value is read once it is known which trainer it is for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from apsvm.cli.completion import MetricName
from apsvm.cli.config import expected_by
from apsvm.cli.parameters import Number, NumberList, OfItsTrainer, ParamType, Several
from apsvm.trainers.base import AnyTrainer
from apsvm.trainers.settings import Declared


@dataclass(frozen=True, slots=True)
class Taken:
    """A setting of one trainer, as an option.

    Attributes
    ----------
    setting : its name
    about : what is declared of it
    kind : the type of its values, None, lists and multiples apart
    default : of the settings class
    as_list : whether it takes several values, with commas between them (``apsvm cv``)
    """

    setting: str
    about: Declared
    kind: type
    default: object
    as_list: bool

    @property
    def flags(self) -> tuple[str, ...]:
        """``--name-with-dashes``, unless others are declared."""
        return self.about.flags or (f"--{self.setting.replace('_', '-')}",)

    @property
    def is_flag(self) -> bool:
        """Whether it takes no value."""
        return self.default is False

    @property
    def reads(self) -> tuple[object, ...]:
        """Equal for settings whose values are read alike."""
        about = self.about
        limits = about.range if self.kind in (int, float) else None
        return self.kind, limits, tuple(about.choices), about.multiples, about.metric, about.path, self.as_list

    @property
    def shown_default(self) -> object:
        """The default as click shows it; None where a text stands for it, or there is none."""
        if self.as_list and self.about.grid:
            return self.about.grid
        if self.about.path:
            return self.about.default_text
        return None if self.about.default_text else self.default

    @property
    def default_in_words(self) -> str:
        """The same, or the text; empty where there is nothing to say."""
        shown = self.shown_default
        if shown is None:
            return self.about.default_text or ""
        return ", ".join(map(str, shown)) if isinstance(shown, tuple) else str(shown)

    def type(self) -> ParamType:
        """Reads its values."""
        about, limits = self.about, self.about.range
        if about.path or (self.as_list and self.kind is float):
            return NumberList(limits.low, limits.high, open_low=limits.open_low, multiples=about.multiples)
        one: ParamType
        if about.choices:
            one = click.Choice(list(about.choices))
        elif about.metric:
            one = MetricName()
        elif self.kind is int:
            low, high = (None if abs(bound) == float("inf") else int(bound) for bound in (limits.low, limits.high))
            one = click.IntRange(low, high)
        elif self.kind is float:
            one = Number(limits.low, limits.high, open_low=limits.open_low)
        else:
            one = click.STRING
        return Several(one) if self.as_list else one


class TrainerOption(click.Option):
    """An option that is not for all trainers.

    takers : by the trainer that takes it, the setting it is; None where it is about the data
    """

    def __init__(
        self, declarations: Sequence[str], takers: Mapping[type[AnyTrainer], Taken | None], **more: Any
    ) -> None:
        super().__init__(list(declarations), **more)
        self.takers = takers

    @classmethod
    def of_settings(cls, key: str, takers: Mapping[type[AnyTrainer], Taken]) -> TrainerOption:
        """The option ``key`` of these trainers. TypeError where to one it is a flag, and to another it has a value."""
        settings = list(takers.values())
        flags = list(dict.fromkeys(flag for taken in settings for flag in taken.flags))
        help = _of_each({trainer: taken.about.help for trainer, taken in takers.items()}, "{}: {}", " ")
        if any(taken.is_flag for taken in settings):
            _refuse_half_a_flag(key, takers)
            return cls([*flags, key], takers, is_flag=True, help=help)
        first = settings[0]
        alike = len({taken.reads for taken in settings}) == 1
        readings = [(taken.about.metavar, taken.type()) for taken in settings]
        defaults = {trainer: taken.default_in_words for trainer, taken in takers.items()}
        one_default = first.shown_default if len(set(defaults.values())) == 1 else None
        if one_default is None and any(defaults.values()):
            help += f" [default: {_of_each(defaults, '{} {}', '; ')}]"
        several = dict.fromkeys(taken.about.several for taken in settings if not taken.as_list)
        help += "".join(f" {text}" for text in several if text)
        return cls(
            [*flags, key],
            takers,
            type=first.type() if alike else OfItsTrainer(readings),
            default=one_default,
            show_default=one_default is not None,
            metavar=first.about.metavar if alike else None,
            help=help,
        )

    @property
    def titles(self) -> str:
        """Of the trainers that take it."""
        return " and ".join(trainer.title for trainer in self.takers)

    @property
    def families(self) -> str:
        """Of the same."""
        return " and ".join(trainer.family for trainer in self.takers)

    @property
    def depends_on_trainer(self) -> bool:
        """Whether what it reads is still to be read by the trainer."""
        return isinstance(self.type, OfItsTrainer)

    def setting_of(self, trainer: type[AnyTrainer]) -> str | None:
        """The name of the trainer's setting that it is; None if it is none."""
        taken = self.takers.get(trainer)
        return None if taken is None else taken.setting

    def read(self, trainer: type[AnyTrainer], value: object) -> object:
        """The value that was given, as the trainer's setting."""
        taken = self.takers[trainer]
        if taken is None or not self.depends_on_trainer:
            return value
        context, kind = click.get_current_context(), taken.type()
        expected = None if isinstance(value, str) else expected_by(kind, value)  # of a configuration file
        if expected is not None:
            raise click.BadParameter(f"expected {expected}, found {value!r}", context, self)
        return kind.convert(value, self, context)


def _of_each(texts: Mapping[type[AnyTrainer], str], form: str, between: str) -> str:
    """The trainers' text, where all have the same; else each with the names of its trainers."""
    names: dict[str, list[str]] = {}
    for trainer, text in texts.items():
        names.setdefault(text, []).append(trainer.family)
    if len(names) == 1:
        return next(iter(names))
    return between.join(form.format(" and ".join(families), text or "none") for text, families in names.items())


def _refuse_half_a_flag(key: str, takers: Mapping[type[AnyTrainer], Taken]) -> None:
    flags, values = (
        [trainer.family for trainer, taken in takers.items() if taken.is_flag is is_flag] for is_flag in (True, False)
    )
    if values:
        raise TypeError(
            f"the trainers {flags[0]!r} and {values[0]!r} both declare {key}, the one as a flag, the other with a "
            "value: one of them needs another name"
        )
