"""The options of the trainers, made from what they declare (``apsvm.trainers.settings``), and a plan from them.

An option that several trainers declare is one option; it is refused for a loss whose trainer has not got it.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from click.shell_completion import CompletionItem

from apsvm.cli.completion import MetricName, names_that_fit
from apsvm.cli.parameters import Number, NumberList, ParamType, Several
from apsvm.cli.shared import all_given
from apsvm.registry import UnknownNameError
from apsvm.trainers.base import AnyTrainer
from apsvm.trainers.families import TRAINERS, known_losses, trainer_of
from apsvm.trainers.settings import Declared, SettingsError, declared, plain_type
from apsvm.types import JsonObject

#: Options on data that only some trainers have a use for, by the attribute that says so.
_DATA_OPTIONS = {"validation": "takes_validation", "query_weights": "takes_query_weights"}


class LossName(ParamType):
    """The name of a loss, in any case, or package.module:Name of a user's own."""

    name = "loss"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        loss = str(value) if ":" in str(value) else str(value).strip().lower()
        try:
            trainer_of(loss)
        except UnknownNameError as error:
            self.fail(str(error), param, ctx)
        return loss

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{'|'.join(known_losses())}|package.module:Name]"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return names_that_fit(known_losses(), incomplete)


def option_name(field: dataclasses.Field[object], about: Declared) -> str:
    """The setting's name on the command line and in configuration files: ``lambda`` for ``regularisation``."""
    return about.flags[-1].lstrip("-").replace("-", "_") if about.flags else field.name


def trainer_options(*, as_lists: bool = False, without: Iterable[str] = ()) -> list[click.Option]:
    """An option for each setting of any trainer, but those of the names ``without``.

    as_lists : settings with a grid take several values, with commas between them (``apsvm cv``)
    """
    options: dict[str, click.Option] = {}
    for trainer in TRAINERS.values():
        hints = typing.get_type_hints(trainer.Settings)
        for name, (field, about) in declared(trainer.Settings).items():
            key = option_name(field, about)
            if key not in options and key not in without:
                options[key] = _option(key, field, about, hints[name], as_list=as_lists and about.grid is not None)
        for key, attribute in _DATA_OPTIONS.items():
            if getattr(trainer, attribute) and key not in options and key not in without:
                options[key] = _DATA[key]
    return list(options.values())


_DATA = {
    "validation": click.Option(
        ["--validation"],
        metavar="FILE",
        help="Rows like DATA's that a metric is taken of after each epoch; the best epoch's model is kept.",
    ),
    "query_weights": click.Option(
        ["--query-weights"],
        metavar="FILE",
        help="Lines 'qid weight': the risk is this weighted mean over the queries; 1 where not named.",
    ),
}


def _option(
    key: str, field: dataclasses.Field[object], about: Declared, hint: object, *, as_list: bool
) -> click.Option:
    flags = [*about.flags] or [f"--{field.name.replace('_', '-')}"]
    if field.default is False:
        return click.Option([*flags, key], is_flag=True, help=about.help)
    default: object = about.default_text if about.path else field.default
    more = f" [default: {about.default_text}]" if about.default_text and not about.path else ""
    if as_list:
        default, more = about.grid, ""
    elif about.several:
        more += f" {about.several}"
    return click.Option(
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


def owners_of_options() -> dict[str, list[type[AnyTrainer]]]:
    """The trainers that take it, by the name of each option that is not for all."""
    owners: dict[str, list[type[AnyTrainer]]] = {}
    for trainer in TRAINERS.values():
        keys = [option_name(field, about) for field, about in declared(trainer.Settings).values()]
        keys += [key for key, attribute in _DATA_OPTIONS.items() if getattr(trainer, attribute)]
        for key in keys:
            owners.setdefault(key, []).append(trainer)
    return owners


def refuse_options_of_others(losses: Sequence[str]) -> None:
    """An option that none of the chosen losses has a use for is a mistake."""
    trainers = [trainer_of(loss) for loss in losses]
    given = all_given()
    for key, owners in owners_of_options().items():
        if key in given and not any(trainer in owners for trainer in trainers):
            option = next(param for param in click.get_current_context().command.params if param.name == key)
            titles = " and ".join(owner.title for owner in owners)
            raise click.UsageError(f"{option.opts[-1]} is not for --loss {losses[0]}, but for {titles}")


def planned(loss: str, given: JsonObject, **more: Any) -> AnyTrainer:
    """The plan for a loss and what was given, by option; ``more``: settings of every trainer (seed, threads …).

    Bad combinations end the command."""
    trainer = trainer_of(loss)
    keys = {name: option_name(field, about) for name, (field, about) in declared(trainer.Settings).items()}
    given_names = all_given()
    chosen = {name: given[key] for name, key in keys.items() if key in given}
    said = frozenset(name for name, key in keys.items() if key in given_names)
    with usage_errors(loss):
        return trainer(loss, trainer.Settings(**chosen, **more), said)


@contextmanager
def usage_errors(loss: str) -> Iterator[None]:
    """Settings and losses that do not go together end the command."""
    from apsvm.losses.base import LossError

    try:
        yield
    except (LossError, UnknownNameError) as error:
        raise click.UsageError(f"--loss {loss}: {error}") from None
    except SettingsError as error:
        raise click.UsageError(str(error)) from None
