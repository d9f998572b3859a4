"""Shell completion of losses, metrics and feature maps.

``eval "$(_APSVM_COMPLETE=bash_source apsvm)"`` switches it on in bash (zsh_source, fish_source likewise).
"""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from apsvm.cli.options.parameters import ParamType

#: Example for each placeholder in the form of a name.
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


def example_of(form: str) -> str:
    """A name of this form, with an example for its parameter."""
    for placeholder, example in _EXAMPLES.items():
        form = form.replace(placeholder, example)
    return form


class Named(ParamType):
    """A name; help and shell list ``names``. The code that uses it checks it."""

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

        if value in ("auto", LINEAR):  # these need no slow imports
            return value
        try:
            return str(parsed(str(value)))
        except ValueError as error:
            self.fail(str(error))

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{'|'.join(self.names())}]"
