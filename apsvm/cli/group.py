"""The commands of a group, each imported on call: `apsvm train` imports no other, `apsvm --help` none."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import NamedTuple

import click


class Listed(NamedTuple):
    """A command as the group's help lists it.

    Attributes
    ----------
    place : "module:attribute"
    summary : its line in the help
    """

    place: str
    summary: str


class CommandGroup(click.Group):
    """A group whose help lists its commands without importing them.

    Parameters
    ----------
    listed : the commands by their names
    """

    def __init__(self, *, listed: Mapping[str, Listed], **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.listed = dict(listed)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.listed)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in self.listed and name not in self.commands:
            from apsvm.cli.options.completion import complete_files

            module, attribute = self.listed[name].place.split(":")
            command: click.Command = getattr(import_module(module), attribute)
            command.short_help = self.listed[name].summary
            complete_files(command)
            self.commands[name] = command
        return self.commands.get(name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        stubs = {name: click.Command(name, short_help=command.summary) for name, command in self.listed.items()}
        click.Group(commands=stubs).format_commands(ctx, formatter)
