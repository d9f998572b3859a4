"""The commands of a group, each imported on call: `apsvm train` imports no other, `apsvm --help` none."""

from __future__ import annotations

from importlib import import_module

import click


class Listed(click.Command):
    """A command as the group's help lists it: its place, "module:attribute", and its line in the help."""

    def __init__(self, place: str, summary: str) -> None:
        super().__init__(place, short_help=summary)
        self.place, self.summary = place, summary


class CommandGroup(click.Group):
    """A group whose help lists its commands without importing them."""

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        listed = super().get_command(ctx, name)
        if not isinstance(listed, Listed):
            return listed
        module, attribute = listed.place.split(":")
        command: click.Command = getattr(import_module(module), attribute)
        command.short_help = listed.summary
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        click.Group(commands=self.commands).format_commands(ctx, formatter)
