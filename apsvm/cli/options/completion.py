"""What the shell completes beside options and choices: losses, metrics, feature maps, and names of files.

``eval "$(_APSVM_COMPLETE=bash_source apsvm)"`` switches it on in bash (zsh_source, fish_source likewise).
"""

from __future__ import annotations

import re

import click
from click.shell_completion import CompletionItem

from apsvm.cli.options.parameters import ParamType

#: Where a form of a name has its parameter, an example of what one would write there.
_EXAMPLES = {
    "@k": "@10",
    ":k": ":4",
    ":m": ":300",
    "(rho)": "(0.8)",
    "(gain)": "(linear)",
    "(beta)": "(0.5)",
    "(graph)": "(adjacent)",
    "(loss)": "(ap)",
    "Fβ": "F1",
}
_FILES = re.compile(r"\[?(DATA|OBJECTS|DETECTIONS|MODEL|OUT|FILE|FILE\.toml|FOLDER|LOG|RUN_DIR)…?\]?")


def example_of(form: str) -> str:
    """A name of this form, with an example in the place of its parameter."""
    for placeholder, example in _EXAMPLES.items():
        form = form.replace(placeholder, example)
    return form


class Named(ParamType):
    """A name, in the help and the shell one of ``names``; what it means is found out where it is used."""

    name = "name"

    @staticmethod
    def names() -> list[str]:
        """The names that are registered, or their forms."""
        raise NotImplementedError

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> object:
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        names = map(example_of, self.names())
        return [CompletionItem(name) for name in names if name.lower().startswith(incomplete.lower())]


class MetricName(Named):
    """The name of a metric."""

    @staticmethod
    def names() -> list[str]:
        from apsvm.metrics import METRICS

        return list(map(example_of, METRICS))


class FeatureMapName(Named):
    """The name of a feature map, in full: ``piecewise:4`` of ``piecewise``."""

    @staticmethod
    def names() -> list[str]:
        from apsvm.data.features import FEATURE_MAPS

        return list(FEATURE_MAPS)

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> object:
        from apsvm.data.features import LINEAR, parsed

        if value in ("auto", LINEAR):  # which need nothing that is slow to load
            return value
        try:
            return str(parsed(str(value)))
        except ValueError as error:
            self.fail(str(error))

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{'|'.join(self.names())}]"


def complete_files(command: click.Command) -> None:
    """Arguments and options whose metavar says so take the names of files, in ``command`` and all below it."""
    for param in command.params:
        if param.type is click.STRING and param.metavar and _FILES.fullmatch(param.metavar):
            param.type = click.Path()
    if isinstance(command, click.Group):
        for below in command.commands.values():
            complete_files(below)
