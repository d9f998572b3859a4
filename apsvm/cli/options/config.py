"""``--config FILE.toml``: options from a file; flags go before it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from contextlib import nullcontext

import click

from apsvm._support.files import standard_input
from apsvm._support.shown import shortened
from apsvm._support.types import JsonDict
from apsvm.cli.help import other_word
from apsvm.cli.options.table import Option
from apsvm.cli.shared import NO_INPUT, Failure

#: Key of the file's name in click's context.
CONFIG_FILE = "apsvm.config"


def load_config(ctx: click.Context, param: click.Parameter, path: str | None) -> None:
    """Makes the file's values the defaults of this command (an eager option's callback), and refuses unknown
    keys."""
    if path is None:
        return
    import tomllib

    options = {one.name: one for one in ctx.command.params if isinstance(one, click.Option) and one.expose_value}
    try:
        with nullcontext(standard_input()) if path == "-" else open(path, "rb") as stream:
            content = tomllib.loads(stream.read().decode("utf-8"))
    except OSError as error:
        raise Failure(NO_INPUT, f"cannot read {path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path}: not a TOML file: {shortened(str(error), 200)}", ctx) from None
    except (ValueError, RecursionError):
        raise click.UsageError(f"{path}: a value is nested too deep, or a number of too many digits", ctx) from None
    defaults: JsonDict = {}
    for key, value in content.items():
        name = key.replace("-", "_")
        if name not in options:
            raise click.UsageError(f"{path}: unknown key {shortened(key)!r}{_hint(key, options)}", ctx)
        if name in defaults:
            raise click.UsageError(f"{path}: {key!r} is given twice", ctx)
        try:
            defaults[name] = _as_typed(options[name], value)
            options[name].type_cast_value(ctx, defaults[name])
        except click.BadParameter as error:
            raise click.UsageError(f"{path}: {key!r}: {error.message}", ctx) from None
    ctx.default_map = defaults
    ctx.meta[CONFIG_FILE] = path


def _as_typed(option: click.Option, value: object) -> bool | str | tuple[str, ...]:
    """The value as typed on the command line. Raises BadParameter."""
    if option.is_flag:
        if isinstance(value, bool):
            return value
        raise click.BadParameter(f"expected true or false, found {shortened(repr(value))}")
    values = value if isinstance(value, list) else [value]
    if not values or any(isinstance(one, bool) or not isinstance(one, str | int | float) for one in values):
        raise click.BadParameter(f"expected a number, a string or a list of them, found {shortened(repr(value))}")
    texts = tuple(map(str, values))
    return texts if option.multiple else ",".join(texts)


def _hint(key: str, options: Iterable[str | None]) -> str:
    """The option that an unknown key may mean."""
    word = other_word(key)
    near = difflib.get_close_matches(key, [name.replace("_", "-") for name in options if name])
    return f"; instead: {word}" if word else f"; did you mean {near[0]!r}?" if near else ""


config_option = click.option(
    "--config", type=click.Path(), is_eager=True, expose_value=False, callback=load_config, metavar="FILE.toml",
    cls=Option, topic="running", help="Options from a TOML file; flags override it.",
)  # fmt: skip
