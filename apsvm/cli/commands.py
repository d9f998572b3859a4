"""The commands of a group, each imported when it is asked for: what `apsvm train` does not need costs it nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module

import click

from apsvm.cli.completion import complete_files


class ImportedCommands(MutableMapping[str, click.Command]):
    """Commands by their names, for ``click.Group``.

    Parameters
    ----------
    places : where each command stands: "module:attribute"
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = dict(places)
        self._imported: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._imported:
            module, attribute = self._places[name].split(":")
            command: click.Command = getattr(import_module(module), attribute)
            complete_files(command)
            self._imported[name] = command
        return self._imported[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._places.setdefault(name, "")
        self._imported[name] = command

    def __delitem__(self, name: str) -> None:
        del self._places[name]
        self._imported.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
