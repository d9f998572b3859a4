"""What ``apsvm train --loss`` offers: one file a family of trainers, one line here.

Importing this imports nothing heavy: recipes import their trainers when they train.
"""

from __future__ import annotations

from apsvm.cli.recipes.base import Recipe
from apsvm.cli.recipes.structured import Structured

#: In the order of ``--help``.
RECIPES: tuple[Recipe, ...] = (Structured(),)


def recipe_of(loss: str) -> Recipe:
    """The recipe that trains on ``loss``, one of those that ``RECIPES`` list."""
    return next(recipe for recipe in RECIPES if loss in recipe.losses())
