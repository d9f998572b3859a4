"""The options of a trainer, declared once: a frozen dataclass whose fields are made by ``setting``.

The declaration gives the flags of ``apsvm train`` and ``apsvm cv``, the keys of configuration files, the parameters of
an estimator, and fields of a model's header. Importing this, or a trainer's declaration, is cheap.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from apsvm._support.naming import plain_name
from apsvm._support.ranges import Range as Range
from apsvm._support.types import JsonDict, JsonObject

if TYPE_CHECKING:
    from apsvm.models.header import Json

SettingsT = TypeVar("SettingsT", bound="Settings")

_KEY = "apsvm"


class SettingsError(ValueError):
    """Settings of a trainer that are out of range or conflict; the message names them and the way out."""


class Multiple(NamedTuple):
    """A multiple of a default that depends on the data: ``10x``. ``auto`` is the default, which held-out rows may
    replace by a multiple; ``1x`` is fixed."""

    factor: float
    is_auto: bool = False

    def __str__(self) -> str:
        return "auto" if self.is_auto else f"{self.factor:g}x"

    @classmethod
    def parsed(cls, text: str) -> Multiple:
        """``"auto"`` or ``"10x"``. Raises ValueError."""
        word = text.strip().lower()
        if word == "auto":
            return AUTO_MULTIPLE
        factor = float(word.removesuffix("x")) if word.endswith("x") else math.nan
        if not 0.0 < factor < math.inf:
            raise ValueError(f"expected a number, 'auto' or a multiple such as '10x', found {text!r}")
        return cls(factor)


AUTO_MULTIPLE = Multiple(1.0, is_auto=True)

#: A value of a setting, or one of a list.
SettingValue: TypeAlias = "str | bool | int | float | Multiple"


def amount(value: SettingValue) -> float:
    """Number of a numeric value, or factor of a ``Multiple``."""
    return value.factor if isinstance(value, Multiple) else float(value)


def resolved(value: float | Multiple, default: float) -> float:
    """Number for ``value``; a ``Multiple`` multiplies the default."""
    return value.factor * default if isinstance(value, Multiple) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """Metadata of a setting, besides name, type and default.

    Attributes
    ----------
    help : str
        A sentence or two for ``--help``.
    label : str
        Name in reports.
    flags : tuple[str, ...]
        Flags of the command line; by default ``--name-with-dashes``.
    choices : Sequence[str]
        Allowed values; for a list, of each member.
    range : Range
        Allowed numbers.
    multiples : bool
        True if a ``Multiple`` is allowed.
    metavar : str, optional
        Placeholder of its value in ``--help``.
    default_text : str, optional
        Text in ``--help`` for a default that depends on other things.
    grid : tuple[SettingValue, ...], optional
        Values that ``apsvm cv`` tries if the user names none; may be empty. Without a grid, ``cv`` takes a single
        value.
    metric : bool
        True if its value names a metric.
    path : bool
        True for a list whose values are trained in sequence, each from the one before.
    in_header : bool
        True if it belongs in a model's header; options of a log do not.
    needs : str
        Names of options, one of which ``apsvm train`` requires with it.
    option : bool
        True if the command line has an option for it; otherwise it is for Python only.
    """

    help: str
    label: str = ""
    flags: tuple[str, ...] = ()
    choices: Sequence[str] = ()
    range: Range = Range()  # noqa: RUF009  # frozen
    multiples: bool = False
    metavar: str | None = None
    default_text: str | None = None
    grid: tuple[SettingValue, ...] | None = None
    metric: bool = False
    path: bool = False
    in_header: bool = True
    needs: str = ""
    option: bool = True


def setting(default: object, *, help: str, **more: Any) -> Any:
    """A field of a ``Settings`` class; the arguments are the attributes of ``Declared``."""
    return dataclasses.field(default=default, metadata={_KEY: Declared(help=help, **more)})


def declared(settings: type[Settings]) -> Mapping[str, tuple[dataclasses.Field[object], Declared]]:
    """The settings by name, in their order."""
    return _declared(settings)  # type: ignore[arg-type]  # a class is hashable


@cache
def _declared(settings: type[Settings]) -> Mapping[str, tuple[dataclasses.Field[object], Declared]]:
    return {item.name: (item, item.metadata[_KEY]) for item in dataclasses.fields(settings) if _KEY in item.metadata}


def plain_type(hint: object) -> type:
    """Type of a setting's value from its annotation, without None, lists and multiples."""
    arguments = typing.get_args(hint)
    if isinstance(hint, types.UnionType):
        (item,) = [kind for kind in arguments if kind is not type(None)]
        return plain_type(item)
    return float if arguments else typing.cast(type, hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of every trainer.

    Attributes
    ----------
    time_limit : float, optional
        Seconds of training, or None.
    seed : int
        Seed of the random numbers.
    threads : int
        At most this many; 0: as many as there are cores.
    """

    time_limit: float | None = None
    seed: int = 0
    threads: int = 0

    def __post_init__(self) -> None:
        """Raises SettingsError for a value outside its range or choices. Defaults are not checked, as settings are
        copied often (``dataclasses.replace``)."""
        for name, (declaration, about) in declared(type(self)).items():
            value = getattr(self, name)
            if value != declaration.default:
                for item in value if about.path else [value]:
                    _check(name, item, about)

    def to_json(self) -> dict[str, Json]:
        """Settings by name, as JSON values; ``from_json`` reads them."""
        names = [name for name, (_, about) in declared(type(self)).items() if about.in_header and name not in OF_ALL]
        return {name: _plain(getattr(self, name)) for name in names}

    @classmethod
    def from_json(cls: type[SettingsT], values: JsonObject) -> SettingsT:
        """Settings from a model's header; unknown names, of other versions, are ignored.

        Raises
        ------
        SettingsError
            An invalid value.
        """
        declarations = declared(cls)
        result: JsonDict = {}
        for name, value in values.items():
            if name in declarations and value is not None:
                about = declarations[name][1]
                read = [_read(item, about) for item in (value if isinstance(value, list) else [value])]
                result[name] = tuple(read) if about.path else read[0]
        return cls(**result)


#: Settings of every trainer; a trainer may redeclare them with its own help and default.
OF_ALL = frozenset(field.name for field in dataclasses.fields(Settings))


def _check(name: str, value: object, about: Declared) -> None:
    if value is None or isinstance(value, bool | Multiple):
        return
    if about.choices and value not in about.choices:
        raise SettingsError(f"{plain_name(name)} is one of {', '.join(about.choices)}, found {value!r}")
    if isinstance(value, int | float) and not about.range.admits(value):
        raise SettingsError(
            f"expected {plain_name(name)} to be a finite number {about.range}, found {value!r}".replace("  ", " ")
        )


def _plain(value: object) -> Json:
    if isinstance(value, Multiple):
        return str(value)
    if isinstance(value, tuple):
        return _plain(value[0]) if len(value) == 1 else [_plain(item) for item in value]
    return typing.cast("Json", value)


def _read(value: object, about: Declared) -> object:
    if about.multiples and isinstance(value, str):
        try:
            return Multiple.parsed(value)
        except ValueError as error:
            raise SettingsError(str(error)) from None
    return value
