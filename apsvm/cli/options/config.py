"""``--config FILE.toml``: options from a file; flags go before it."""

from __future__ import annotations

import click

from apsvm._support.files import read_bytes
from apsvm._support.shown import shortened
from apsvm._support.types import JsonDict
from apsvm.cli.help import meant
from apsvm.cli.options.table import FILE, Option
from apsvm.cli.shared import reading

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
        with reading(path):
            content = tomllib.loads(read_bytes(path).decode())
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{path}: not a TOML file: {shortened(str(error), 200)}", ctx) from None
    defaults: JsonDict = {}
    for key, value in content.items():
        name = key.replace("-", "_")
        if name not in options:
            names = [one.replace("_", "-") for one in options if one]
            raise click.UsageError(f"{path}: unknown key {shortened(key)!r}{meant(key, names)}", ctx)
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
    if option.is_flag and isinstance(value, bool):
        return value
    texts = tuple(str(one) for one in (value if isinstance(value, list) else [value]) if type(one) in (str, int, float))
    if option.is_flag or not texts or (isinstance(value, list) and len(texts) < len(value)):
        expected = "true or false" if option.is_flag else "a number, a string or a list of them"
        raise click.BadParameter(f"expected {expected}, found {shortened(repr(value))}")
    return texts if option.multiple else ",".join(texts)


config_option = click.option(
    "--config", type=FILE, is_eager=True, expose_value=False, callback=load_config, metavar="FILE.toml",
    cls=Option, topic="running", help="Options from a TOML file; flags override it.",
)  # fmt: skip
