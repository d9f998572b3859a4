"""Values of settings to try for one loss, in the order of the table.

A trainer declares which settings are worth trying (``Trainer.grid``); the user may name other settings and values. A
setting that is a *path* (C) is trained in one go, each value from the one before; every combination of the others is a
training.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from apsvm._support.types import JsonDict, JsonObject
from apsvm.data.labels import LabelOptions
from apsvm.data.takes import Takes
from apsvm.trainers.base import AnyTrainer, Outcome
from apsvm.trainers.fitting import FeatureOptions
from apsvm.trainers.settings import Declared, Multiple, Settings, SettingsError, SettingValue, amount, declared

#: Multiples of the default C that ``apsvm cv`` compares, and ``apsvm train`` for bags and for columns learned from
#: labels. In a bag a smaller C cannot tell the right instances from the others. On 48 sets of KEEL rules have AP .727
#: with the choice, .719 with 1x, and .718 with .1x or 10x.
AROUND = (0.1, 1.0, 10.0)


def shown(value: SettingValue) -> str:
    """Text of a value, as in tables."""
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, slots=True)
class Axis:
    """A setting and its values to try.

    Attributes
    ----------
    name : name of the setting
    values : numbers ascending, then multiples of a default; other values as given
    path : True if they are trained in one go
    """

    name: str
    values: tuple[SettingValue, ...]
    path: bool = False

    @classmethod
    def of(cls, name: str, values: Sequence[SettingValue], about: Declared) -> Axis:
        """The axis of a setting. Raises SettingsError for a repeated value or none."""
        flag = about.flags[0] if about.flags else f"--{name.replace('_', '-')}"
        listed = [shown(value) for value in values]
        if len(set(listed)) < len(listed):
            raise SettingsError(f"{flag}: one value twice in {', '.join(listed)}")
        if not listed:
            raise SettingsError(f"{flag}: expected a value to try, found none")
        axis = cls(name, tuple(values), about.path)
        return replace(axis, values=tuple(sorted(values, key=axis.position))) if axis.numeric else axis

    @property
    def numeric(self) -> bool:
        """True if all values are numbers or multiples of a default."""
        return all(isinstance(value, int | float | Multiple) and not isinstance(value, bool) for value in self.values)

    def position(self, value: SettingValue) -> tuple[float, float]:
        """Sort key of a value."""
        if not self.numeric:
            return 0.0, float(self.values.index(value))
        return float(isinstance(value, Multiple)), amount(value)


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """One training, or one path of trainings.

    Attributes
    ----------
    trainer : the plan, with all values of the path
    choice : values by axis, except the path
    path : name of the path's setting; None for a single training
    """

    trainer: AnyTrainer
    choice: JsonObject
    path: str | None = None

    def choice_of(self, outcome: Outcome) -> JsonDict:
        """Values by axis of an outcome."""
        if self.path is None:
            return dict(self.choice)
        (value,) = getattr(outcome.settings, self.path)
        return {**self.choice, self.path: value}


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Settings to try for one loss.

    Attributes
    ----------
    plan : makes a checked plan of settings
    settings : the fixed settings
    axes : the settings that vary: words, then numbers, then the path
    trainer : the plan of ``settings``
    features, labels : feature and label options, if they differ from those of the search
    """

    plan: Callable[[Settings], AnyTrainer]
    settings: Settings
    axes: tuple[Axis, ...]
    trainer: AnyTrainer
    features: FeatureOptions | None = None
    labels: LabelOptions | None = None

    @classmethod
    def of(
        cls,
        plan: Callable[[Settings], AnyTrainer],
        settings: Settings,
        named: Mapping[str, Sequence[SettingValue]] | None = None,
        *,
        suggested: Mapping[str, Sequence[SettingValue]] | None = None,
        features: FeatureOptions | None = None,
        labels: LabelOptions | None = None,
    ) -> Grid:
        """Grid that the trainer declares, with the ``suggested`` values in its place and those that the user ``named``
        in place of both.

        Raises
        ------
        SettingsError, UnknownNameError, LossError : a value cannot be tried
        """
        trainer = plan(settings)
        if trainer.capabilities.labels is Takes.NOTHING:
            raise SettingsError(
                f"--loss {trainer.loss_name}: rows are judged by their labels in cross-validation, and this training "
                "looks at none"
            )
        declarations, named = declared(type(settings)), named or {}
        values = {**trainer.grid, **(suggested or {}), **named}
        axes = [
            Axis.of(name, values[name], about)
            for name, (_, about) in declarations.items()
            if name in named or values.get(name)
        ]
        axes.sort(key=lambda axis: (axis.path, axis.numeric))
        grid = cls(plan, settings, tuple(axes), trainer, features, labels)
        for _ in grid.variants():
            pass  # each is checked as it is made
        return grid

    @property
    def along(self) -> Axis | None:
        """Axis that rows of a table follow first: the path, or else the last numeric axis."""
        return self.axes[-1] if self.axes and self.axes[-1].numeric else None

    def variants(self) -> Iterator[Variant]:
        """All variants."""
        yield from self._variants({axis.name: axis.values for axis in self.axes})

    def chosen(self, choice: JsonObject) -> Variant:
        """The variant of a single choice."""
        (variant,) = self._variants({name: (value,) for name, value in choice.items()})
        return variant

    def order(self, choice: JsonObject) -> tuple[tuple[float, float], ...]:
        """Sort key of a choice in tables."""
        return tuple(axis.position(choice[axis.name]) for axis in self.axes)

    def _variants(self, values: Mapping[str, Sequence[SettingValue]]) -> Iterator[Variant]:
        path = next((axis.name for axis in self.axes if axis.path), None)
        along: JsonDict = {} if path is None else {path: tuple(values[path])}
        free = [axis.name for axis in self.axes if axis.name != path]
        for combination in itertools.product(*(values[name] for name in free)):
            choice: JsonDict = dict(zip(free, combination, strict=True))
            yield Variant(self.plan(replace(self.settings, **choice, **along)), choice, path)
