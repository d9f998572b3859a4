"""``--config FILE.toml``: options from a file; the environment (``APSVM_TRAIN_*``) and flags go before it."""

from __future__ import annotations

import difflib
import os
from typing import Any

import click

from apsvm.cli.shared import NO_INPUT, Failure


def _options(command: click.Command) -> dict[str, str]:
    """Spellings allowed in a file (``max-iterations`` and ``max_iterations``) → parameter name."""
    names: dict[str, str] = {}
    for param in command.params:
        if isinstance(param, click.Option) and param.name not in (None, "config", "help"):
            assert param.name is not None
            names[param.name] = names[param.name.replace("_", "-")] = param.name
    return names


def load_config(ctx: click.Context, param: click.Parameter, path: str | None) -> None:
    """Makes the file's values the defaults of this command (an eager option's callback), and refuses unknown keys
    there and in the environment."""
    names = _options(ctx.command)
    _check_environment(ctx, names)
    if path is None:
        return
    import tomllib

    try:
        with open(path, "rb") as stream:
            content = tomllib.load(stream)
    except OSError as error:
        raise Failure(NO_INPUT, f"cannot read {path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path}: not a TOML file: {error}", ctx) from None
    defaults: dict[str, Any] = {}
    for key, value in content.items():
        if key not in names:
            raise click.UsageError(f"{path}: unknown key {key!r}{_nearest(key, names)}", ctx)
        if isinstance(value, dict | list):
            raise click.UsageError(f"{path}: {key!r} must be a single value", ctx)
        if names[key] in defaults:
            raise click.UsageError(f"{path}: {key!r} is given twice", ctx)
        defaults[names[key]] = value
    ctx.default_map = defaults


def _check_environment(ctx: click.Context, names: dict[str, str]) -> None:
    prefix = f"{ctx.auto_envvar_prefix}_"
    known = {f"{prefix}{name.upper()}" for name in names.values()} | {f"{prefix}CONFIG", f"{prefix}HELP"}
    for variable in sorted(os.environ):
        if variable.startswith(prefix) and variable not in known:
            raise click.UsageError(f"unknown environment variable {variable}{_nearest(variable, known)}", ctx)


def _nearest(word: str, known: Any) -> str:
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


config_option = click.option(
    "--config",
    type=click.Path(),
    is_eager=True,
    expose_value=False,
    callback=load_config,
    metavar="FILE.toml",
    help="Options from a TOML file. APSVM_TRAIN_* variables go before it, flags before both.",
)
