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


def _options(command: click.Command) -> dict[str, str]:
    """Spellings allowed in a file (``max-iterations`` and ``max_iterations``) → parameter name."""
    names: dict[str, str] = {}
    for param in command.params:
        if isinstance(param, click.Option) and param.expose_value:
            assert param.name is not None
            names[param.name] = names[param.name.replace("_", "-")] = param.name
    return names


def load_config(ctx: click.Context, param: click.Parameter, path: str | None) -> None:
    """Makes the file's values the defaults of this command (an eager option's callback), and refuses unknown
    keys."""
    if path is None:
        return
    import tomllib

    names = _options(ctx.command)

    try:
        with nullcontext(standard_input()) if path == "-" else open(path, "rb") as stream:
            text = stream.read().decode("utf-8")
        content = tomllib.loads(text)
    except OSError as error:
        raise Failure(NO_INPUT, f"cannot read {path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path}: not a TOML file: {shortened(str(error), 200)}", ctx) from None
    except (ValueError, RecursionError):
        raise click.UsageError(f"{path}: {_of_no_use(text)}", ctx) from None
    defaults: JsonDict = {}
    for key, value in content.items():
        if key not in names:
            word = other_word(key)
            hint = _nearest(key, names) if word is None else f"; instead: {word}"
            raise click.UsageError(f"{path}: unknown key {shortened(key)!r}{hint}", ctx)
        if names[key] in defaults:
            raise click.UsageError(f"{path}: {key!r} is given twice", ctx)
        option = next(param for param in ctx.command.params if param.name == names[key])
        assert isinstance(option, click.Option)
        try:
            defaults[names[key]] = _as_typed(option, value)
            option.type_cast_value(ctx, defaults[names[key]])
        except click.BadParameter as error:
            raise click.UsageError(f"{path}: {key!r}: {error.message}", ctx) from None
    ctx.default_map = defaults
    ctx.meta[CONFIG_FILE] = path


def _of_no_use(text: str) -> str:
    """Names the key whose value the parser rejects: a number of too many digits, or nested lists."""
    import tomllib

    for number, line in enumerate(text.splitlines(), start=1):
        key, is_key, _ = line.partition("=")
        try:
            tomllib.loads(line if is_key else "")
        except RecursionError:
            return f"line {number}: {shortened(key.strip())!r} is nested too deep"
        except tomllib.TOMLDecodeError:
            continue
        except ValueError:
            return f"line {number}: {shortened(key.strip())!r} is a number of too many digits"
    return "a value is nested too deep, or a number of too many digits"


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


def _nearest(word: str, candidates: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(candidates))
    return f"; did you mean {near[0]!r}?" if near else ""


config_option = click.option(
    "--config", type=click.Path(), is_eager=True, expose_value=False, callback=load_config, metavar="FILE.toml",
    cls=Option, topic="running", help="Options from a TOML file; flags override it.",
)  # fmt: skip
