"""What ``apsvm train --loss`` offers: one file a family of trainers, one line here.

Importing this imports nothing heavy: recipes import their trainers when they train.
"""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import CompletionItem

from apsvm.cli.completion import names_that_fit
from apsvm.cli.parameter_type import ParamType
from apsvm.cli.recipes.base import Recipe
from apsvm.cli.recipes.direct_loss import DirectLoss
from apsvm.cli.recipes.rank_ncg import RankNCG
from apsvm.cli.recipes.structured import Structured
from apsvm.cli.recipes.warp import Warp
from apsvm.registry import Registry, UnknownNameError

#: In the order of ``--help``.
RECIPES: tuple[Recipe, ...] = (Structured(), RankNCG(), Warp(), DirectLoss())


def recipe_of(loss: str) -> Recipe:
    """The recipe that trains on ``loss``.

    Raises
    ------
    UnknownNameError : no recipe does; lists the losses there are, and the nearest
    """
    for recipe in RECIPES:
        if recipe.serves(loss):
            return recipe
    everything = Registry[object]("loss", {name: "" for recipe in RECIPES for name in recipe.losses()})
    raise everything.unknown(loss)


class LossName(ParamType[str]):
    """The name of a loss, in any case, or package.module:Name of a user's own."""

    name = "loss"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        loss = value if ":" in str(value) else str(value).strip().lower()
        try:
            recipe_of(loss)
        except UnknownNameError as error:
            self.fail(str(error), param, ctx)
        return str(loss)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        names = [name for recipe in RECIPES for name in recipe.losses()]
        return f"[{'|'.join(names)}|package.module:Name]"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return names_that_fit([name for recipe in RECIPES for name in recipe.losses()], incomplete)
