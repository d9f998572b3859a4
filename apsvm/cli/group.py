"""The commands of a group, each imported on call: `apsvm train` imports no other, `apsvm --help` none."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import NamedTuple

import click


class Listed(NamedTuple):
    """A command as the group's help lists it: its place, "module:attribute", and its line in the help."""

    place: str
    summary: str


class CommandGroup(click.Group):
    """A group whose help lists its commands without importing them.

    Parameters
    ----------
    listed : the commands by their names
    """

    def __init__(self, *, listed: Mapping[str, Listed] | None = None, **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.listed = dict(listed or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.listed, *self.commands})

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in self.listed and name not in self.commands:
            module, attribute = self.listed[name].place.split(":")
            command: click.Command = getattr(import_module(module), attribute)
            command.short_help = self.listed[name].summary
            self.commands[name] = command
        return self.commands.get(name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        import difflib

        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(names)}"
            raise click.UsageError(f"no command {args[0]!r}: {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        stubs = {name: click.Command(name, short_help=command.summary) for name, command in self.listed.items()}
        click.Group(commands={**self.commands, **stubs}).format_commands(ctx, formatter)
