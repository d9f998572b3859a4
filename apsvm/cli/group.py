"""The commands of a group, each imported on call: `apsvm train` imports no other, `apsvm --help` none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
        super().__init__(commands=ImportedCommands(listed), **options)  # type: ignore[arg-type]
        self._stubs = click.Group(
            commands={name: click.Command(name, short_help=command.summary) for name, command in listed.items()}
        )

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self._stubs.format_commands(ctx, formatter)


class ImportedCommands(Mapping[str, click.Command]):
    """Commands by their names, for ``click.Group``.

    Parameters
    ----------
    listed : the commands by their names
    """

    def __init__(self, listed: Mapping[str, Listed]) -> None:
        self._listed = dict(listed)
        self._imported: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._imported:
            from apsvm.cli.options.completion import complete_files

            module, attribute = self._listed[name].place.split(":")
            command: click.Command = getattr(import_module(module), attribute)
            command.short_help = self._listed[name].summary
            complete_files(command)
            self._imported[name] = command
        return self._imported[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)
